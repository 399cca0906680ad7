//! `fontis sim` as a user meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn fontis(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fontis"))
        .current_dir(folder)
        .env("FONTIS_SCENARIOS", scenarios())
        .arg("sim")
        .args(args)
        .output()
        .expect("the command runs")
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

const SHORT: &str = r#"
[scenario]
id = "short"
duration = "3 s"
repetitions = 2
[topology]
rate = "10 Mbit/s"
[[flow]]
count = 2
[sweep]
topology.rtt = ["10 ms", "50 ms"]
"#;

/// All files below a folder, with their bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_what_is_recorded_is_not_run_again() {
    let here = TempDir::new().expect("a folder");
    fs::write(here.path().join("short.toml"), SHORT).expect("written");
    let first = fontis(here.path(), &["short.toml", "-o", "one", "--jobs", "2"]);
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(stdout(&first).contains("4 of 4 runs, 0 of them from before"), "{}", stdout(&first));
    let second = fontis(here.path(), &["short.toml", "-o", "two", "--jobs", "1"]);
    assert!(second.status.success());
    let [one, two] = ["one", "two"].map(|name| files(&here.path().join(name)));
    assert!(one.len() == 29, "seven files a run and the summary: {}", one.len());
    for ((path, a), (_, b)) in one.iter().zip(&two) {
        assert!(a == b, "{} differs", path.display());
    }
    // One run is lost; the others are kept.
    fs::remove_dir_all(here.path().join("one/short/00002")).expect("removed");
    let again = fontis(here.path(), &["short.toml", "-o", "one", "--json"]);
    let events: Vec<Value> = stdout(&again)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    let kept: Vec<bool> =
        events[..4].iter().map(|event| event["kept"].as_bool().expect("kept")).collect();
    assert_eq!(kept, [true, true, false, true]);
    assert_eq!(events[4]["done"], 4);
    assert!(files(&here.path().join("one")) == one, "what was lost is as it was");
    // Another seed is another recording.
    let other = fontis(here.path(), &["short.toml", "-o", "one", "--seed", "9"]);
    assert!(stdout(&other).contains("0 of them from before"), "{}", stdout(&other));
    assert!(files(&here.path().join("one")) != one, "the seed decides");
}

