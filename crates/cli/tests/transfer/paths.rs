//! Transfers over two links of a client, in network namespaces.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, content, one_of_three};

const SCRIPT: &str = include_str!("two-links.sh");

/// What `fontis` prints last over links of 40 and 30 Mbit/s behind this bottleneck, if any; none
/// where namespaces cannot be made.
fn run(bottleneck: &str, happens: &str, arguments: &[&str], ends: &str) -> Option<Value> {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(12_000_000)).unwrap();
    let words = [&["40mbit", "30mbit", bottleneck, happens], arguments].concat();
    let (stdout, stderr) = bench.in_namespaces(SCRIPT, &words)?;
    assert!(stdout.ends_with(ends), "{stdout}{stderr}");
    Some(serde_json::from_str(stdout.lines().next().unwrap()).unwrap())
}

/// The last event of `fontis get`, of a file that came as it is.
fn get(happens: &str, arguments: &[&str]) -> Option<Value> {
    run("", happens, arguments, "same\n")
}

fn seconds(done: &Value) -> f64 {
    done["seconds"].as_f64().unwrap()
}

#[test]
fn a_file_comes_over_all_interfaces_unless_told_otherwise() {
    // Both, one and the other: 12 MB take 1.4, 2.5 and 3.3 s.
    let ways = [&[][..], &["--paths", "one"], &["--paths", "client2"]];
    let run = || {
        let all: Vec<f64> =
            ways.iter().map_while(|way| get("", way)).map(|d| seconds(&d)).collect();
        <[f64; 3]>::try_from(all).ok()
    };
    one_of_three(run, |[both, one, other]| {
        assert!(*other > 3.0, "{other}: it did not keep to the slower link");
        *both < 0.8 * one && *both < 0.7 * other
    });
}

#[test]
fn a_link_that_goes_takes_nothing_with_it() {
    for link in ["server1", "server2"] {
        let down = format!("ip link set {link} down");
        one_of_three(|| get(&down, &[]).map(|done| seconds(&done)), |seconds| *seconds < 6.0);
    }
}

#[test]
fn a_spare_link_carries_a_file_only_when_the_other_has_gone() {
    let spare = |happens: &str, link| get(happens, &["--spare", link]).map(|done| seconds(&done));
    let Some(resting) = spare("", "client2") else { return };
    // 12 MB take 2.5 s over the first link, 1.4 s over both.
    assert!(resting > 2.3, "{resting}");
    one_of_three(|| spare("ip link set server1 down", "client2"), |needed| *needed < 6.0);
    // The system would take the first link.
    let other = spare("", "client1").unwrap();
    assert!(other > 3.0, "{other}");
}

#[test]
fn links_are_measured_alone_and_together() {
    let measure = |bottleneck: &str| run(bottleneck, "", &["paths", "--for", "1500ms"], "\n");
    let both = || Some([measure("")?, measure("30mbit")?]);
    let number = |survey: &Value, path: usize, key: &str| {
        survey["paths"][path][key].as_f64().unwrap_or_else(|| panic!("no {key}: {survey}"))
    };
    let near = |value: f64, of: f64| (0.8 * of..1.1 * of).contains(&value);
    one_of_three(both, |[apart, shared]| {
        near(number(apart, 0, "rate_mbps"), 40.0)
            && near(number(apart, 1, "rate_mbps"), 30.0)
            && near(apart["together_mbps"].as_f64().unwrap(), 70.0)
            && number(apart, 1, "adds_mbps") > 15.0
            && number(shared, 1, "adds_mbps") < 8.0
            && apart["shared"] == serde_json::json!([])
            && shared["shared"] == serde_json::json!([["client1", "client2"]])
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let bench = Bench::new();
    let key = bench.run(&["keygen"]).stdout;
    let url = format!("fontis://192.0.2.1:9/x?key={}", key.trim());
    let got = bench.run(&["get", &url, "--paths", "none0"]);
    assert!(got.failed_with("no interface none0 is up; there are "), "{}", got.stderr);
    let got = bench.run(&["get", &url, "--spare", "none0"]);
    assert!(got.failed_with("--spare: no interface none0 is up"), "{}", got.stderr);
    let got = bench.run(&["get", &url, "--paths", "eth0,,eth1"]);
    assert_eq!(got.code, 2, "{}", got.stderr);
}
