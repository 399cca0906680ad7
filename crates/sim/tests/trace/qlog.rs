//! The qlog of a simulation, read again, against what its endpoints and its recorder have counted.

use fontis_sim::Experiment;
use fontis_sim::experiment::run::{RunView, Watch, Watched};
use fontis_sim::scenario::Scenario;
use fontis_trace::read::read;
use fontis_trace::{Detail, Trace};
use serde_json::Value;

/// Two flows of TCP and two of DFCP over a lossy bottleneck.
fn experiment() -> Experiment {
    let text = "[scenario]\nid = \"T\"\nduration = \"20 s\"\nuntil_done = true\nwarmup = \"0 s\"\n[topology]\nrate = \"20 Mbit/s\"\n\
         rtt = \"50 ms\"\nbuffer = \"0.5 BDP\"\nloss = \"1%\"\n[tcp]\nrecovery = \"rfc6675\"\n[dfcp]\nrate = \"auto\"\n\
         [[flow]]\nname = \"t\"\ncount = 2\nprotocol = \"cubic\"\napp = \"object\"\nsize = \"1 MB\"\n\
         [[flow]]\nname = \"d\"\ncount = 2\nprotocol = \"dfcp\"\napp = \"object\"\nsize = \"3 MB\"\n";
    Scenario::parse(text).expect("a scenario").runs().expect("runs").remove(0).experiment
}

/// What was watched of them, and the qlog.
fn run() -> (Watched, Vec<u8>) {
    let watch = Watch { packets: Some(Detail::default()), qlog: true, ..Watch::default() };
    let mut qlog = Vec::new();
    let watched = experiment().run_watched(watch, |RunView { qlog: records, .. }| {
        qlog.extend_from_slice(records.expect("it was asked for").as_bytes());
        false
    });
    (watched.expect("nobody stops it"), qlog)
}

fn reread(qlog: &[u8]) -> Trace {
    read(std::io::Cursor::new(qlog.to_vec()), "qlog", Detail::default()).expect("it is read")
}

#[test]
fn a_qlog_read_again_has_the_packets_losses_and_blocks_that_were_counted() {
    let (Watched { recording, trace, .. }, qlog) = run();
    let (seen, told) = (trace.expect("it was asked for"), reread(&qlog));
    let counted = |column: &str| recording.flow.numbers(column);
    let rows = counted("flow").len();
    assert_eq!(told.flows.len(), 4);
    for (index, flow) in seen.flows.iter().enumerate() {
        // Flows come in the order in which they begin to speak.
        let found =
            |other: &&fontis_trace::TraceFlow| other.name == format!("{} (server)", flow.name);
        let other = told.flows.iter().find(found).expect("the same flow");
        assert_eq!(other.protocol, flow.protocol);
        let last = rows - seen.flows.len() + index;
        let [sent, lost, again] =
            ["sent", "lost", "retransmitted"].map(|column| counted(column)[last] as u64);
        let (there, here) = (flow.counts, other.counts);
        // The sender is the second speaker, whom the client asks.
        assert_eq!([here[1].packets; 2], [sent, there[0].packets], "{}", flow.name);
        assert_eq!(here[1].bytes, there[0].bytes, "{}", flow.name);
        // What the network lost on the way back never came, and a connection of DFCP cannot tell of
        // the packet that asks for it.
        let untold = u64::from(flow.protocol == "DFCP");
        let came = there[1].packets - there[1].lost;
        assert_eq!(here[0].packets - here[0].lost + untold, came, "{}", flow.name);
        let expected = if flow.protocol == "DFCP" { lost } else { again };
        assert_eq!(here[1].lost, expected, "{}", flow.name);
        assert!(expected > 10, "{}: {expected}", flow.name);
        if flow.protocol == "TCP" {
            assert_eq!(here[1].retransmitted, again, "{}", flow.name);
        }
    }
    let blocks = |trace: &Trace| {
        let mut all: Vec<_> = trace.blocks.iter().filter(|block| block.k > 1).collect();
        all.sort_by_key(|block| (block.k, block.block, block.sent));
        all.iter().map(|block| (block.k, block.block, block.sent)).collect::<Vec<_>>()
    };
    assert!(blocks(&seen).len() >= 6, "{:?}", blocks(&seen));
    assert_eq!(blocks(&told), blocks(&seen));
}

#[test]
fn every_record_of_a_qlog_is_one_of_the_main_schema() {
    let (_, qlog) = run();
    let text = String::from_utf8(qlog).expect("text");
    let mut records = text.split('\u{1e}').skip(1).map(|record| {
        assert!(record.ends_with('\n'), "{record}");
        serde_json::from_str::<Value>(record).expect("JSON")
    });
    let head = records.next().expect("a head");
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    let common = &head["trace"]["common_fields"];
    assert_eq!(common["protocol_type"], serde_json::json!(["DFCP", "TCP"]));
    let mut last = 0.0;
    let mut events = std::collections::BTreeMap::new();
    for event in records {
        let time = event["time"].as_f64().expect("a time");
        assert!(time >= last, "{event}");
        last = time;
        assert!(event["group_id"].is_string(), "{event}");
        let (name, data) = (event["name"].as_str().expect("a name"), &event["data"]);
        *events.entry(name.to_owned()).or_insert(0) += 1;
        match name {
            "transport:packet_sent" | "transport:packet_received" => {
                let is_initial = data["header"]["packet_type"] == "initial";
                let number = data["header"].get("packet_number");
                assert_eq!(number.is_some(), !is_initial, "{event}");
                assert!(data["raw"]["length"].is_u64() && data["frames"].is_array(), "{event}");
            }
            "recovery:packet_lost" => assert!(data["header"]["packet_number"].is_u64(), "{event}"),
            "recovery:metrics_updated" => assert!(!data.as_object().expect("fields").is_empty()),
            _ => panic!("{event}"),
        }
    }
    assert_eq!(events.len(), 4, "{events:?}");
}

#[test]
fn a_qlog_changes_nothing_of_what_is_recorded() {
    let (watched, first) = run();
    let (again, second) = run();
    assert!(first == second);
    let plain = experiment().run(|| false).expect("nobody stops it");
    // There are values that are no numbers, which equal nothing.
    let [watched, again, plain] =
        [watched.recording, again.recording, plain].map(|recording| format!("{recording:?}"));
    assert!(watched == plain && again == plain);
}
