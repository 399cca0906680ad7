//! Machines with several interfaces, groups, applications over every transport, and keys of a
//! flow's own transport.

use fontis_sim::Recording;
use fontis_sim::scenario::Scenario;

fn scenario(name: &str) -> Scenario {
    let path = format!("{}/../../scenarios/basic/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    Scenario::parse(&text).expect("it is right")
}

fn recorded(scenario: &Scenario, run: usize) -> Recording {
    let runs = scenario.runs().expect("runs");
    runs[run].experiment.run(|| false).expect("nobody stops it")
}

fn metric(recording: &Recording, metric: &str, subject: &str) -> f64 {
    let value = recording.metric(metric, subject);
    value.unwrap_or_else(|| panic!("there is no {metric} of {subject}"))
}

/// The last value of a counter of a link.
fn counter(recording: &Recording, column: &str, link: &str) -> f64 {
    let names = recording.queue.texts("queue").expect("names");
    let values = recording.queue.numbers(column);
    let of_link = names.iter().zip(values).filter(|(name, _)| *name == link);
    of_link.last().map(|(_, value)| value).unwrap_or_else(|| panic!("there is no link {link}"))
}

#[test]
fn a_flow_over_each_interface_of_a_host_gets_what_that_interface_carries() {
    let recording = recorded(&scenario("machines"), 0);
    // 1448 of 1500 bytes are data.
    let full = |rate: f64| rate * 1448.0 / 1500.0;
    let wifi = metric(&recording, "goodput", "over-wifi");
    assert!((wifi / full(20.0) - 1.0).abs() < 0.03, "{wifi}");
    let phone =
        metric(&recording, "goodput", "over-phone") + metric(&recording, "goodput", "no-sack");
    assert!((phone / full(10.0) - 1.0).abs() < 0.03, "{phone}");
}

#[test]
fn flows_of_one_scenario_may_configure_their_transports_differently() {
    let runs = scenario("machines").runs().expect("a run");
    let flows = &runs[0].experiment.flows;
    let sack = |flow: usize| {
        let tcp = flows[flow].transport.as_any();
        tcp.downcast_ref::<fontis_sim::host::rows::tcp::Tcp>().expect("it is TCP").config.sack
    };
    assert_eq!([sack(0), sack(1), sack(2)], [true, true, false]);
}

#[test]
fn a_flow_s_own_keys_are_swept_by_its_name() {
    let text = "[[flow]]\nname = \"a\"\n[[flow]]\nname = \"b\"\ntcp = { sack = false }\n\
                [sweep]\nflow.a.tcp.sack = [true, false]\n";
    let runs = Scenario::parse(text).expect("it is right").runs().expect("runs");
    let sack = |run: usize, flow: usize| {
        let tcp = runs[run].experiment.flows[flow].transport.as_any();
        tcp.downcast_ref::<fontis_sim::host::rows::tcp::Tcp>().expect("it is TCP").config.sack
    };
    assert_eq!([sack(0, 0), sack(1, 0), sack(0, 1), sack(1, 1)], [true, false, false, false]);
}

#[test]
fn a_flow_may_not_have_the_name_of_a_table() {
    let error = Scenario::parse("[[flow]]\nname = \"tcp\"\n").expect_err("it is ambiguous");
    assert!(error.to_string().contains("line 2: flow.name: \"tcp\" is the name of a table"));
}

#[test]
fn one_copy_for_each_link_reaches_a_group_and_a_member_that_has_left_gets_no_more() {
    let recording = recorded(&scenario("group"), 0);
    // Packets still on the camera's link at the end have not come to the switch.
    let sent = counter(&recording, "delivered", "camera-near");
    // Two members behind the trunk, and one copy on it.
    assert_eq!(counter(&recording, "arrived", "trunk"), sent);
    assert_eq!(counter(&recording, "arrived", "near-desk"), sent);
    // The wall is a member for the first six seconds of twelve, the phone for the last nine.
    let rows = recording.flow.texts("name").expect("names").iter().map(str::to_owned);
    let rows: Vec<(String, f64, f64)> = rows
        .zip(recording.flow.numbers("time"))
        .zip(recording.flow.numbers("received"))
        .map(|((name, time), received)| (name, time, received))
        .collect();
    let at = |name: &str, second: f64| {
        let row = rows.iter().find(|(of, time, _)| of == name && (time - second).abs() < 1e-6);
        row.unwrap_or_else(|| panic!("no row of {name} at {second}")).2
    };
    // What is on its way when a member leaves still arrives: a moment later nothing more does.
    let (wall, phone) = ("picture@wall", "picture@phone");
    assert!(at(wall, 6.0) > 1e6);
    assert_eq!(at(wall, 6.3), at(wall, 12.0));
    assert_eq!(at(phone, 3.0), 0.0);
    assert!(at(phone, 12.0) > 1.5e6);
    assert!(counter(&recording, "arrived", "far-wall") < 0.6 * sent);
    // One member's loss is nobody else's.
    assert_eq!(metric(&recording, "messages_lost", "picture@desk"), 0.0);
}

#[test]
fn a_trace_has_each_copy_of_a_packet_to_a_group_with_its_own_way() {
    use fontis_sim::experiment::run::Watch;
    use fontis_trace::{Detail, LaneKind};
    let runs = scenario("group").runs().expect("a run");
    let watch = Watch { packets: Some(Detail::default()), ..Watch::default() };
    let watched = runs[0].experiment.run_watched(watch, |_| false).expect("nobody stops it");
    let trace = watched.trace.expect("it was asked for");
    let hosts = trace.lanes.iter().filter(|lane| lane.kind == LaneKind::Host);
    let hosts: Vec<&str> = hosts.map(|lane| &*lane.name).collect();
    assert_eq!(hosts, ["camera", "desk", "wall", "phone"]);
    let received = watched.recording.flow.numbers("received");
    assert!(trace.total > 2 * 1000, "{} packets", trace.total);
    assert!(received.iter().any(|bytes| *bytes > 0.0));
}

#[test]
fn voice_and_video_run_over_every_transport_and_their_messages_are_measured() {
    let scenario = scenario("media");
    let [datagrams, tcp, dfcp] = [0, 1, 2].map(|run| recorded(&scenario, run));
    for recording in [&datagrams, &tcp, &dfcp] {
        for flow in ["call", "film"] {
            assert!(metric(recording, "messages", flow) > 500.0);
            // Half of the round trip at least.
            assert!(metric(recording, "message_delay", flow) >= 50.0);
        }
        assert!(!recording.message.is_empty());
    }
    // One datagram in a hundred is lost. TCP and DFCP lose nothing: TCP delivers late instead.
    let lost = metric(&datagrams, "messages_lost", "call");
    assert!((0.002..0.03).contains(&lost), "{lost}");
    for recording in [&tcp, &dfcp] {
        assert_eq!(metric(recording, "messages_lost", "call"), 0.0);
    }
    let p99 = |recording| metric(recording, "message_delay_p99", "call");
    assert!(p99(&tcp) > p99(&datagrams) + 50.0, "a copy takes a round trip more");
    assert!(
        metric(&dfcp, "messages_in_time", "call") > metric(&datagrams, "messages_in_time", "call")
    );
}

#[test]
fn requests_and_steady_sources_run_over_dfcp() {
    let text = "[scenario]\nduration = \"20 s\"\n[topology]\nrate = \"20 Mbit/s\"\nrtt = \"40 ms\"\n\
                [[flow]]\nname = \"ask\"\nprotocol = \"dfcp\"\napp = \"requests\"\nsize = \"20 kB\"\n\
                requests = 10\nthink = \"100 ms\"\n\
                [[flow]]\nname = \"meter\"\nprotocol = \"dfcp\"\napp = \"constant\"\n\
                rate = \"400 kbit/s\"\n";
    let recording = recorded(&Scenario::parse(text).expect("it is right"), 0);
    let received = |flow: &str| metric(&recording, "goodput", flow) * 20.0 / 8.0 * 1e6;
    // Ten answers; and a message of a thousand bytes fifty times a second.
    assert_eq!(received("ask").round(), 200_000.0);
    assert!((received("meter") / 1e6 - 1.0).abs() < 0.02, "{}", received("meter"));
}

#[test]
fn hosts_and_groups_that_make_no_sense_are_refused() {
    let link = "[[link]]\nfrom = \"a\"\nto = \"r\"\n[[link]]\nfrom = \"r\"\nto = \"b\"\n";
    let hosts = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n";
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\n";
    assert!(Scenario::parse(&format!("{link}{hosts}{flow}")).is_ok());
    for (text, part) in [
        (format!("{link}[[host]]\nname = \"c\"\n{flow}"), "no link begins at host \"c\""),
        (format!("{link}{hosts}[[host]]\nname = \"a\"\n{flow}"), "two hosts are called \"a\""),
        (format!("{link}{hosts}[[flow]]\nfrom = \"a/x\"\nto = \"b\""), "it has a-r"),
        (format!("{link}{hosts}[[flow]]\nfrom = \"a\"\nto = \"a\""), "the same host"),
        (format!("{link}{hosts}{flow}access = \"1 Mbit/s\""), "flow.access is of a sender's own"),
        (format!("{link}{hosts}{flow}rtt = \"90 ms\""), "both hosts have links of their own"),
        (format!("[[link]]\nfrom = \"a\"\nto = \"b\"\n{hosts}{flow}"), "put a router between"),
        (
            format!("{link}{hosts}[[group]]\nname = \"g\"\nmembers = [\"r\"]\n{flow}"),
            "\"r\" is a router; members are hosts",
        ),
        (
            format!("{link}{hosts}[[group]]\nname = \"g\"\nleave = [\"1 s:b\"]\n{flow}"),
            "leaves before it has joined",
        ),
        (
            format!(
                "{link}{hosts}[[group]]\nname = \"g\"\nmembers = [\"b\"]\n\
                 [[flow]]\nfrom = \"a\"\nto = \"g\""
            ),
            "cubic reaches one receiver, not a group",
        ),
        ("[[host]]\nname = \"a\"\n".to_owned(), "describe the network by [[link]]"),
    ] {
        let error = Scenario::parse(&text).expect_err("it makes no sense").to_string();
        assert!(error.contains(part), "{text:?}: {error:?} lacks {part:?}");
    }
}