#[test]
fn wrong_usage_is_answered_with_what_would_be_right() {
    let here = TempDir::new().expect("a folder");
    fs::write(here.path().join("bad.toml"), "[topology]\nrtt = \"50\"").expect("written");
    for (args, parts) in [
        (&["bad.toml"][..], &["bad.toml", "line 2", "topology.rtt", "50 ms"][..]),
        (&["X0815"], &["X0815", "X21"]),
        (&["B01", "--set", "topology.rtt=fast"], &["--set topology.rtt=fast", "50 ms"]),
        (&["B01", "--set", "nonsense"], &["KEY=VALUE"]),
        (&["--explain", "topology.buffr"], &["topology.buffer"]),
    ] {
        let output = fontis(here.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        for part in parts {
            assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn scenarios_and_keys_are_listed_and_explained() {
    let here = TempDir::new().expect("a folder");
    let listed = stdout(&fontis(here.path(), &["--list", "--json"]));
    let listed: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let on_disk = files(&scenarios()).len();
    assert_eq!(listed.len(), on_disk, "every scenario in the tree can be read");
    let table = listed.iter().find(|entry| entry["id"] == "X21").expect("Table 4.1");
    assert_eq!(table["figure"], "Table 4.1");
    let mut ids: Vec<&Value> = listed.iter().map(|entry| &entry["id"]).collect();
    ids.dedup();
    assert_eq!(ids.len(), on_disk, "ids are unique");
    let explained = stdout(&fontis(here.path(), &["--explain", "topology.buffer"]));
    assert!(explained.contains("1 BDP"), "{explained}");
}

#[test]
fn a_scenario_is_found_by_its_id_whatever_else_is_there() {
    let here = TempDir::new().expect("a folder");
    let scenario = |name: &str, text: &str| {
        fs::create_dir_all(here.path().join("mine/deep")).expect("made");
        fs::write(here.path().join("mine").join(name), text).expect("written");
    };
    scenario("a.toml", "this is no table");
    scenario("b.toml", "[scenario]\nid = \"WRONG\"\nduration = \"long\"\n");
    scenario("deep/c.toml", "[scenario]\nid = \"MINE\"\nduration = \"1 s\"\n[[flow]]\n");
    let run = |id: &str| {
        Command::new(env!("CARGO_BIN_EXE_fontis"))
            .current_dir(here.path())
            .env("FONTIS_SCENARIOS", "mine")
            .args(["sim", id, "-o", "out"])
            .output()
            .expect("the command runs")
    };
    let found = run("mine");
    assert!(found.status.success(), "{}", stderr(&found));
    for (id, parts) in [
        ("wrong", &["b.toml", "line 3", "scenario.duration"][..]),
        ("none", &["no scenario \"none\"", "WRONG, MINE"]),
    ] {
        let output = run(id);
        assert_eq!(output.status.code(), Some(2), "{id}");
        for part in parts {
            assert!(stderr(&output).contains(part), "{id}: {}", stderr(&output));
        }
    }
}

#[test]
fn packets_that_pass_through_their_bytes_give_the_same_recording_and_a_capture() {
    let here = TempDir::new().expect("a folder");
    let text = SHORT
        .replace("[[flow]]", "loss = \"1%\"\nqueue = \"codel-ecn\"\n[tcp]\necn = true\n[[flow]]");
    fs::write(here.path().join("short.toml"), text).expect("written");
    for args in [&["short.toml", "-o", "typed"][..], &["short.toml", "-o", "bytes", "--wire"]] {
        let output = fontis(here.path(), args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let [typed, bytes] = ["typed", "bytes"].map(|name| files(&here.path().join(name)));
    assert_eq!(typed.len(), bytes.len());
    for ((path, a), (_, b)) in typed.iter().zip(&bytes) {
        assert!(a == b, "{} differs", path.display());
    }
    let output = fontis(here.path(), &["short.toml", "-o", "typed", "--pcap"]);
    assert!(stdout(&output).contains("0 of them from before"), "{}", stdout(&output));
    let capture =
        fs::read(here.path().join("typed/short/00000/packets.pcapng")).expect("a capture");
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    // Some 800 packets a second and acknowledgements, for three seconds.
    assert!(capture.len() > 200_000, "{}", capture.len());
}

#[test]
fn a_qlog_stands_beside_the_recording_and_can_be_viewed() {
    let here = TempDir::new().expect("a folder");
    fs::write(here.path().join("short.toml"), SHORT).expect("written");
    let both = ["short.toml", "--qlog", "--packets"];
    for (args, kept) in [(&both[..1], 0), (&both[..2], 0), (&both[..], 0), (&both[..], 4)] {
        let output = fontis(here.path(), args);
        assert!(output.status.success(), "{}", stderr(&output));
        let before = format!("{kept} of them from before");
        assert!(stdout(&output).contains(&before), "{args:?}: {}", stdout(&output));
    }
    let folder = here.path().join("recordings/short/00000");
    let qlog = fs::read_to_string(folder.join("packets.sqlog")).expect("a qlog");
    assert!(qlog.starts_with('\u{1e}') && qlog.ends_with('\n'));
    // Some 800 packets a second, acknowledgements and what they change, for three seconds.
    assert!(qlog.matches("transport:packet_sent").count() > 1500);
    assert!(qlog.matches("recovery:metrics_updated").count() > 500);
    let output = Command::new(env!("CARGO_BIN_EXE_fontis"))
        .current_dir(here.path())
        .args(["view", "recordings/short/00000/packets.sqlog", "--svg", "figure.svg"])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read_to_string(here.path().join("figure.svg")).expect("a figure").contains("<svg"));
}
