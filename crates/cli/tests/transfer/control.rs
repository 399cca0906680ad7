//! Commands that are told how fast they may be, and asked what they do, while they run.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bench, Listener, Running, content, hash};

const SIZE: usize = 6_000_000;

/// A server with a file of `SIZE` bytes, and one that fetches it at 4 Mbit/s.
fn begin(bench: &Bench, served: &[&str]) -> (Listener, Running) {
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    let server = bench.serve(served);
    let get = ["get", &server.url_of("file"), "there", "--json", "--limit", "4mbit"];
    let mut get = Running::start(bench.command(&get));
    get.event("progress");
    (server, get)
}

fn status(bench: &Bench, pid: u32) -> Value {
    let asked = bench.run(&["status", "--json", "--pid", &pid.to_string()]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    serde_json::from_str(&asked.stdout).unwrap()
}

/// What one process is told, and says.
fn tell(bench: &Bench, pid: u32, change: &str) -> String {
    let told = bench.run(&["limit", change, "--pid", &pid.to_string()]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    told.stdout
}

fn received(bench: &Bench, pid: u32) -> u64 {
    status(bench, pid)["connections"][0]["bytes_received"].as_u64().unwrap()
}

fn arrives(bench: &Bench, mut get: Running) {
    get.event("done");
    assert_eq!(hash(&bench.path("there")), hash(&bench.path("served/file")));
}

#[test]
fn nobody_is_faster_than_the_limit_and_whoever_is_several_shares_it() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE / 4)).unwrap();
    let server = bench.serve(&["--limit", "24mbit"]);
    let start = Instant::now();
    let gets = ["a", "b"].map(|name| {
        Running::start(bench.command(&["get", &server.url_of("file"), name, "--json"]))
    });
    let [first, second] = gets.map(|mut get| get.event("done")["seconds"].as_f64().unwrap());
    let rate = 2.0 * 8.0 * (SIZE / 4) as f64 / start.elapsed().as_secs_f64();
    assert!(rate < 24e6, "{rate} bit/s of content");
    assert!(first.min(second) > 0.6, "not one after the other: {first} s and {second} s");
}

#[test]
fn a_receiver_limits_its_sender_and_lifts_the_limit() {
    let bench = Bench::new();
    let (server, get) = begin(&bench, &[]);
    let (pid, asked) = (get.id(), server.id());
    // The time includes that of both questions: on a busy machine the rate looks lower than it is,
    // never higher.
    let start = Instant::now();
    let from = received(&bench, pid);
    std::thread::sleep(Duration::from_secs(2));
    let bits = 8 * (received(&bench, pid) - from);
    let rate = bits as f64 / start.elapsed().as_secs_f64();
    assert!(rate < 4.1e6 && rate > 0.5e6, "{rate} bit/s where the limit is 4 Mbit/s");
    let sender = &status(&bench, asked)["connections"][0];
    assert_eq!(sender["sending"], true, "{sender}");
    // A busy machine may look like a slower path to the rate controller.
    assert!((1..=4_000_000).contains(&sender["rate_bps"].as_u64().unwrap()), "{sender}");
    let said = tell(&bench, pid, "none");
    assert_eq!(said, format!("{pid}: get file, no limit\n"));
    arrives(&bench, get);
    assert!(start.elapsed() < Duration::from_secs(10), "4 Mbit/s would take 12 s");
}

#[test]
fn a_pause_on_either_side_stops_what_is_sent_until_it_goes_on() {
    let bench = Bench::new();
    let (server, get) = begin(&bench, &[]);
    let pid = get.id();
    for paused in [pid, server.id()] {
        tell(&bench, paused, "pause");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(status(&bench, paused)["paused"], true);
        let before = received(&bench, pid);
        std::thread::sleep(Duration::from_secs(1));
        let more = received(&bench, pid) - before;
        // Packets that keep the connection alive are few; at 4 Mbit/s it would be 500,000 bytes.
        assert!(more < 20_000, "{more} bytes during a pause");
        tell(&bench, paused, "continue");
    }
    assert_eq!(status(&bench, pid)["limit_bps"], 4_000_000);
    tell(&bench, pid, "40mbit");
    arrives(&bench, get);
}

