//! SCTP in scenarios.

use std::io::Cursor;

use fontis_sim::experiment::run::Watched;
use fontis_sim::scenario::Scenario;
use fontis_trace::Detail;
use fontis_trace::read::read;

use crate::support::watched::{metric, run};

/// A flow over one link of 10 Mbit/s.
fn path(app: &str, sctp: &str) -> String {
    format!(
        "[scenario]\nduration = \"20 s\"\nwarmup = \"5 s\"\n[topology]\nrate = \"10 Mbit/s\"\n\
         rtt = \"40 ms\"\nbuffer = \"1 BDP\"\n[sctp]\nreceive_buffer = \"256 KiB\"\n{sctp}\n\
         [[flow]]\nprotocol = \"sctp\"\n{app}\n"
    )
}

/// A flow over two links of a host, each with its one-way delay and its rate.
fn paths(links: [(&str, &str); 2], sctp: &str) -> String {
    let link = |(name, (delay, rate)): (&str, (&str, &str))| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"sender\"\nto = \"core\"\nrate = \"{rate}\"\n\
             delay = \"{delay}\"\nbuffer = \"20 packets\"\n"
        )
    };
    let links: String = ["one", "two"].into_iter().zip(links).map(link).collect();
    format!(
        "[scenario]\nduration = \"60 s\"\nwarmup = \"10 s\"\n[[host]]\nname = \"sender\"\n\
         [[host]]\nname = \"receiver\"\n{links}[[link]]\nname = \"end\"\nfrom = \"core\"\n\
         to = \"receiver\"\nrate = \"1 Gbit/s\"\nrecord = false\n[sctp]\n{sctp}\n[[flow]]\n\
         protocol = \"sctp\"\nfrom = \"sender/one\"\nto = \"receiver\"\npaths = [\"sender/two\"]\n"
    )
}

#[test]
fn it_fills_a_link_and_passes_through_its_bytes() {
    let text = path("", "");
    let typed = run(&text, false);
    let goodput = metric(&typed, "goodput");
    assert!((8.8..9.7).contains(&goodput), "{goodput}");
    let bytes = run(&text, true);
    let values = |run: &Watched| run.recording.summary.numbers("value").to_vec();
    assert_eq!(values(&typed), values(&bytes));
    assert_eq!(typed.trace.expect("a trace").flows[0].protocol, "SCTP");
}

#[test]
fn every_application_runs_over_it() {
    let object = run(&path("app = \"object\"\nsize = \"5 MB\"", ""), false);
    let time = metric(&object, "fct");
    assert!((4.0..6.5).contains(&time), "{time}");
    let requests = "app = \"requests\"\nsize = \"20 kB\"\nthink = \"100 ms\"";
    assert!(metric(&run(&path(requests, ""), false), "goodput") > 0.4);
    let voice = "app = \"voice\"\ndeadline = \"150 ms\"";
    for sctp in ["", "unordered = true\nstreams = 4\ngives_up = true"] {
        let lost = metric(&run(&path(voice, sctp), false), "messages_lost");
        assert!(lost < 0.01, "{sctp}: {lost}");
    }
}

#[test]
fn a_capture_holds_the_packets_that_were_sent() {
    let watched = run(&path("app = \"object\"\nsize = \"100 kB\"", ""), false);
    let capture = watched.capture.expect("it was asked for").as_bytes().to_vec();
    let captured = read(Cursor::new(capture), "capture", Detail::default()).expect("it is read");
    let trace = watched.trace.expect("it was asked for");
    let packets = |trace: &fontis_trace::Trace| trace.flows[0].counts[0].packets;
    assert_eq!(captured.flows[0].protocol, "SCTP");
    assert_eq!(packets(&captured), packets(&trace));
}

#[test]
fn paths_wait_in_reserve_or_all_carry_data() {
    let links = [("10 ms", "2 Mbit/s"), ("10 ms", "1 Mbit/s")];
    let goodput = |sctp: &str| metric(&run(&paths(links, sctp), false), "goodput");
    let one = goodput("");
    assert!((1.7..2.0).contains(&one), "{one}");
    for scheduler in ["round-robin", "lowest-delay", "ecf", "blest", "daps"] {
        let settings = format!(
            "multipath = \"concurrent\"\nscheduler = \"{scheduler}\"\nstamps = true\n\
             receive_buffer = \"256 KiB\""
        );
        let both = goodput(&settings);
        assert!((2.5..3.0).contains(&both), "{scheduler}: {both}");
    }
}

/// Two links of one host that end in a bottleneck of 10 Mbit/s, beside a TCP flow: the goodput of
/// the association and of the flow.
fn beside_tcp(sctp: &str) -> [f64; 2] {
    let link = |name: &str, from: &str, to: &str, rate: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\n\
             delay = \"10 ms\"\nbuffer = \"40 packets\"\n"
        )
    };
    let text = format!(
        "[scenario]\nduration = \"200 s\"\nwarmup = \"20 s\"\n[[host]]\nname = \"sender\"\n\
         [[host]]\nname = \"beside\"\n[[host]]\nname = \"receiver\"\n{}{}{}{}\
         [sctp]\nreceive_buffer = \"1 MiB\"\n{sctp}\n\
         [[flow]]\nname = \"own\"\nprotocol = \"sctp\"\nfrom = \"sender/one\"\nto = \"receiver\"\n\
         paths = [\"sender/two\"]\n\
         [[flow]]\nname = \"other\"\nprotocol = \"newreno\"\nfrom = \"beside\"\nto = \"receiver\"\n",
        link("one", "sender", "core", "100 Mbit/s"),
        link("two", "sender", "core", "100 Mbit/s"),
        link("third", "beside", "core", "100 Mbit/s"),
        link("end", "core", "receiver", "10 Mbit/s"),
    );
    let recording = run(&text, false).recording;
    ["own", "other"].map(|name| recording.metric("goodput", name).expect("there is one"))
}

