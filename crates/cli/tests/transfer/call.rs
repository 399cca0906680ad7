//! Calls as a user meets them: both ends, and a bad path between them.

use serde_json::Value;

use crate::support::{Bench, Run, Running};

/// The last event of a run.
fn done(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    let event = run.events().pop().expect("an event");
    assert_eq!(event["event"], "done");
    event
}

#[test]
fn voice_is_heard_at_both_ends_over_each_carrier() {
    for (carrier, codec) in [("dfcp", "opus"), ("dccp", "g711"), ("udp", "g711-alaw")] {
        let bench = Bench::new();
        let listener =
            bench.listen_for_a_call(&["--json", "--test", "2s", "--output", "heard.wav"]);
        let call = bench.run(&[
            "call",
            &listener.url,
            "--over",
            carrier,
            "--codec",
            codec,
            "--test",
            "2s",
            "--output",
            "back.wav",
            "--json",
        ]);
        let end = done(&call);
        let there = listener.event("done");
        for (end, side) in [(&end, "caller"), (&there, "listener")] {
            assert_eq!(end["over"], carrier);
            let heard = &end["here"];
            let played = heard["played"].as_u64().unwrap();
            assert!(played >= 50, "{carrier}, {side}: {heard}");
            assert!(heard["mos"].as_f64().unwrap() > 2.0, "{carrier}, {side}: {heard}");
        }
        assert_eq!(end["there"]["played"], there["here"]["played"], "each knows the other's view");
        for name in ["heard.wav", "back.wav"] {
            let wav = std::fs::read(bench.path(name)).unwrap();
            let loud = wav[44..].chunks_exact(2).filter(|pair| pair[1].cast_signed().abs() > 4);
            assert!(loud.count() > 2000, "{carrier}: {name} has no voice");
        }
    }
}

#[test]
fn repair_packets_restore_what_a_path_loses() {
    let bench = Bench::new();
    let listener = bench.listen_for_a_call(&["--json", "--test", "8s", "--repair", "0"]);
    let relay = bench.relay(
        "127.0.0.1",
        listener.port,
        // A message that is sent again comes too late.
        &["--delay", "250ms", "--loss", "6%", "--loss-up", "6%"],
    );
    let url = listener.url_with("127.0.0.1", relay.port, "");
    let call = bench.run(&["call", &url, "--codec", "g711", "--test", "8s", "--json"]);
    let end = done(&call);
    let there = &end["there"];
    assert!(there["network_loss"].as_f64().unwrap() > 0.01, "{there}");
    assert!(there["restored"].as_u64().unwrap() > 0, "{there}");
    assert_eq!(end["here"]["restored"], 0, "the listener sends no repair packets");
    let share = end["repair_bytes_sent"].as_f64().unwrap() / end["bytes_sent"].as_f64().unwrap();
    assert!(share < 0.26, "{share}");
}

