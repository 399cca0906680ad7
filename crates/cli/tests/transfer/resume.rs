//! Transfers that are interrupted and go on: no byte is wrong, and little is sent twice.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bench, Running, content, hash};

const SIZE: usize = 12_000_000;
/// What a kill may cost on average. That counts what was on its way, and what the server sends
/// until it notices: the file is sent at 3.75 MB/s with a round trip of 20 ms.
const ALLOWED: u64 = 400_000;

/// Times from a seed, printed, in milliseconds.
fn moments(seed: u64, range: std::ops::Range<u64>) -> impl Iterator<Item = Duration> {
    println!("seed {seed}");
    let mut state = seed;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(range.start + (state >> 33) % (range.end - range.start))
    })
}

/// Bytes that the relay let through towards the receiver, as it says at its end.
fn delivered(mut relay: Running, direction: &str) -> u64 {
    relay.interrupt();
    loop {
        let line: Value = serde_json::from_str(&relay.line()).unwrap();
        if let Some(bytes) = line[direction]["delivered"]["bytes"].as_u64() {
            return bytes;
        }
    }
}

/// Either side is killed at random moments, `FONTIS_RUNS` times in all, over as many transfers as
/// that takes.
#[test]
fn fetches_whose_ends_are_killed_again_and_again_are_right_and_send_little_twice() {
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (runs, seed) = (number("FONTIS_RUNS", 20), number("FONTIS_SEED", 21));
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    let expected = hash(&bench.path("served/file"));
    fs::create_dir(bench.path("config")).unwrap();
    let mut server = bench.serve(&["--identity", "config/server.key"]);
    let address = format!("127.0.0.1:{}", server.port);
    let path = ["--rate", "30mbit", "--delay", "10ms", "--loss", "5%", "--seed", "5"];
    let relay = bench.relay("127.0.0.1", server.port, &path);
    let url = server.url_with("127.0.0.1", relay.port, "file");
    let (mut kills, mut transfers) = (0, 0);
    let mut times = moments(seed, 200..700);
    while kills < runs {
        let start = || Running::start(bench.command(&["get", &url, "got", "--json"]));
        let mut get = Some(start());
        transfers += 1;
        loop {
            let (begin, time) = (Instant::now(), times.next().unwrap());
            let mut is_over = || get.as_mut().is_none_or(Running::is_over);
            while begin.elapsed() < time && !is_over() {
                std::thread::sleep(Duration::from_millis(5));
            }
            if is_over() || kills == runs {
                break;
            }
            assert!(!bench.path("got").exists() || hash(&bench.path("got")) == expected);
            kills += 1;
            if kills % 4 == 0 {
                drop(server);
                server = bench.serve_on(&address, &["--identity", "config/server.key"]);
            } else {
                get = None;
                // It may have ended, but for its farewell.
                if !bench.path("got").exists() {
                    get = Some(start());
                }
            }
        }
        if let Some(mut get) = get {
            get.event("done");
        }
        assert_eq!(hash(&bench.path("got")), expected);
        assert_eq!(bench.leftovers(), ["got"]);
        fs::remove_file(bench.path("got")).unwrap();
    }
    let bytes = delivered(relay.into_running(), "down");
    let least = transfers * SIZE as u64 * 1500 / 1432;
    let again = bytes.saturating_sub(least) / kills.max(1);
    println!("{kills} kills, {transfers} transfers, {bytes} bytes for {least}");
    println!("a kill: {again} bytes more, {:.2} % of the file", 100.0 * again as f64 / SIZE as f64);
    assert!(bytes < least * 102 / 100 + kills * ALLOWED, "{bytes} bytes for {least}");
}