#[test]
fn keys_at_the_terminal_steer_a_transfer() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(SIZE)).unwrap();
    let server = bench.serve(&[]);
    let get = bench.command(&["get", &server.url_of("file"), "there", "--limit", "4mbit"]);
    // The program script gives it a terminal.
    let words = std::iter::once(get.get_program()).chain(get.get_args());
    let words: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let mut script = Command::new("script");
    script.args(["-qefc", &words.join(" "), "/dev/null"]).current_dir(bench.path(""));
    script.envs(get.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut script =
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut keys = script.stdin.take().unwrap();
    let mut press = |key: &[u8]| keys.write_all(key).and_then(|()| keys.flush()).unwrap();
    let wait = |want: &dyn Fn(&Value) -> bool| {
        let start = Instant::now();
        loop {
            let asked = bench.run(&["status", "--json"]);
            let lines = asked.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
            if lines.into_iter().any(|one: Value| one["command"] == "get" && want(&one)) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{}", asked.stdout);
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait(&|one| one["connections"][0]["receiving"] == true);
    press(b" ");
    wait(&|one| one["paused"] == true);
    press(b"p");
    wait(&|one| one["paused"] == false);
    press(b"+");
    wait(&|one| one["limit_bps"] == 5_000_000);
    press(b"--");
    wait(&|one| one["limit_bps"] == 3_200_000);
    press(b"u");
    let output = script.wait_with_output().unwrap();
    assert!(output.status.success());
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("paused") && shown.contains("no limit"), "{shown}");
    assert_eq!(hash(&bench.path("there")), hash(&bench.path("served/file")));
}

#[test]
fn status_tells_what_ran_and_what_is_there_no_more() {
    let bench = Bench::new();
    let nobody = bench.run(&["status"]);
    assert!(nobody.failed_with("no Fontis of this user is running"), "{}", nobody.stderr);
    fs::write(bench.path("served/file"), content(1000)).unwrap();
    let server = bench.serve(&["--limit", "8mbit"]);
    assert_eq!(bench.run(&["get", &server.url_of("file"), "there"]).code, 0);
    let told = status(&bench, server.id());
    let counts =
        ["accepted", "finished", "failed", "bytes", "limit_bps"].map(|key| told[key].as_u64());
    assert_eq!(counts, [1, 1, 0, 1000, 8_000_000].map(Some));
    let text = bench.run(&["status"]).stdout;
    assert!(
        text.contains("serve served, limit 8.0 Mbit/s") && text.contains("1 transfers"),
        "{text}"
    );
    let metrics = bench.run(&["status", "--prometheus"]).stdout;
    let labels = format!("{{pid=\"{}\",command=\"serve\"}}", server.id());
    for line in ["finished_total", "accepted_total"].map(|name| format!("fontis_{name}{labels} 1"))
    {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    assert_eq!(metrics.lines().last(), Some("# EOF"));
    // Killed without a chance to tidy up.
    let pid = server.id().to_string();
    drop(server);
    assert_eq!(fs::read_dir(bench.path("run/fontis")).unwrap().count(), 1);
    let gone = bench.run(&["limit", "pause", "--pid", &pid]);
    assert!(gone.failed_with("is no running Fontis"), "{}", gone.stderr);
    assert_eq!(fs::read_dir(bench.path("run/fontis")).unwrap().count(), 0);
}

#[test]
fn limits_that_make_no_sense_are_wrong_usage() {
    let bench = Bench::new();
    for (words, hint) in [
        (&["limit", "3"][..], "none, pause and continue"),
        (&["limit", "0mbit"][..], "too slow"),
        (&["serve", "served", "--limit", "fast"][..], "--limit"),
        (&["status", "--json", "--prometheus"][..], "--prometheus"),
    ] {
        let wrong = bench.run(words);
        assert_eq!(wrong.code, 2, "{words:?}");
        assert!(wrong.stderr.contains(hint), "{}", wrong.stderr);
    }
}
