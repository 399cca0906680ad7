//! `fontis estimate` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

#[test]
fn wrong_usage_exits_with_2_and_says_what_would_be_right() {
    let here = TempDir::new().expect("a folder");
    for (args, hint) in [
        (&["estimate"][..], "CAPTURE"),
        (&["estimate", "--live", "lo"], "--probe-port"),
        (&["estimate", "--probe", "somewhere"], "ADDRESS:PORT"),
        (&["estimate", "a.pcap", "--probe", "127.0.0.1:7"], "cannot be used with"),
        (&["estimate", "a.pcap", "--distance", "0"], "more than zero"),
        (&["estimate", "a.pcap", "--for", "1s"], "cannot be used with"),
    ] {
        let output = fontis(here.path(), args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), error.contains(hint)),
            (Some(2), true),
            "{args:?}: {error}"
        );
    }
    #[cfg(target_os = "linux")]
    for (args, hint) in [
        (&["estimate", "--live", "no-such", "--probe-port", "7"][..], "no interface"),
        (&["estimate", "--probe", "255.255.255.255:7", "--for", "100ms"], "cannot send"),
    ] {
        let output = fontis(here.path(), args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), error.contains(hint)),
            (Some(1), true),
            "{args:?}: {error}"
        );
    }
}

/// Probes and bursts of datagrams from one namespace into another, over an emulated link of 4
/// Mbit/s.
#[cfg(target_os = "linux")]
#[test]
fn a_link_s_rate_is_found_live_between_two_hosts() {
    let here = TempDir::new().expect("a folder");
    let possible = fontis(here.path(), &["testbed", "shell", "--", "true"]);
    if !possible.status.success() {
        eprintln!("not checked: {}", String::from_utf8_lossy(&possible.stderr));
        return;
    }
    // For 600 ms twice what the link carries, so that probes in between are later and later; then
    // it empties its queue.
    let bursts = "import socket, sys, time\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        open('ready', 'w').close()\n\
        time.sleep(1.5)\n\
        for _ in range(5):\n    \
            due = time.monotonic()\n    \
            for _ in range(60):\n        \
                for _ in range(8): s.sendto(bytes(1222), (sys.argv[1], 9))\n        \
                due += 0.01\n        \
                time.sleep(max(0, due - time.monotonic()))\n    \
            time.sleep(1.1)\n";
    fs::write(here.path().join("bursts.py"), bursts).expect("written");
    let fontis_path = env!("CARGO_BIN_EXE_fontis");
    // The shell is the sending side: its packets go up the link, to the namespace beside it. All
    // begin when the interpreter has been loaded, which takes seconds where files come from a slow
    // disk.
    let wait = "while ! [ -e ready ]; do sleep 0.1; done";
    let inside = format!(
        "({wait}; exec {fontis_path} estimate --probe $FONTIS_GATEWAY:7440 --for 13s --json) & \
         python3 bursts.py $FONTIS_GATEWAY || exit 9; wait"
    );
    let beside = format!(
        "{wait}; exec {fontis_path} estimate --live fontis0 --probe-port 7440 --for 12s --json >live.json 2>live.err"
    );
    let output = fontis(
        here.path(),
        &[
            "testbed", "shell", "--rate", "4mbit", "--delay", "20ms", "--buffer", "1MB",
            "--beside", &beside, "--", "sh", "-c", &inside,
        ],
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let live = fs::read_to_string(here.path().join("live.json")).expect("it watched");
    let error = fs::read_to_string(here.path().join("live.err")).unwrap_or_default();
    let events: Vec<Value> =
        live.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = events.last().unwrap_or_else(|| panic!("nothing was said: {error}"));
    assert_eq!(last["event"], "estimate", "{live}");
    let periods = last["busy_periods"].as_array().map_or(0, Vec::len);
    assert_eq!(events.len(), periods + 1, "each busy period was said when it ended: {live}");
    assert!(periods >= 3 && last["probes"].as_u64() > Some(50), "{live}");
    // Probes are late by what a busy machine adds; ten percent of a period of 150 ms is a lot of
    // that.
    let bps = last["bps"].as_f64().expect("an estimate");
    assert!((bps / 4e6 - 1.0).abs() < 0.3, "{bps}: {live}");
}

fn fontis(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fontis"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the command runs")
}

/// A simulated link of 3 Mbit/s, busy now and then, captured at its receiver's side.
#[test]
fn a_capture_of_a_simulated_link_gives_its_rate() {
    let here = TempDir::new().expect("a folder");
    let link = fontis_sim::analysis::cellular::Cellular::constant(3e6, 300.0);
    let (probes, traffic) = link.carry(1, &fontis_sim::analysis::cellular::Web::default(), 0.1);
    let mut packets: Vec<(f64, u32)> = probes.into_iter().map(|at| (at, 60)).collect();
    packets.extend(traffic);
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for (at, size) in packets {
        let (seconds, micros) = (at as u32, (at.fract() * 1e6) as u32);
        for word in [seconds, micros, 28, size] {
            bytes.extend(word.to_le_bytes());
        }
        let mut header = [0u8; 28];
        (header[0], header[9]) = (0x45, 17);
        header[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        header[16..20].copy_from_slice(&[10, 0, 0, 1]);
        header[22..24].copy_from_slice(&7u16.to_be_bytes());
        bytes.extend(header);
    }
    fs::write(here.path().join("link.pcap"), &bytes).expect("written");
    let output = fontis(here.path(), &["estimate", "link.pcap", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let bps = found["bps"].as_f64().expect("an estimate");
    assert!((bps / 3e6 - 1.0).abs() < 0.03, "{bps}");
    // A threshold that no queue reaches.
    let none = fontis(here.path(), &["estimate", "link.pcap", "--threshold", "1e9"]);
    assert!(String::from_utf8_lossy(&none.stdout).contains("no estimate"));
    // What is cut off is said.
    fs::write(here.path().join("cut.pcap"), &bytes[..bytes.len() - 5]).expect("written");
    fs::write(here.path().join("text.pcap"), "no capture at all").expect("written");
    let cut = fontis(here.path(), &["estimate", "cut.pcap", "--json"]);
    assert_eq!(cut.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&cut.stderr).contains("cut.pcap: its last frame is cut off"));
    for name in ["text.pcap", "absent.pcap"] {
        let output = fontis(here.path(), &["estimate", name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name));
    }
}