#[test]
fn a_folder_that_is_sent_goes_on_after_its_sender_was_killed() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("name/a/empty")).unwrap();
    for i in 0..200 {
        fs::write(bench.path(&format!("name/a/{i}")), content(10_000 + i)).unwrap();
    }
    fs::write(bench.path("name/long"), content(4_000_000)).unwrap();
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&[]);
    let path =
        ["--rate", "30mbit", "--delay", "10ms", "--loss", "2%", "--loss-up", "2%", "--seed", "6"];
    let relay = bench.relay("127.0.0.1", receiver.port, &path);
    let url = receiver.url_with("127.0.0.1", relay.port, "");
    let mut kills = 0;
    for time in moments(22, 0..100).take(3) {
        let mut send = Running::start(bench.command(&["send", "name", &url, "--json"]));
        // The second block is read when the first is on its way.
        while send.event("progress")["bytes"].as_u64().unwrap() < 2_000_000 {}
        std::thread::sleep(time);
        drop(send);
        kills += 1;
        assert!(!bench.path("inbox/name").exists());
    }
    let sent = bench.run(&["send", "name", &url, "--json"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let resumed = sent.events().last().unwrap()["resumed"].as_u64().unwrap();
    assert!(resumed > 0);
    let mut diff = Command::new("diff");
    diff.arg("-r").args([bench.path("name"), bench.path("inbox/name")]);
    assert!(diff.status().unwrap().success());
    let bytes = delivered(relay.into_running(), "up");
    let least = 6_019_900 * 1500 / 1432;
    assert!(bytes < least * 103 / 100 + kills * ALLOWED, "{bytes} bytes, {kills} kills");
}

#[test]
fn a_fetch_goes_on_by_itself_when_its_server_comes_back() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    let identity = ["--identity", "server.key", "--rate", "40mbit"];
    let server = bench.serve(&identity);
    let (url, port) = (server.url_of("file"), server.port);
    let mut get = Running::start(bench.command(&["get", &url, "got", "--json"]));
    while get.event("progress")["bytes"].as_u64().unwrap() < 2_000_000 {}
    drop(server);
    let _server = bench.serve_on(&format!("127.0.0.1:{port}"), &identity);
    let done = get.event("done");
    assert!(done["resumed"].as_u64().unwrap() >= 2_000_000, "{done}");
    assert_eq!(hash(&bench.path("got")), hash(&bench.path("served/file")));
}

#[test]
fn a_source_that_changed_since_is_fetched_as_it_is_now() {
    let bench = Bench::new();
    let mut bytes = content(SIZE);
    fs::write(bench.path("served/file"), &bytes).unwrap();
    let server = bench.serve(&["--rate", "40mbit"]);
    let mut get = Running::start(bench.command(&["get", &server.url_of("file"), "got", "--json"]));
    while get.event("progress")["bytes"].as_u64().unwrap() < 4_000_000 {}
    drop(get);
    bytes[1_500_000] ^= 1;
    fs::write(bench.path("served/file"), &bytes).unwrap();
    let got = bench.run(&["get", &server.url_of("file"), "got", "--json"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(fs::read(bench.path("got")).unwrap() == bytes);
    let done = got.events().pop().unwrap();
    assert!(
        done["resumed"].as_u64().unwrap() >= 2_000_000,
        "blocks that are the same serve: {done}"
    );
}

#[test]
fn restart_begins_anew() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    let server = bench.serve(&["--rate", "60mbit"]);
    let mut get = Running::start(bench.command(&["get", &server.url_of("file"), "got", "--json"]));
    while get.event("progress")["bytes"].as_u64().unwrap() < 2_000_000 {}
    drop(get);
    let got = bench.run(&["get", &server.url_of("file"), "got", "--json", "--restart"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert_eq!(got.events().pop().unwrap()["resumed"], 0);
    assert_eq!(hash(&bench.path("got")), hash(&bench.path("served/file")));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_in_a_line_and_the_transfer_goes_on_when_there_is_room() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(4_000_000)).unwrap();
    fs::create_dir(bench.path("small")).unwrap();
    let server = bench.serve(&["--rate", "16mbit"]);
    // A small disk in a mount namespace of its own, on which something else grows meanwhile.
    let script = r#"
        mount -t tmpfs -o size=6m none small || exit 77
        "$0" get "$1" small/ &
        # Until a third of it is there, or the time is over.
        for wait in $(seq 200); do
            stored=$(du -k small/.file.fontis-partial 2>&- | cut -f 1)
            test "${stored:-0}" -gt 1300 && break
            sleep 0.02
        done
        head -c 6m /dev/zero > small/filler 2>/dev/null
        wait $! ; echo "full: $?"
        test -e small/file && echo named
        rm small/filler
        "$0" get "$1" small/ --json | grep '"done"'
        cmp small/file served/file && echo same"#;
    let fontis = env!("CARGO_BIN_EXE_fontis");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, fontis, &server.url_of("file")]);
    command.current_dir(bench.path("")).env("XDG_CONFIG_HOME", bench.path("config"));
    command.env("XDG_CACHE_HOME", bench.path("cache")).env("XDG_RUNTIME_DIR", bench.path("run"));
    let output = command.output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || stderr.starts_with("unshare: ") {
        eprintln!("skipped: no mount namespace here: {stderr}");
        return;
    }
    assert!(stderr.contains("no space left for small/file: make room"), "{stderr}");
    assert!(stdout.contains("full: 1") && !stdout.contains("named"), "{stdout}");
    let done = stdout.lines().find(|line| line.contains("done")).unwrap();
    let done: Value = serde_json::from_str(done).unwrap();
    assert!(done["resumed"].as_u64().unwrap() > 0, "{done}");
    assert!(stdout.contains("same"), "{stdout}");
}
