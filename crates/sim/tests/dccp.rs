//! DCCP in scenarios.

use std::io::Cursor;

use fontis_sim::experiment::run::Watched;
use fontis_trace::Detail;
use fontis_trace::read::read;

use crate::support::watched::{metric, run};

fn call(ccid: &str, rtt: &str, loss: &str) -> Watched {
    let text = format!(
        "[scenario]\nduration = \"60 s\"\n[topology]\nrate = \"1 Mbit/s\"\nrtt = \"{rtt}\"\n\
         loss = \"{loss}\"\n[dccp]\nccid = \"{ccid}\"\nlead = \"3 s\"\nrules = \"rfc3448\"\n\
         [[flow]]\napp = \"voice\"\ndeadline = \"2 s\"\nprotocol = \"dccp\"\n"
    );
    run(&text, false)
}

#[test]
fn every_congestion_control_fills_a_link_and_passes_through_its_bytes() {
    for ccid in ["2", "3"] {
        let text = format!(
            "[scenario]\nduration = \"30 s\"\nwarmup = \"10 s\"\n[topology]\nrate = \"5 Mbit/s\"\n\
             rtt = \"50 ms\"\nbuffer = \"1 BDP\"\n[dccp]\nccid = \"{ccid}\"\n\
             [[flow]]\nprotocol = \"dccp\"\n"
        );
        let typed = run(&text, false);
        let goodput = metric(&typed, "goodput");
        assert!((3.7..5.0).contains(&goodput), "CCID {ccid}: {goodput}");
        let bytes = run(&text, true);
        assert_eq!(typed.recording.summary.numbers("value"), {
            bytes.recording.summary.numbers("value")
        });
    }
}

#[test]
fn a_capture_is_read_as_the_packets_that_were_sent() {
    let watched = call("4", "200 ms", "1%");
    let trace = watched.trace.expect("it was asked for");
    let capture = watched.capture.expect("it was asked for").as_bytes().to_vec();
    let captured = read(Cursor::new(capture), "capture", Detail::default()).expect("it is read");
    assert_eq!((&*trace.flows[0].protocol, &*captured.flows[0].protocol), ("DCCP", "DCCP"));
    let sent = trace.flows[0].counts[0].packets;
    assert_eq!(captured.flows[0].counts[0].packets, sent);
    assert!(sent > 500, "{sent}");
}

#[test]
fn the_proposals_of_the_thesis_lose_less_of_a_call_on_a_long_path() {
    let lost = ["4", "4-n", "4-n100"].map(|ccid| metric(&call(ccid, "1 s", "0"), "messages_lost"));
    assert!(lost[0] > lost[1] && lost[1] >= lost[2], "{lost:?}");
    // Before the first report no proposal sends as fast as the call.
    assert!(lost[0] > 0.1 && lost[2] < 0.05, "{lost:?}");
}

#[test]
fn a_short_path_loses_nothing_of_a_call() {
    for ccid in ["2", "3", "4", "4-n", "4-n100"] {
        let lost = metric(&call(ccid, "20 ms", "0"), "messages_lost");
        assert!(lost < 0.01, "{ccid}: {lost}");
    }
}

#[test]
fn the_mean_loss_event_rate_is_that_of_random_loss_and_windows_have_none() {
    let flow = |ccid: &str, loss: f64| {
        let text = format!(
            "[scenario]\nduration = \"120 s\"\n[topology]\nrate = \"50 Mbit/s\"\nrtt = \"50 ms\"\n\
             loss = \"{}%\"\n[dccp]\nccid = \"{ccid}\"\n[[flow]]\nprotocol = \"dccp\"\n",
            100.0 * loss
        );
        run(&text, false)
    };
    for loss in [0.004, 0.01, 0.03] {
        // Losses of one round trip are one event, so that there are fewer.
        let share = metric(&flow("3", loss), "loss_event_rate") / loss;
        assert!((0.6..1.15).contains(&share), "{loss}: {share}");
    }
    let names = flow("2", 0.01).recording.summary;
    let names = names.texts("metric").expect("metrics");
    assert!(names.iter().all(|name| name != "loss_event_rate"));
}