#[test]
fn coupled_paths_take_one_flows_share_of_a_bottleneck_and_all_of_two() {
    // Data that come over two paths have gaps, so that each packet has a SACK.
    let [one, _] = beside_tcp("acks = \"immediate\"");
    let [apart, _] = beside_tcp("multipath = \"concurrent\"");
    for coupling in ["lia", "olia"] {
        let settings = format!("multipath = \"concurrent\"\ncoupling = \"{coupling}\"");
        let [own, tcp] = beside_tcp(&settings);
        println!("{coupling}: {own:.2} beside {tcp:.2}; one path {one:.2}, not coupled {apart:.2}");
        assert!(own < 1.05 * one && own < 0.9 * apart, "{coupling}: {own}, not {one} or {apart}");
        assert!(own + tcp > 8.5, "{coupling}: {own} and {tcp} leave much");
        let sctp = format!(
            "multipath = \"concurrent\"\nreceive_buffer = \"256 KiB\"\ncoupling = \"{coupling}\""
        );
        let links = [("10 ms", "2 Mbit/s"), ("30 ms", "1 Mbit/s")];
        let both = metric(&run(&paths(links, &sctp), false), "goodput");
        assert!((2.4..3.0).contains(&both), "{coupling}: {both}");
    }
}

#[test]
fn what_a_summary_says_of_an_association_is_what_its_path_gives() {
    // A packet of 1000 bytes each 80 ms, acknowledged at once over 40 ms.
    let app = "app = \"constant\"\nrate = \"100 kbit/s\"\npiece = \"1000 B\"";
    let sctp = "message = \"1000 B\"\nacks = \"immediate\"";
    let quiet = run(&path(app, sctp), false);
    let close = |name: &str, wanted: f64, within: f64| {
        let value = metric(&quiet, name);
        assert!((value / wanted - 1.0).abs() < within, "{name}: {value}, not {wanted}");
    };
    close("srtt_path_00", 41.0, 0.02);
    close("flight", 1.0 * 41.0 / 80.0, 0.05);
    // IP's header, SCTP's and a SACK: 48 bytes for each thousand, and a heartbeat now and then.
    close("return_share", 0.048, 0.05);
    // The first ones wait together for the handshake: one gap of 80 ms less in 250.
    close("release_jitter", 80.0 / 250.0, 0.2);
    assert_eq!(metric(&quiet, "duplicates"), 0.0);
    // Every tenth packet comes twice: of 250 some 25.
    let twice = path(app, sctp).replace("[sctp]", "duplicate = \"10%\"\n[sctp]");
    let duplicates = metric(&run(&twice, false), "duplicates");
    assert!((10.0..45.0).contains(&duplicates), "{duplicates}");
}

#[test]
fn larger_packets_are_searched_for_if_they_are_asked_for() {
    let [without, with] = ["", "most_mtu = 9000"].map(|sctp| {
        let run = run(&path("", &format!("{sctp}\nacks = \"immediate\"")), false);
        metric(&run, "goodput")
    });
    println!("{without:.3} Mbit/s, with larger packets {with:.3}");
    // Headers are 3.2 % of 1500 bytes, and a sixth of that of 9000.
    assert!(with > 1.01 * without, "{with} {without}");
}

#[test]
fn where_time_tells_losses_fewer_tails_wait_for_a_timeout() {
    let app = "app = \"requests\"\nsize = \"20 kB\"\nthink = \"100 ms\"";
    let [reports, rack] = ["reports", "rack-tlp"].map(|recovery| {
        let text = path(app, &format!("recovery = \"{recovery}\""));
        let lossy = run(&text.replace("[sctp]", "loss = \"2%\"\n[sctp]"), false);
        (metric(&lossy, "timeouts"), metric(&lossy, "goodput"))
    });
    println!("timeouts and Mbit/s: {reports:?} by reports, {rack:?} by time");
    assert!(rack.0 < reports.0 && rack.1 > 1.05 * reports.1, "{rack:?} {reports:?}");
}

#[test]
fn each_path_has_a_round_trip_time_of_its_own_and_what_waits_comes_in_bursts() {
    let links = [("10 ms", "2 Mbit/s"), ("100 ms", "2 Mbit/s")];
    let sctp = "multipath = \"concurrent\"\nreceive_buffer = \"16000 B\"";
    let run = run(&paths(links, sctp), false);
    let [near, far] = ["srtt_path_00", "srtt_path_01"].map(|name| metric(&run, name));
    // A delayed SACK may wait 200 ms, and may return over the other path.
    assert!((20.0..150.0).contains(&near) && (110.0..400.0).contains(&far), "{near} {far}");
    assert!(metric(&run, "flight") < 16.0 && metric(&run, "release_jitter") > 1.0);
}

#[test]
fn a_setting_that_cannot_be_is_refused_with_its_key() {
    for (setting, word) in [
        ("mtu = 100", "sctp.mtu"),
        ("receive_buffer = \"2 kB\"", "sctp.receive_buffer"),
        ("scheduler = \"fastest\"", "scheduler"),
        ("coupling = \"lia\"\ncongestion = \"cubic\"", "sctp.coupling"),
    ] {
        let text = path("", setting).replace("receive_buffer = \"256 KiB\"\n", "");
        let scenario = Scenario::parse(&text).and_then(|scenario| scenario.runs());
        let error = scenario.map(|_| ()).expect_err(setting).to_string();
        assert!(error.contains(word), "{error}");
    }
}
