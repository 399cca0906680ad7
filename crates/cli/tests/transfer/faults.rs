//! Real transfers over bad paths: the real command at both ends and a relay between them, both
//! directions, IPv4 and IPv6. The relay's seed is in its arguments, and a failure shows them.

use std::fs;
use std::net::UdpSocket;

use crate::support::{Bench, content, hash};

const SIZE: usize = 3_000_000;

/// A file is fetched three times and sent once, each time by a new connection.
fn survived(faults: &[&str]) {
    survived_times(3, faults);
}

/// A file is fetched so often and sent once, each time by a new connection.
fn survived_times(times: u32, faults: &[&str]) {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    fs::create_dir(bench.path("inbox")).unwrap();
    let expected = hash(&bench.path("served/file"));
    for host in ["127.0.0.1", "[::1]"] {
        if UdpSocket::bind(format!("{host}:0")).is_err() {
            eprintln!("skipped: this machine has no {host}");
            continue;
        }
        let seed = if host.starts_with('[') { "12" } else { "11" };
        let path = ["--rate", "50mbit", "--delay", "10ms", "--seed", seed];
        let path = [&path, faults].concat();
        let shown = format!("{host} {path:?}");
        let server = bench.serve_on(&format!("{host}:0"), &["--json"]);
        let relay = bench.relay(host, server.port, &path);
        for _ in 0..times {
            let url = server.url_with(host, relay.port, "file");
            let got = bench.run(&["get", &url, "got", "--force", "--json"]);
            assert_eq!(got.code, 0, "{shown}: {}", got.stderr);
            assert_eq!(hash(&bench.path("got")), expected, "{shown}");
            let events = got.events();
            let done = events.last().unwrap();
            assert_eq!(done["event"], "done", "{shown}");
            // What happens at the end is known at both ends, whatever is lost.
            let sent = server.event("sent");
            assert_eq!((&sent["hash"], &sent["bytes"]), (&done["hash"], &done["bytes"]), "{shown}");
        }
        let receiver = bench.receive_on(&format!("{host}:0"), &["--force"]);
        let relay = bench.relay(host, receiver.port, &path);
        let url = receiver.url_with(host, relay.port, "");
        let sent = bench.run(&["send", "served/file", &url]);
        assert_eq!(sent.code, 0, "{shown}: {}", sent.stderr);
        assert_eq!(hash(&bench.path("inbox/file")), expected, "{shown}");
        fs::remove_file(bench.path("inbox/file")).unwrap();
    }
}

#[test]
fn random_loss_both_ways() {
    survived(&["--loss", "5%", "--loss-up", "5%"]);
}

#[test]
fn heavy_loss() {
    // It takes some 15 s each time: so much loss is hardly compensated on a slow path.
    survived_times(1, &["--loss", "40%", "--loss-up", "20%"]);
}

#[test]
fn loss_in_bursts() {
    // Bursts of four packets on average, 5 % of all.
    survived(&["--loss-model", "gilbert:1.3%,25%", "--loss-at", "after", "--loss-up", "5%"]);
}

#[test]
fn reordering_and_jitter() {
    survived(&["--reorder", "5%:8ms", "--jitter", "3ms"]);
}

#[test]
fn duplication_and_corruption() {
    survived(&["--duplicate", "5%", "--corrupt", "2%"]);
}

#[test]
fn outages() {
    // A fifth of every half second, in both directions.
    survived(&["--outage", "150ms:100ms:500ms", "--loss", "1%"]);
}
