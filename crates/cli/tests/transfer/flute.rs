//! Files over FLUTE: the real command on both ends, over loopback.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Bench, Running, content};

/// A receiver on a port of its own, and its address.
fn receiver(bench: &Bench, into: &str, arguments: &[&str]) -> (Running, String) {
    let ends = ["flute", "receive", into, "--listen", "127.0.0.1:0", "--json"];
    let mut running = Running::start(bench.command(&[&ends, arguments].concat()));
    let address = running.event("listening")["address"].as_str().unwrap().to_owned();
    (running, address)
}

/// Forwards datagrams to an address, but for one of each `every`; returns its own address.
fn lossy(to: String, every: usize) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap().to_string();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    std::thread::spawn(move || {
        let mut datagram = [0; 2000];
        for number in 0.. {
            let Ok(length) = socket.recv(&mut datagram) else { return };
            if number % every != 2 {
                let _ = socket.send_to(&datagram[..length], &to);
            }
        }
    });
    own
}

fn same(one: &Path, other: &Path) {
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{}", other.display());
}

#[test]
fn files_and_folders_cross_with_every_code() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("served/maps/deep")).unwrap();
    let files = [("maps/a b.txt", 5), ("maps/empty", 0), ("maps/deep/ä", 30_000), ("big", 900_000)];
    for (name, size) in files {
        fs::write(bench.path("served").join(name), content(size)).unwrap();
    }
    for (fec, every) in [("raptorq", 8), ("rs", 8), ("r10", 8), ("none", 1_000_000)] {
        let into = format!("in-{fec}");
        let (mut receiving, address) = receiver(&bench, &into, &["--timeout", "10 s"]);
        let to = lossy(address, every);
        let repair = if fec == "none" { "0" } else { "50" };
        let flags = ["--fec", fec, "--repair", repair, "--rounds", "2", "--rate", "60mbit"];
        let paths = ["flute", "send", "served/maps", "served/big", "--to", &to];
        let sent = bench.run(&[&paths[..], &flags].concat());
        assert_eq!(sent.code, 0, "{fec}: {}", sent.stderr);
        let done = receiving.event("done");
        assert_eq!(done["files"], 4, "{fec}: {done}");
        for (name, _) in files {
            same(&bench.path("served").join(name), &bench.path(&into).join(name));
        }
        let names = fs::read_dir(bench.path(&into)).unwrap().count();
        assert_eq!(names, 2, "{fec}: nothing else is left");
    }
}

#[test]
fn what_did_not_come_is_said_and_leaves_nothing() {
    let bench = Bench::new();
    fs::write(bench.path("served/big"), content(400_000)).unwrap();
    let (mut receiving, address) = receiver(&bench, "in", &["--timeout", "10 s"]);
    // Without a code nothing replaces what is lost.
    let to = lossy(address, 10);
    let flags = ["--fec", "none", "--rounds", "1", "--rate", "100mbit"];
    let sent = bench.run(&[&["flute", "send", "served/big", "--to", &to][..], &flags].concat());
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let done = receiving.event("done");
    assert_eq!((&done["files"], &done["missing"][0]), (&0.into(), &"file:///big".into()));
    let error = receiving.event("error")["message"].as_str().unwrap().to_owned();
    assert!(error.contains("the sender ended the session"), "{error}");
    assert_eq!(fs::read_dir(bench.path("in")).unwrap().count(), 0);
    let silent = ["flute", "receive", "in", "--listen", "127.0.0.1:0", "--timeout", "300 ms"];
    let silent = bench.run(&silent);
    assert_eq!(silent.code, 1);
    assert!(silent.stderr.contains("nothing came for 300 ms"), "{}", silent.stderr);
}

#[test]
fn a_file_with_a_name_that_leads_out_is_refused_and_one_that_is_there_stays() {
    let bench = Bench::new();
    fs::write(bench.path("served/x"), content(1000)).unwrap();
    fs::create_dir(bench.path("in")).unwrap();
    fs::write(bench.path("in/x"), "mine").unwrap();
    let send = |to: &str| {
        bench.run(&["flute", "send", "served/x", "--to", to, "--rounds", "1", "--rate", "50mbit"])
    };
    let (mut receiving, address) = receiver(&bench, "in", &[]);
    assert_eq!(send(&address).code, 0);
    let refused = receiving.event("refused");
    assert!(refused["reason"].as_str().unwrap().contains("exists"), "{refused}");
    assert_eq!(receiving.event("done")["files"], 0);
    assert_eq!(fs::read(bench.path("in/x")).unwrap(), b"mine");
    let (mut receiving, address) = receiver(&bench, "in", &["--force"]);
    assert_eq!(send(&address).code, 0);
    assert_eq!(receiving.event("done")["files"], 1);
    same(&bench.path("served/x"), &bench.path("in/x"));

    // A table of somebody else: one symbol without a code, whose file is empty.
    let (mut receiving, address) = receiver(&bench, "in", &[]);
    let xml = "<FDT-Instance Expires=\"4294967295\" Complete=\"true\"><File TOI=\"1\" \
               Content-Location=\"file:///a/%2e%2e/%2e%2e/out\" Content-Length=\"0\"/></FDT-Instance>";
    let mut datagram = vec![0x10, 0xa0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    datagram.extend([192, 0x20, 0, 1, 64, 4, 0, 0]);
    datagram.extend((xml.len() as u32).to_be_bytes());
    datagram.extend([0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    datagram.extend(xml.as_bytes());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&datagram, &address).unwrap();
    let refused: Value = receiving.event("refused");
    assert!(refused["location"].as_str().unwrap().contains("%2e%2e"), "{refused}");
    assert_eq!(receiving.event("done")["files"], 0);
    assert!(!bench.path("out").exists() && !bench.path("in/a").exists());
}

#[test]
fn wrong_flags_are_said() {
    let bench = Bench::new();
    fs::write(bench.path("served/x"), "x").unwrap();
    for (arguments, hint) in [
        (&["send", "served/x", "--to", "127.0.0.1:9", "--fec", "best"][..], "raptorq"),
        (&["send", "served/x", "--to", "127.0.0.1:9", "--fec", "none", "--repair", "5"], "repair"),
        (&["send", "served/x", "--to", "127.0.0.1:9", "--symbol-size", "1401"], "multiple of 4"),
        (&["send", "served/x", "--to", "127.0.0.1:9", "--interface", "lo"], "--interface"),
        (&["send", "served/x", "--to", "127.0.0.1:9", "--rate", "1kbit"], "8 kbit/s"),
        (&["receive", "--listen", "232.1.2.3:4437"], "--source"),
        (&["receive", "--listen", "127.0.0.1:0", "--objects", "0"], "--objects"),
    ] {
        let run = bench.run(&[&["flute"], arguments].concat());
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(hint), "{arguments:?}: {}", run.stderr);
    }
    let run = bench.run(&["flute", "send", "nowhere", "--to", "127.0.0.1:9"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
}
