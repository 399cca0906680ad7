//! Receivers that send on to each other, in network namespaces.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, content, one_of_three};

const SCRIPT: &str = include_str!("swarm.sh");

/// Lets peers share a file of so many blocks. The part of the time that the origin's rate or a
/// peer's takes for it, what the origin has sent as a part of the file, and the blocks that came
/// from a group; none where namespaces cannot be made. Every peer that is named in `same` has the
/// file as it is.
fn share(blocks: usize, mbps: f64, room: &[&str], same: &[usize]) -> Option<(f64, f64, u64)> {
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
    Some((times, sent, last["by_group"].as_u64().unwrap()))
}

#[test]
fn four_peers_take_little_more_from_the_origin_than_one_would() {
    let room = ["4", "60mbit", "60mbit", "0", "nothing"];
    let run = || share(16, 60.0, &room, &[1, 2, 3, 4]);
    // The origin alone would send the file four times.
    one_of_three(run, |(times, sent, by_group)| *times < 3.0 && *sent < 2.2 && *by_group == 0);
}

#[test]
fn a_group_feeds_those_who_hear_it_and_they_feed_the_others() {
    let room = ["4", "60mbit", "60mbit", "0", "group:40mbit:1"];
    let run = || share(16, 60.0, &room, &[1, 2, 3, 4]);
    // Without nftables, which not every machine has, nobody is deaf. The origin alone would send
    // the file to the group and to who does not hear it.
    one_of_three(run, |(times, sent, by_group)| {
        *times < 3.0 && *sent < 2.2 && (40..=64).contains(by_group)
    });
    let room = ["3", "60mbit", "60mbit", "0", "group:40mbit:0"];
    let run = || share(16, 60.0, &room, &[1, 2, 3]);
    one_of_three(run, |(_, sent, by_group)| *sent < 1.3 && (40..=48).contains(by_group));
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
