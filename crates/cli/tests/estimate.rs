//! `fontis estimate` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

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
    let link = fontis_sim::cellular::Cellular::constant(3e6, 300.0);
    let (probes, traffic) = link.carry(1, &fontis_sim::cellular::Web::default(), 0.1);
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
    // What is cut off is said, not guessed.
    fs::write(here.path().join("cut.pcap"), &bytes[..bytes.len() - 5]).expect("written");
    fs::write(here.path().join("text.pcap"), "no capture at all").expect("written");
    for name in ["cut.pcap", "text.pcap", "absent.pcap"] {
        let output = fontis(here.path(), &["estimate", name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name));
    }
}
