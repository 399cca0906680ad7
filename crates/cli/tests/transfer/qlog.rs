//! What `--qlog` leaves at both ends of a real transfer over a lossy path, as `fontis view` reads
//! it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fontis_trace::read::read;
use fontis_trace::{Block, Detail, Fate, Kind, Trace};
use serde_json::Value;

use crate::support::{Bench, content, hash};

/// The one qlog of a folder.
fn only(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert!(files.next().is_none());
    file
}

fn trace_of(path: &Path) -> Trace {
    read(File::open(path).unwrap(), "qlog", Detail::default()).unwrap()
}

/// The object's blocks.
fn blocks(trace: &Trace) -> Vec<Block> {
    trace.blocks.iter().filter(|block| block.k > 1).copied().collect()
}

#[test]
fn qlogs_of_both_ends_show_the_blocks_of_a_lossy_transfer() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    let server = bench.serve(&["--qlog", "there"]);
    let path = ["--rate", "40mbit", "--delay", "10ms", "--loss", "3%", "--seed", "5"];
    let relay = bench.relay("127.0.0.1", server.port, &path);
    let url = server.url_with("127.0.0.1", relay.port, "file");
    let got = bench.run(&["get", &url, "got", "--qlog", "here"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert_eq!(hash(&bench.path("got")), hash(&bench.path("served/file")));
    // The server's is complete when its connection is forgotten.
    let (here, there) = (only(&bench.path("here")), only(&bench.path("there")));
    let end = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.ends_with('\n') && ["close", "fin_ack"].iter().any(|end| text.contains(end))
    };
    for _ in 0..100 {
        if end(&there) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    drop(server);
    valid(&here);
    valid(&there);

    let [received, sent] = [here, there].map(|path| trace_of(&path));
    for (name, trace) in [("receiver", &received), ("sender", &sent)] {
        assert_eq!(trace.flows[0].unit, "symbols", "{name}");
        let blocks = blocks(trace);
        // Three blocks of 1 MiB; the last is shorter.
        assert_eq!(blocks.iter().map(|block| block.block).collect::<Vec<_>>(), [0, 1, 2], "{name}");
        for block in &blocks {
            assert!(block.received >= block.k && block.done > block.begun, "{name}: {block:?}");
            // Symbols of a block still come while it is decoded: three in a millisecond.
            assert!(block.received - block.useless <= block.k + 30, "{name}: {block:?}");
        }
        let lost = trace.packets.iter().filter(|packet| packet.fate == Fate::Lost).count();
        assert!(lost > 20, "{name}: {lost}");
        assert!(trace.packets.iter().any(|packet| packet.kind == Kind::Repair), "{name}");
        let text =
            trace.findings.iter().map(|finding| &*finding.text).collect::<Vec<_>>().join("; ");
        assert!(text.contains("of packets were lost"), "{name}: {text}");
        assert!(!text.contains("after one sent later"), "{name}: {text}");
        let delivered = trace.series.iter().filter(|series| series.name.ends_with("delivered"));
        let most = delivered.flat_map(|series| &series.points).map(|(_, value)| *value);
        let most = most.fold(0.0f32, f32::max);
        assert!((2_990_000.0..3_100_000.0).contains(&most), "{name}: {most}");
    }
    // What the sender was told is what the receiver saw. Of the last block that is only said to be
    // done: after that nobody needs to be told.
    for (at_sender, at_receiver) in blocks(&sent).iter().zip(blocks(&received)) {
        assert_eq!(at_sender.k, at_receiver.k);
        let untold = at_receiver.received.checked_sub(at_sender.received);
        let told_later = at_sender.block < 2;
        let fits = untold.is_some_and(|untold| !told_later || untold <= 30);
        assert!(fits, "{at_sender:?} {at_receiver:?}");
        assert!(at_sender.sent > at_receiver.received, "{at_sender:?} {at_receiver:?}");
    }
}

/// Every record has what qlog 0.3 asks for.
fn valid(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let mut records = text.split('\u{1e}').skip(1).map(|record| {
        assert!(record.ends_with('\n'), "{record}");
        serde_json::from_str::<Value>(record).unwrap()
    });
    let head = records.next().unwrap();
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    let common = &head["trace"]["common_fields"];
    assert_eq!(common["time_format"], "relative");
    assert!(common["reference_time"].as_f64().unwrap() > 1e12, "{common}");
    let mut last = 0.0;
    for event in records {
        let time = event["time"].as_f64().unwrap();
        assert!(time + 50.0 > last, "{event}");
        last = time;
        let name = event["name"].as_str().unwrap();
        let data = &event["data"];
        match name {
            "transport:packet_sent" | "transport:packet_received" => {
                let header = &data["header"];
                let is_initial = header["packet_type"] == "initial";
                assert_eq!(header.get("packet_number").is_some(), !is_initial, "{event}");
                assert!(data["raw"]["length"].is_u64(), "{event}");
                for frame in data["frames"].as_array().unwrap() {
                    assert!(frame["frame_type"].is_string(), "{event}");
                }
            }
            "recovery:packet_lost" => assert!(data["header"]["packet_number"].is_u64(), "{event}"),
            "recovery:metrics_updated" => assert!(data["smoothed_rtt"].is_f64(), "{event}"),
            _ => panic!("{event}"),
        }
    }
}