#[test]
fn pauses_that_are_not_sent_are_no_losses_and_end_no_call() {
    let bench = Bench::new();
    let listener = bench.listen_for_a_call(&["--plain", "--json", "--output", "heard.wav"]);
    // A second of a tone, four of silence: plain calls end after three seconds without a packet.
    let sample = |at: usize| {
        let tone = (std::f64::consts::TAU * 400.0 * at as f64 / 8000.0).sin();
        (if at % 40_000 < 8000 { 8000.0 * tone } else { 0.0 }) as i16
    };
    let raw: Vec<u8> = (0..48_000).flat_map(|at| sample(at).to_le_bytes()).collect();
    std::fs::write(bench.path("voice.raw"), raw).unwrap();
    let call = ["call", &listener.url, "--plain", "--dtx", "--input", "-", "--json"];
    let voice = std::fs::File::open(bench.path("voice.raw")).unwrap();
    let output = bench.command(&call).stdin(voice).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let end: Value = serde_json::from_str(text.lines().last().expect("an event")).unwrap();
    assert_eq!(end["event"], "done");
    // Two seconds of voice with 200 ms behind each, and noise four times.
    let sent = end["packets_sent"].as_u64().unwrap();
    assert!((100..130).contains(&sent), "{end}");
    let there = listener.event("done");
    let heard = &there["here"];
    assert!(heard["played"].as_u64().unwrap() + 3 >= sent, "{heard}");
    assert!(heard["missed"].as_u64().unwrap() <= 3, "{heard}");
    let wav = std::fs::read(bench.path("heard.wav")).unwrap();
    let samples: Vec<i16> =
        wav[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    assert!(samples[20_000..36_000].iter().all(|sample| *sample == 0), "the pause is no pause");
    assert!(samples[40_000..].iter().any(|sample| *sample > 4000), "the voice after it is lost");
}

#[test]
fn a_wrong_call_is_refused_with_a_reason_and_the_listener_goes_on() {
    let bench = Bench::new();
    let listener = bench.listen_for_a_call(&["--json"]);
    let (open, _) = listener.url.split_once("&secret=").unwrap();
    let call = bench.run(&["call", open, "--test", "1s"]);
    assert!(call.failed_with("secret is wrong"), "{}", call.stderr);
    let wrong = bench.run(&["call", &listener.url, "--codec", "mp3"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    let missing = bench.run(&["call", &listener.url, "--input", "none.wav"]);
    assert!(missing.failed_with("none.wav"), "{}", missing.stderr);
    let call = bench.run(&["call", &listener.url, "--test", "1s", "--json"]);
    assert!(done(&call)["there"]["played"].as_u64().unwrap() > 20);
}

#[test]
fn a_line_that_is_in_use_is_busy_and_takes_no_more_calls_than_it_should() {
    let bench = Bench::new();
    let listener = bench.listen_for_a_call(&["--json", "--calls", "4"]);
    let many = bench.run(&["call", &listener.url, "--calls", "5", "--test", "1s"]);
    assert!(many.failed_with("so many calls"), "{}", many.stderr);
    let mut first = Running::start(bench.command(&[
        "call",
        &listener.url,
        "--calls",
        "4",
        "--codec",
        "g729-sized",
        "--test",
        "3s",
        "--json",
    ]));
    first.event("second");
    let second = bench.run(&["call", &listener.url, "--test", "1s"]);
    assert!(second.failed_with("in another call"), "{}", second.stderr);
    assert_eq!(first.event("done")["packets_sent"], 4 * 150);
}

#[test]
fn a_plain_call_is_heard_at_both_ends_and_both_say_that_others_may_listen() {
    let bench = Bench::new();
    let listener =
        bench.listen_for_a_call(&["--plain", "--json", "--test", "1s", "--codec", "g711-alaw"]);
    assert!(listener.url.starts_with("dccp://127.0.0.1:"), "{}", listener.url);
    let call = ["call", &listener.url, "--plain", "--json", "--test", "1s"];
    let call = bench.run(&[&call[..], &["--codec", "g711-alaw"]].concat());
    let (end, there) = (done(&call), listener.event("done"));
    assert!(call.stderr.contains("anybody on the path can listen"), "{}", call.stderr);
    assert!(listener.errors().contains("anybody on the path can listen"));
    for end in [&end, &there] {
        assert_eq!(end["over"], "dccp");
        assert!(end["here"]["played"].as_u64().unwrap() > 20, "{end}");
    }
}

#[test]
fn encrypted_and_plain_ends_refuse_each_other_with_a_reason() {
    let bench = Bench::new();
    let (sealed, plain) =
        (bench.listen_for_a_call(&["--json"]), bench.listen_for_a_call(&["--plain", "--json"]));
    let call = |url: &str, more: &[&str]| {
        bench.run(&[&["call", url, "--test", "3s", "--timeout", "1s"][..], more].concat())
    };
    let run = call(&format!("dccp://127.0.0.1:{}", sealed.port), &["--plain"]);
    assert!(run.stderr.contains("refuses calls without encryption"), "{}", run.stderr);
    let run = call(&sealed.url_with("127.0.0.1", plain.port, ""), &[]);
    assert!(run.stderr.contains("a listener with --plain has no key"), "{}", run.stderr);
    assert_eq!(call(&plain.url, &[]).code, 2, "the URL alone says that it is not encrypted");
    assert_eq!(call(&sealed.url, &["--plain"]).code, 2);
    let other = call(&plain.url, &["--plain", "--codec", "opus"]);
    let heard = plain.errors();
    assert!(heard.contains("sends payload type 111"), "{heard}; {}", other.stderr);
}
