//! Receivers that send on to each other, in network namespaces.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, content, one_of_three};

const SCRIPT: &str = include_str!("swarm.sh");

/// Lets peers share a file of so many blocks. The part of the time that the origin's rate or a
/// peer's takes for it, and what the origin has sent as a part of the file; none where namespaces
/// cannot be made. Every peer that is named in `same` has the file as it is.
fn share(blocks: usize, mbps: f64, room: &[&str], same: &[usize]) -> Option<(f64, f64)> {
    let bench = Bench::new();
    let bytes = blocks << 20;
    fs::write(bench.path("served/file"), content(bytes)).unwrap();
    let (stdout, stderr) = bench.in_namespaces(SCRIPT, room)?;
    let lines: Vec<&str> = stdout.lines().collect();
    let (last, peers) = lines.split_last().unwrap_or((&"", &[]));
    for peer in same {
        let of_peer = peers.get(peer - 1);
        let is_same = of_peer.is_some_and(|line| line.starts_with(&format!("{peer} same ")));
        assert!(is_same, "{stdout}{stderr}");
    }
    let last: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    let seconds = last["milliseconds"].as_f64().unwrap() / 1e3;
    let (times, sent) = (
        seconds / (bytes as f64 * 8e-6 / mbps),
        last["origin_sent"].as_f64().unwrap() / bytes as f64,
    );
    Some((times, sent))
}

#[test]
fn four_peers_take_little_more_from_the_origin_than_one_would() {
    let room = ["4", "60mbit", "60mbit", "0", "nothing"];
    let run = || share(16, 60.0, &room, &[1, 2, 3, 4]);
    // The origin alone would send the file four times.
    one_of_three(run, |(times, sent)| *times < 3.0 && *sent < 2.2);
}

#[test]
fn a_group_feeds_those_who_hear_it_and_they_feed_the_others() {
    // Without nftables nobody is deaf.
    let room = ["4", "60mbit", "60mbit", "0", "group:40mbit:1"];
    let run = || share(16, 60.0, &room, &[1, 2, 3, 4]);
    // The origin has one to feed beside the group, and is not the only one to do so.
    one_of_three(run, |(times, sent)| *times < 3.0 && (1.0..2.0).contains(sent));
    let room = ["3", "60mbit", "60mbit", "0", "group:40mbit:0"];
    one_of_three(|| share(16, 60.0, &room, &[1, 2, 3]), |(_, sent)| (1.0..1.3).contains(sent));
}

#[test]
fn who_is_killed_and_an_origin_that_leaves_hold_nobody_up() {
    let room = ["4", "60mbit", "60mbit", "0", "kill:1"];
    if share(12, 60.0, &room, &[2, 3, 4]).is_none() {
        return;
    }
    let room = ["3", "60mbit", "60mbit", "0", "leave:1"];
    share(8, 60.0, &room, &[1, 2, 3]).unwrap();
}
