//! Files over SCTP.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bench, Running, content, one_of_three};

const SERVES: [&str; 4] = ["--transport", "sctp", "--sctp-port", "0"];
const WANTS: [&str; 2] = ["--transport", "sctp"];

fn get<'a>(url: &'a str, dest: &'a str) -> Vec<&'a str> {
    [&["get", url, dest, "--json"][..], &WANTS].concat()
}

#[test]
fn files_and_folders_come_over_sctp() {
    let bench = Bench::new();
    fs::create_dir(bench.path("served/folder")).unwrap();
    for (name, size) in [("one", 1), ("folder/empty", 0), ("folder/some", 5_000_001)] {
        fs::write(bench.path("served").join(name), content(size)).unwrap();
    }
    let server = bench.serve(&SERVES);
    for (path, dest) in [("one", "one"), ("folder", "got"), ("folder/empty", "nothing")] {
        let got = bench.run(&get(&server.url_of(path), dest));
        assert_eq!(got.code, 0, "{}", got.stderr);
        let done = got.events().pop().unwrap();
        assert_eq!(done["event"], "done");
        assert!(done["sctp"]["packets_received"].as_u64().unwrap() > 0, "{done}");
        // The connection carries messages alone.
        assert!(done["symbols_received"].as_u64().unwrap() < 20, "{done}");
    }
    assert_eq!(fs::read(bench.path("one")).unwrap(), content(1));
    assert!(fs::read(bench.path("got/some")).unwrap() == content(5_000_001));
    assert_eq!(fs::read(bench.path("nothing")).unwrap(), b"");
}

#[test]
fn what_dfcp_began_sctp_ends_and_the_other_way_round() {
    for (first, then) in [("dfcp", "sctp"), ("sctp", "dfcp")] {
        let bench = Bench::new();
        fs::write(bench.path("served/file"), content(30_000_000)).unwrap();
        let server = bench.serve(&SERVES);
        let url = server.url_of("file");
        let arguments = ["get", &url, "got", "--json", "--transport", first];
        let mut interrupted = Running::start(bench.command(&arguments));
        // Told when some of it is stored.
        while interrupted.event("progress")["bytes"].as_u64().unwrap() == 0 {}
        interrupted.kill();
        drop(interrupted);
        let got = bench.run(&["get", &url, "got", "--json", "--transport", then]);
        assert_eq!(got.code, 0, "{}", got.stderr);
        assert!(fs::read(bench.path("got")).unwrap() == content(30_000_000));
        let done = got.events().pop().unwrap();
        let resumed = done["resumed"].as_u64().unwrap();
        assert!((1..=30_000_000).contains(&resumed), "{first}, then {then}: {done}");
    }
}

#[test]
fn a_limit_of_either_side_holds_and_clients_share_the_servers() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    let server = bench.serve(&[&SERVES[..], &["--limit", "24mbit"]].concat());
    let url = server.url_of("file");
    let gets = ["a", "b"].map(|name| Running::start(bench.command(&get(&url, name))));
    let [first, second] = gets.map(|mut get| get.event("done")["seconds"].as_f64().unwrap());
    // Each has 12 Mbit/s while the other is there: 3 MB with their headers take 2.1 s.
    assert!(first.min(second) > 1.6, "{first} s and {second} s");
    assert!(first.max(second) > 1.95, "{first} s and {second} s");
    let limited = bench.run(&[&get(&url, "c")[..], &["--limit", "12mbit"]].concat());
    let seconds = limited.events().pop().unwrap()["seconds"].as_f64().unwrap();
    assert!(seconds > 1.95, "{seconds} s");
    for name in ["a", "b", "c"] {
        assert!(fs::read(bench.path(name)).unwrap() == content(3_000_000));
    }
}

