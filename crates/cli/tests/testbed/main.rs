//! The `testbed` and `race` commands as a user meets them. Where this machine makes no networks,
//! only errors are checked, and that is said.
#![cfg(target_os = "linux")]

mod paths;
mod race;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

fn fontis(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontis"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    fontis(arguments).output().expect("it runs")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The kernel's algorithms are the machine's: one test at a time changes them.
static KERNEL: Mutex<()> = Mutex::new(());

#[test]
fn an_algorithm_is_in_the_kernel_until_it_is_unloaded() {
    let _alone = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    let unknown = output(&["kernel", "load", "tahoe"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(error(&unknown).contains("there is fld"), "{}", error(&unknown));
    let status = || output(&["kernel", "status", "fld", "--json"]);
    let said = |output: &Output| -> Value {
        serde_json::from_slice(&output.stdout).expect("a line of JSON")
    };
    let before = status();
    if !before.status.success() {
        assert_eq!(said(&before)["event"], "error");
        return eprintln!("not checked: {}", said(&before)["message"]);
    }
    if said(&before)["loaded"] == true {
        return eprintln!("not checked: somebody has loaded it here");
    }
    let loaded = output(&["kernel", "load", "fld"]);
    if error(&loaded).contains("this kernel cannot") {
        return eprintln!("not checked: {}", error(&loaded));
    }
    assert!(loaded.status.success(), "{}", error(&loaded));
    assert_eq!(said(&status())["loaded"], true);
    let again = output(&["kernel", "load", "fld"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(error(&again).contains("kernel unload fld"), "{}", error(&again));
    assert!(output(&["kernel", "unload", "fld"]).status.success());
    assert_eq!(said(&status())["loaded"], false);
    let gone = output(&["kernel", "unload", "fld"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(error(&gone).contains("kernel load fld"), "{}", error(&gone));
}

#[test]
fn a_trial_that_is_ended_early_restores_the_default_and_says_what_it_found() {
    let _alone = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    let wrong = output(&["kernel", "try", "fld", "--for", "1h", "--share", "0%"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("from 1% to 99%"), "{}", error(&wrong));
    let unknown = output(&["kernel", "try", "tahoe", "--for", "1h"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", error(&unknown));
    // In a network namespace of its own: the machine's default is not touched.
    let script = "default=/proc/sys/net/ipv4/tcp_congestion_control; echo reno > $default
        \"$1\" kernel try fld --for 1h --json 2> \"$2\" &
        until grep -q Ctrl-C \"$2\"; do kill -0 $! || break; sleep .1; done
        kill -TERM $!; wait $! || { cat \"$2\" >&2; exit 9; }
        cat $default";
    let said = tempfile::NamedTempFile::new().expect("a file");
    let tried = Command::new("unshare")
        .args(["-n", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_fontis")])
        .arg(said.path())
        .output();
    let Ok(tried) = tried else { return eprintln!("not checked: there is no unshare") };
    if !tried.status.success() {
        // Without permission it says so in one line.
        let lacks = ["permission denied", "Operation not permitted", "this kernel cannot"];
        let said = error(&tried) + &String::from_utf8_lossy(&tried.stdout);
        assert!(lacks.iter().any(|lack| said.contains(lack)), "{said}");
        return eprintln!("not checked: {said}");
    }
    let said = String::from_utf8_lossy(&tried.stdout).into_owned();
    let (outcome, default) = said.trim().rsplit_once('\n').expect("two lines");
    assert_eq!(default, "reno");
    let outcome: Value = serde_json::from_str(outcome).expect("JSON");
    assert_eq!(outcome["names"], serde_json::json!(["fld", "reno"]));
}

/// Whether networks can be made here; says so if not.
fn possible() -> bool {
    let output = output(&["testbed", "shell", "--", "true"]);
    let possible = output.status.success();
    if !possible {
        eprintln!("not checked: {}", error(&output));
    }
    possible
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_would_be_right() {
    for (arguments, hint) in [
        (&["testbed", "shell", "--delay", "50"][..], "50 ms"),
        (&["testbed", "shell", "--super-packets", "big"], "auto, whole, cut"),
        (&["testbed", "shell", "--mtu", "60"], "at least 68"),
        (&["testbed", "run", "no-such-scenario"], "no file"),
        (&["testbed", "run", "B01", "--packets"], "simulator only"),
        (&["testbed", "run", "B01", "--qlog"], "simulator only"),
        (&["race", "/nonexistent"], "name a file"),
        (&["race", "/dev/null"], "name one"),
        (&["race", env!("CARGO_BIN_EXE_fontis"), "--against", "snail"], "cubic, bbr"),
        (&["race", env!("CARGO_BIN_EXE_fontis"), "--rate", "0mbit"], "100mbit"),
        (&["race", env!("CARGO_BIN_EXE_fontis"), "--against", "mptcp-bbr"], "several paths"),
        (&["race", env!("CARGO_BIN_EXE_fontis"), "--path", "50mbit"], "RATE,RTT,LOSS"),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(hint), "{arguments:?}: {}", error(&output));
    }
}

#[test]
fn who_may_not_make_networks_is_told_in_a_line_what_is_missing() {
    let mut command = fontis(&["testbed", "shell", "--", "true"]);
    // Nobody's number; where this process may not become that, nothing is checked.
    command.uid(65_534).gid(65_534);
    let Ok(output) = command.output() else { return eprintln!("not checked: not root") };
    if output.status.success() {
        return;
    }
    let text = error(&output);
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("run it as root") && text.contains("let "), "{text}");
}

/// Becomes nobody, who may use /dev/net/tun as users of most systems may, in a mount namespace of
/// its own.
const AS_NOBODY: &str = "set -e; at=$(mktemp -d); mknod $at/tun c 10 200; chmod 666 $at/tun
    mount --bind $at/tun /dev/net/tun; rm -r $at
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \"$@\"";

#[test]
fn who_is_not_root_gets_networks_in_a_user_namespace() {
    let script = "test $(id -u) = 65534 && ping -c 1 -W 2 $FONTIS_GATEWAY >/dev/null && exit 5";
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "sh",
        "-c",
        AS_NOBODY,
        "sh",
        env!("CARGO_BIN_EXE_fontis"),
        "testbed",
        "shell",
    ]);
    command.args(["--delay", "1ms", "--beside", "sleep 9", "--", "sh", "-c", script]);
    match command.stdin(Stdio::null()).output() {
        Err(error) => eprintln!("not checked: unshare: {error}"),
        Ok(output) if output.status.code() == Some(5) => {}
        // Nobody may be unable to reach the command, the system to make such namespaces; ours is
        // then the last word.
        Ok(output) => {
            let text = error(&output);
            let ours = text.lines().last().is_some_and(|line| line.contains("run it as root"));
            assert!(ours || !text.contains("fontis: "), "{text}");
            eprintln!("not checked: {text}");
        }
    }
}

#[test]
fn a_command_finds_the_gateway_and_its_exit_code_is_passed_on() {
    if !possible() {
        return;
    }
    let script = "echo gateway $FONTIS_GATEWAY and $FONTIS_GATEWAY6; exit 7";
    let output = output(&["testbed", "shell", "--loss", "1%", "--stats", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", error(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("gateway 100.") && text.contains("and fd66:"), "{text}");
    assert!(error(&output).contains("late  up"), "{}", error(&output));
    let output = self::output(&["testbed", "shell", "--", "no-such-command"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("check that it is installed"), "{}", error(&output));
}

/// Network namespaces with processes in them, and interfaces of ours here.
fn traces() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(MARK) {
            found.insert(format!("process {}", process.file_name().to_string_lossy()));
        }
    }
    found
}

/// Tells this test's processes from all others.
const MARK: &str = "98765.4321";

#[test]
fn killed_at_random_moments_it_leaves_nothing() {
    if !possible() {
        return;
    }
    let links = || std::fs::read_dir("/sys/class/net").map_or(0, Iterator::count);
    let seed = 7;
    let mut stream = fontis_base::Stream::new(seed, "moments");
    for round in 0..12 {
        let script = format!("sleep {MARK} & setsid sleep {MARK} & sleep {MARK}");
        let beside = format!("sleep {MARK}");
        let shell = ["testbed", "shell", "--beside", &beside, "--", "sh", "-c", &script];
        let mut child = fontis(&shell).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(stream.below(120_000)));
        if round % 3 == 2 {
            let pid = i32::try_from(child.id()).expect("a number");
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid).expect("not zero"),
                rustix::process::Signal::TERM,
            )
            .expect("it is there");
        } else {
            child.kill().expect("it is there");
        }
        child.wait().expect("it ends");
        let begin = Instant::now();
        while !traces().is_empty() {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "seed {seed}, {round}: {:?}",
                traces()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // Other tests have interfaces for a while.
    let begin = Instant::now();
    while links() > interfaces_without_ours() {
        assert!(begin.elapsed() < Duration::from_secs(60), "an interface is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn interfaces_without_ours() -> usize {
    let names = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    names.filter(|name| !name.file_name().to_string_lossy().starts_with("fontis")).count()
}

fn scenario(folder: &Path, text: &str) -> (Value, Value) {
    let path = folder.join("tiny.toml");
    std::fs::write(&path, text).expect("it can be written");
    let out = folder.join("out");
    let (path, out) = (path.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let output = output(&["testbed", "run", path, "-o", out, "--json", "--pcap"]);
    assert!(output.status.success(), "{}", error(&output));
    let line = String::from_utf8_lossy(&output.stdout).lines().next().expect("a run").to_owned();
    let run = std::fs::read_to_string(Path::new(out).join("tiny/00000/run.json")).expect("kept");
    let parse = |text: &str| serde_json::from_str(text).expect("JSON");
    (parse(&line), parse(&run))
}

fn metric(run: &Value, metric: &str, subject: &str) -> f64 {
    let all = run["metrics"].as_array().expect("metrics");
    let found = all.iter().find(|m| m["metric"] == metric && m["subject"] == subject);
    found
        .and_then(|m| m["value"].as_f64())
        .unwrap_or_else(|| panic!("{metric} of {subject}: {run}"))
}

#[test]
fn a_capture_has_what_the_senders_sent_and_received() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    scenario(
        folder.path(),
        r#"
        [scenario]
        duration = "10 s"
        until_done = true
        warmup = "0 s"
        [topology]
        rate = "50 Mbit/s"
        rtt = "20 ms"
        loss = "1%"
        [[flow]]
        protocol = "newreno"
        app = "object"
        size = "2 MB"
        "#,
    );
    let capture = folder.path().join("out/tiny/00000/packets.pcapng");
    let file = std::fs::File::open(&capture).expect("it is written");
    let trace = fontis_trace::capture::read(file, "senders", Default::default());
    let flow = &trace.expect("a capture").flows[0].counts;
    // Super-packets were cut into packets, and every one was new once.
    let least = 2_000_000 / 1460;
    let new = flow[0].data - flow[0].retransmitted;
    assert!((least..=least + 50).contains(&new), "{flow:?}");
    // One in a hundred was lost, give or take.
    assert!((1..least / 10).contains(&flow[0].retransmitted), "{flow:?}");
    assert!(flow[1].packets > 100, "{flow:?}");
}

#[test]
fn a_scenario_runs_with_real_tcp_datagrams_and_fontis_and_is_recorded() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (run, kept) = scenario(
        folder.path(),
        r#"
        [scenario]
        duration = "3 s"
        warmup = "1 s"
        [topology]
        kind = "parking-lot"
        rate = "50 Mbit/s"
        rtt = "10 ms"
        queue = "drr"
        [dfcp]
        rate = "auto"
        [[flow]]
        name = "steady"
        protocol = "datagrams"
        app = "constant"
        rate = "4 Mbit/s"
        [[flow]]
        name = "cubic"
        path = "second"
        [[flow]]
        name = "file"
        app = "object"
        size = "500 kB"
        [[flow]]
        name = "fountain"
        protocol = "dfcp"
        app = "object"
        size = "1 MB"
        [[flow]]
        name = "ours"
        protocol = "command"
        peer_command = "sleep 60"
        command = "test $FONTIS_PEER != $FONTIS_ADDRESS"
        "#,
    );
    // Generous: machines that test are slow and busy.
    assert!((metric(&run, "goodput", "steady") - 4.0).abs() < 0.4, "{run}");
    assert!(metric(&run, "goodput", "cubic") > 10.0, "{run}");
    assert!(metric(&run, "goodput", "cubic") < 50.0, "{run}");
    assert_eq!(metric(&run, "completed", "all"), 1.0, "{run}");
    // Three round trips over both bottlenecks at least: handshake, request, data.
    assert!(metric(&run, "fct", "file") > 0.04, "{run}");
    let environment = &kept["environment"];
    assert!(
        environment["kernel"].as_str().is_some_and(|kernel| kernel.contains("Linux")),
        "{kept}"
    );
    assert_eq!(environment["parameters"]["net.ipv4.tcp_no_metrics_save"], "1");
}

/// Runs a scenario of the library on the testbed, shortened; gives what it says of each run.
fn library(name: &str, keys: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = format!("{}/../../scenarios/basic/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let out = folder.path().to_str().expect("a name");
    let mut arguments = vec!["testbed", "run", &path, "--json", "-o", out];
    for key in ["scenario.warmup=0"].iter().chain(keys) {
        arguments.extend(["--set", key]);
    }
    let output = output(&arguments);
    assert!(output.status.success(), "{}", error(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.filter(|line: &Value| line["event"] == "run").collect()
}

#[test]
fn a_host_with_two_interfaces_is_a_namespace_with_two_and_a_group_is_ip_multicast() {
    if !possible() {
        return;
    }
    // Kernel TCP fills both of the host's links: 20 and 10 Mbit/s, 1448 of 1500 bytes.
    let run = &library("machines", &["scenario.duration=5 s"])[0];
    let (wifi, phone) = (metric(run, "goodput", "over-wifi"), metric(run, "goodput", "over-phone"));
    assert!((15.0..19.4).contains(&wifi), "{wifi}");
    assert!((6.0..9.7).contains(&phone), "{phone}");

    // The wall leaves after six of seven seconds, the phone joins after three.
    let run = &library("group", &["scenario.duration=7 s"])[0];
    let of = |member: &str| metric(run, "goodput", &format!("picture@{member}"));
    assert!(of("desk") > 1.7, "{}", of("desk"));
    let (wall, phone) = (of("wall") / of("desk"), of("phone") / of("desk"));
    assert!((0.78..0.93).contains(&wall), "{wall}");
    assert!((0.45..0.65).contains(&phone), "{phone}");
    assert_eq!(metric(run, "messages_lost", "picture@desk"), 0.0);
}

#[test]
fn voice_and_video_run_over_real_datagrams_tcp_and_fontis() {
    if !possible() {
        return;
    }
    for run in library("media", &["scenario.duration=3 s"]) {
        for flow in ["call", "film"] {
            // Half of the round trip of 100 ms at least, and not much more.
            let delay = metric(&run, "message_delay", flow);
            assert!((50.0..150.0).contains(&delay), "{delay}: {run}");
            assert!(metric(&run, "messages_lost", flow) < 0.2, "{run}");
        }
    }
}

#[test]
fn the_published_protocol_does_at_sockets_what_it_does_in_the_simulator() {
    if !possible() {
        return;
    }
    // Encoded, lost, decoded and compared bytes. UDP's header takes 8 of 1508 bytes.
    let text = r#"
        [scenario]
        id = "tiny"
        duration = "4 s"
        warmup = "1 s"
        [topology]
        rate = "10 Mbit/s"
        access = "10 Mbit/s"
        rtt = "30 ms"
        loss = "5%"
        queue = "wfq"
        [published]
        coding = "real"
        [[flow]]
        protocol = "dfcp-published"
    "#;
    let folder = tempfile::tempdir().expect("a folder");
    let (path, out) = (folder.path().join("tiny.toml"), folder.path().join("simulated"));
    std::fs::write(&path, text).expect("it can be written");
    let (path, out) = (path.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let simulated = output(&["sim", path, "-o", out, "--json"]);
    assert!(simulated.status.success(), "{}", error(&simulated));
    let line = String::from_utf8_lossy(&simulated.stdout).lines().next().expect("a run").to_owned();
    let simulated: Value = serde_json::from_str(&line).expect("JSON");
    let virtual_ = metric(&simulated, "goodput", "flow1");
    assert!(virtual_ > 7.0, "{virtual_}");
    // A machine that does other things can only make sockets slower, so the best of three counts.
    let mut best = 0_f64;
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let (run, _) = scenario(folder.path(), text);
        best = best.max(metric(&run, "goodput", "flow1"));
        if best > 0.9 * virtual_ {
            break;
        }
    }
    assert!((0.9..1.05).contains(&(best / virtual_)), "{best} and {virtual_}");
}

#[test]
fn ten_pairs_are_set_up_and_taken_down_quickly() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let begin = Instant::now();
    scenario(folder.path(), "[scenario]\nduration = \"100 ms\"\n[[flow]]\ncount = 10\n");
    // Ten times what `scripts/testbed_bench.py` holds it to.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn ping_sees_the_delay_and_iperf_the_rate() {
    if !possible() {
        return;
    }
    let there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if there("ping") {
        let script = "ping -c 5 -i 0.2 -q $FONTIS_GATEWAY";
        let output = output(&["testbed", "shell", "--delay", "15ms", "--", "sh", "-c", script]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let times = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
        let times = times.unwrap_or_else(|| panic!("{text}"));
        let times: Vec<f64> = times.split('/').filter_map(|time| time.parse().ok()).collect();
        assert!(times[0] >= 30.0 && times[1] < 45.0, "{text}");
    } else {
        eprintln!("not checked: there is no ping");
    }
    if there("iperf3") {
        let script = "sleep 0.5; iperf3 -J -t 2 -O 1 -c $FONTIS_GATEWAY -p 5299";
        let output = output(&[
            "testbed",
            "shell",
            "--rate",
            "20mbit",
            "--delay",
            "5ms",
            "--beside",
            "iperf3 -s -1 -p 5299 >/dev/null",
            "--",
            "sh",
            "-c",
            script,
        ]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
        // 1448 of 1500 bytes are payload. A link lets nothing more through; how much less the
        // kernel's TCP makes of two seconds is its own affair, and the machine's.
        assert!(rate > 20e6 * 0.4 && rate < 20e6 * 1.02, "{report}");
    } else {
        eprintln!("not checked: there is no iperf3");
    }
}
