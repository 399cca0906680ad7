//! Casts to receivers in network namespaces.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Bench, content, one_of_three};

const SCRIPT: &str = include_str!("room.sh");

/// The events with which receivers end, and the sender's last about the cast; none where namespaces
/// cannot be made. Every receiver that is named in `same` has the file as it is.
fn cast(
    bytes: usize,
    room: &[&str],
    arguments: &[&str],
    same: &[usize],
) -> Option<(Vec<Value>, Value)> {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(bytes)).unwrap();
    let (stdout, stderr) = bench.in_namespaces(SCRIPT, &[room, arguments].concat())?;
    let lines: Vec<&str> = stdout.lines().collect();
    let (last, receivers) = lines.split_last().unwrap_or((&"", &[]));
    for receiver in same {
        let of_receiver = receivers.get(receiver - 1);
        let is_same =
            of_receiver.is_some_and(|line| line.starts_with(&format!("{receiver} same ")));
        assert!(is_same, "{stdout}{stderr}");
    }
    let event = |line: &&str| {
        let json = line.find('{').map_or("null", |start| &line[start..]);
        serde_json::Deserializer::from_str(json).into_iter().next().unwrap().unwrap()
    };
    let done = receivers.iter().map(event).collect();
    Some((done, serde_json::from_str(last).unwrap_or_else(|_| panic!("{stdout}{stderr}"))))
}

/// The symbols that were sent for each that is needed.
fn sent(cast: &Value) -> f64 {
    cast["symbols"].as_f64().unwrap() / cast["needed"].as_f64().unwrap()
}

fn has_nftables() -> bool {
    Command::new("nft").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn one_stream_serves_three_receivers_and_repairs_serve_all_of_them() {
    // Loss is made by nftables, which not every machine has; `cast` of `fontis-proto` has it too.
    let (loss, most) = if has_nftables() { ("10", 1.16) } else { ("0", 1.01) };
    let room = ["3", loss, "100mbit", "nothing"];
    let Some((_, cast)) = cast(16 << 20, &room, &[], &[1, 2, 3]) else { return };
    println!("{loss} % lost: {:.3} symbols for each that is needed", sent(&cast));
    assert!(sent(&cast) < most, "{cast}");
}

#[test]
fn who_comes_late_and_who_hears_nothing_has_everything_too() {
    let room = ["3", "0", "40mbit", "late:2"];
    let Some((_, late)) = cast(8 << 20, &room, &[], &[1, 2, 3]) else { return };
    assert!(sent(&late) > 1.5, "the first part is sent once more: {late}");
    let room = ["2", "0", "40mbit", "deaf:1"];
    let (done, alone) = cast(4 << 20, &room, &[], &[1, 2]).unwrap();
    // The one came by the group, the other by a connection.
    assert_eq!(done[1]["packets_received"], 0, "{done:?}");
    assert!(done[0]["packets_received"].as_u64() > Some(100), "{done:?}");
    assert!(sent(&alone) < 1.1, "{alone}");
}

#[test]
fn a_rate_that_is_not_named_follows_the_link() {
    let loss = if has_nftables() { "5" } else { "0" };
    for (loss, rate) in [("0", "tfmcc"), (loss, "auto")] {
        let room = ["2", loss, rate, "link:20mbit"];
        let run = || {
            let (done, cast) = cast(6 << 20, &room, &[], &[1, 2])?;
            Some((done[0]["seconds"].as_f64().unwrap(), sent(&cast)))
        };
        // At the rate of the link 2.6 s; a sender that heeds nobody would drop most of what it
        // sends.
        one_of_three(run, |(seconds, sent)| *seconds < 9.0 && *sent < 1.5);
    }
}

#[test]
#[ignore = "it takes more than a minute; make soak runs it"]
fn who_comes_early_waits_for_the_start_as_long_as_it_takes() {
    let room = ["3", "0", "40mbit", "wait:62"];
    let Some((_, cast)) = cast(1 << 20, &room, &[], &[1, 2, 3]) else { return };
    assert!(sent(&cast) < 1.01, "{cast}");
}

#[test]
fn receivers_that_cannot_answer_have_everything_after_a_round() {
    let loss = if has_nftables() { "20" } else { "0" };
    let room = ["2", loss, "80mbit", "one-way"];
    let run = || cast(4 << 20, &room, &[], &[1, 2])?.0[0]["seconds"].as_f64();
    // A round takes .57 s; a receiver begins a moment after the first one does. More follow for one
    // that a busy machine keeps from reading.
    one_of_three(run, |seconds| *seconds < 1.6);
}

#[test]
fn a_stream_comes_whole_while_it_is_made() {
    // Lost symbols are repaired before the latency is over.
    let loss = if has_nftables() { "10" } else { "0" };
    let room = ["3", loss, "5mbit", "stream"];
    let Some((done, cast)) = cast(1_000_000, &room, &["--latency", "2s"], &[1, 2, 3]) else {
        return;
    };
    println!("{loss} % lost: {:.3} symbols for each that is needed", sent(&cast));
    for one in &done {
        // Four seconds of stream: it was not sent at once.
        assert!(one["event"] == "done" && one["seconds"].as_f64() > Some(3.5), "{one}");
    }
}

#[test]
fn what_cannot_be_cast_is_said() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1000)).unwrap();
    let file = bench.path("served/file");
    let file = file.to_str().unwrap();
    let cast = bench.run(&["cast", file, "--rate", "1mbit", "--group", "192.0.2.1:4436"]);
    assert_eq!(cast.code, 2, "{}", cast.stderr);
    assert!(cast.stderr.contains("no multicast group"), "{}", cast.stderr);
    let cast = bench.run(&["cast", "nowhere", "--rate", "1mbit"]);
    assert!(cast.failed_with("cannot open nowhere"), "{}", cast.stderr);
    let cast = bench.run(&["cast", file, "--rate", "1mbit", "--min-rate", "1mbit"]);
    assert_eq!(cast.code, 2, "{}", cast.stderr);
    let cast = bench.run(&["cast", file, "--one-way"]);
    assert_eq!(cast.code, 2, "{}", cast.stderr);
    let cast = bench.run(&["cast", file, "--rate", "1mbit", "--interface", "none0"]);
    assert!(cast.failed_with("no interface none0"), "{}", cast.stderr);
    let key = bench.run(&["keygen"]).stdout;
    let url = format!("fontis://192.0.2.1:9/x?key={}", key.trim());
    let joined = bench.run(&["join", &url, "-", "--json"]);
    assert_eq!(joined.code, 2, "{}", joined.stderr);
    for wrong in [
        &["cast", "-"][..],
        &["cast", "-", "--rate", "1mbit", "--one-way"],
        &["cast", file, "--rate", "1mbit", "--latency", "1s"],
        &["cast", "-", "--rate", "1mbit", "--latency", "soon"],
        &["cast", "-", "--rate", "1mbit", "--exclude", "*.o"],
        &["cast", file, "--rate", "1mbit", "--loss", "20%"],
    ] {
        let cast = bench.run(wrong);
        assert_eq!(cast.code, 2, "{wrong:?}: {}", cast.stderr);
    }
    let cast = bench.run(&["cast", "-", "--rate", "1mbit", "--latency", "1ms"]);
    assert!(cast.failed_with("choose one from 20ms to 60s"), "{}", cast.stderr);
}