#[test]
fn a_transfer_over_sctp_pauses_and_goes_on() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(6_000_000)).unwrap();
    let server = bench.serve(&SERVES);
    let url = server.url_of("file");
    let command = bench.command(&[&get(&url, "got")[..], &["--limit", "8mbit"]].concat());
    let mut got = Running::start(command);
    let pid = got.id().to_string();
    let tell = |change| assert_eq!(bench.run(&["limit", change, "--pid", &pid]).code, 0);
    while got.event("progress")["bytes"].as_u64().unwrap() == 0 {}
    let start = Instant::now();
    tell("pause");
    sleep(Duration::from_secs(7));
    // Without the pause it would be there by now.
    assert!(!bench.path("got").exists());
    tell("none");
    let done = got.event("done");
    assert!(start.elapsed() < Duration::from_secs(12), "8 Mbit/s would take 6 s more");
    assert_eq!(done["bytes"], 6_000_000);
    assert!(fs::read(bench.path("got")).unwrap() == content(6_000_000));
}

#[test]
fn a_server_without_sctp_says_so() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1000)).unwrap();
    let server = bench.serve(&[]);
    let url = server.url_of("file");
    let got = bench.run(&["get", &url, "got", "--transport", "sctp"]);
    assert!(got.failed_with("without --transport sctp"), "{}", got.stderr);
    assert!(!bench.path("got").exists());
    let got = bench.run(&["get", &url, &url, "got", "--transport", "sctp"]);
    assert_eq!(got.code, 2, "{}", got.stderr);
    let got = bench.run(&["get", &url, "got", "--transport", "tcp"]);
    assert_eq!(got.code, 2, "{}", got.stderr);
    // Nor does one whose port nobody reaches keep its client for ever.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let serve = ["serve", "served", "--listen", "127.0.0.1:0"];
    let got = bench.run(&[&serve[..], &["--transport", "sctp", "--sctp-port", &port]].concat());
    assert!(got.failed_with("--sctp-port"), "{}", got.stderr);
}

#[test]
fn two_links_carry_a_file_over_sctp_together() {
    const SCRIPT: &str = include_str!("two-links.sh");
    let seconds = |arguments: &[&str]| {
        let bench = Bench::new();
        fs::write(bench.path("served/file"), content(12_000_000)).unwrap();
        let words = [&["40mbit", "30mbit", "", ""], &WANTS[..], arguments].concat();
        let (stdout, stderr) = bench.in_namespaces(SCRIPT, &words)?;
        assert!(stdout.ends_with("same\n"), "{stdout}{stderr}");
        let done: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
        done["seconds"].as_f64()
    };
    // 12 MB take 1.4, 2.5 and 3.3 s.
    let run = || Some([seconds(&[])?, seconds(&["--paths", "one"])?]);
    one_of_three(run, |[both, one]| *both < 0.8 * one);
}

#[test]
fn repairs_restore_what_a_lossy_link_loses() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(2_000_000)).unwrap();
    // A port that is free at the server's address and at the relay's, to which a client turns.
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let number = port.to_string();
    let serves = [
        &["--transport", "sctp", "--sctp-port", &number][..],
        &["--sctp-code", "tetrys:adaptive,128"],
    ];
    let server = bench.serve(&serves.concat());
    let path = ["--rate", "100mbit", "--delay", "10ms", "--loss", "3%", "--seed", "3"];
    let _relay =
        bench.relay_between(&format!("127.0.0.2:{port}"), &format!("127.0.0.1:{port}"), &path);
    let beside = bench.relay_between(
        "127.0.0.2:0",
        &format!("127.0.0.1:{}", server.port),
        &["--delay", "10ms"],
    );
    let url = server.url_with("127.0.0.2", beside.port, "file");
    let got = bench.run(&get(&url, "got"));
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(fs::read(bench.path("got")).unwrap() == content(2_000_000));
    let done = got.events().pop().unwrap();
    // Some 50 of 1700 packets are lost.
    assert!(done["sctp"]["chunks_restored"].as_u64().unwrap() > 20, "{done}");
    // It is never a default, and says what it does to others.
    let refused = bench.run(&["serve", "served", "--sctp-code", "block:10,9"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}
