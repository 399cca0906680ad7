//! Transfers as a user meets them: the real command, on both ends and in between.

mod access;
mod call;
mod cast;
#[cfg(unix)]
mod control;
mod faults;
mod flute;
#[cfg(target_os = "linux")]
mod folders;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod paths;
mod qlog;
#[cfg(unix)]
mod resume;
#[cfg(target_os = "linux")]
mod roaming;
mod sctp;
#[cfg(target_os = "linux")]
mod softphone;
mod sources;
mod support;
mod swarm;
#[cfg(target_os = "linux")]
mod system;
mod token;
#[cfg(target_os = "linux")]
mod wireshark;

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use support::{Bench, Running, content, hash};

#[test]
fn a_file_crosses_loopback_and_is_the_same() {
    let bench = Bench::new();
    for (name, size) in [("empty", 0), ("byte", 1), ("small", 10_000), ("large", 5_000_001)] {
        fs::write(bench.path(&format!("served/{name}")), content(size)).unwrap();
    }
    let server = bench.serve(&[]);
    for name in ["empty", "byte", "small", "large"] {
        let got = bench.run(&["get", &server.url_of(name), "got/"]);
        let served = hash(&bench.path(&format!("served/{name}")));
        assert_eq!(got.code, 0, "{name}: {}", got.stderr);
        assert_eq!(hash(&bench.path(&format!("got/{name}"))), served);
        // Off a terminal there is one line and no bar.
        assert_eq!((got.stderr.lines().count(), &*got.stdout), (1, ""), "{}", got.stderr);
        assert!(got.stderr.contains(&served) && got.stderr.contains("bit/s"), "{}", got.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_keeps_names_modes_times_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = Bench::new();
    let folder = bench.path("served/folder");
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for i in 0..50 {
        fs::write(folder.join(format!("deep/größe {i}")), content(i * 37)).unwrap();
    }
    let script = folder.join("deep/er/run");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("deep/er/run", folder.join("link")).unwrap();
    let past = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    fs::File::open(&script).unwrap().set_modified(past).unwrap();

    let server = bench.serve(&[]);
    let done = |url: &str, dest: &str| {
        let got = bench.run(&["get", url, dest]);
        assert_eq!(got.code, 0, "{}", got.stderr);
    };
    done(&server.url_of("folder"), "copy");
    done(&server.url_of("folder/"), ".");
    done(&server.url, "all");
    for copy in ["copy", "folder", "all/folder"].map(|copy| bench.path(copy)) {
        for i in 0..50 {
            assert_eq!(fs::read(copy.join(format!("deep/größe {i}"))).unwrap(), content(i * 37));
        }
        assert!(copy.join("empty").is_dir());
        assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("deep/er/run"));
        let metadata = fs::metadata(copy.join("deep/er/run")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o750);
        assert_eq!(metadata.modified().unwrap(), past);
    }
}

#[test]
fn ipv6_works_as_ipv4_does() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000_000)).unwrap();
    let server = bench.serve_on("[::1]:0", &[]);
    assert!(server.url.starts_with("fontis://[::1]:"), "{}", server.url);
    let got = bench.run(&["get", &server.url_of("file")]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert_eq!(fs::read(bench.path("file")).unwrap(), content(1_000_000));
}

#[test]
fn a_wildcard_listener_prints_addresses_that_lead_to_it() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    for wildcard in ["0.0.0.0:0", "[::]:0"] {
        if UdpSocket::bind(wildcard).is_err() {
            continue;
        }
        let server = bench.serve_on(wildcard, &["--json"]);
        let listening = &server.first;
        assert_eq!(listening["event"], "listening");
        let urls = listening["urls"].as_array().unwrap();
        assert!(!urls.is_empty());
        for url in urls.iter().map(|url| url.as_str().unwrap()) {
            assert!(!url.contains("0.0.0.0") && !url.contains("[::]"), "{url}");
            let got = bench.run(&["get", &url.replace("/?", "/file?"), "-"]);
            assert!(got.code == 0 && got.stderr.starts_with("file:"), "{url}: {}", got.stderr);
        }
        // IPv4 reaches a listener on all addresses of either kind.
        let local = server.url_with("127.0.0.1", server.port, "file");
        let got = bench.run(&["get", &local, "-"]);
        assert_eq!(got.code, 0, "{wildcard}: {}", got.stderr);
    }
}

#[test]
fn a_name_with_an_address_where_nobody_answers_is_tried_at_its_next() {
    // Usually both ::1 and 127.0.0.1; with one of them there is nothing to skip.
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let server = bench.serve(&[]);
    let begin = Instant::now();
    let got = bench.run(&["get", &server.url_with("localhost", server.port, "file")]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(begin.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_file_goes_to_standard_output_whole_and_a_folder_does_not() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    fs::create_dir(bench.path("served/folder")).unwrap();
    let server = bench.serve(&[]);
    let output = bench.command(&["get", &server.url_of("file"), "-"]).output().unwrap();
    assert!(output.status.success() && output.stdout == content(3_000_000));
    let got = bench.run(&["get", &server.url_of("folder"), "-"]);
    assert!(got.failed_with("folder"), "{}", got.stderr);
    let got = bench.run(&["get", &server.url_of("file"), "-", "--json"]);
    assert_eq!(got.code, 2, "{}", got.stderr);
}

#[test]
fn a_reader_of_standard_output_that_goes_away_ends_the_transfer() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    let server = bench.serve(&["--json"]);
    let begin = Instant::now();
    let mut get = bench.command(&["get", &server.url_of("file"), "-"]);
    let mut get = get.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(get.stdout.take());
    assert_eq!(get.wait().unwrap().code(), Some(1));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert!(server.event("failed")["message"].is_string());
}

#[test]
fn a_destination_means_what_cp_takes_it_for_and_is_not_replaced_unless_forced() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    fs::create_dir(bench.path("there")).unwrap();
    let server = bench.serve(&[]);
    let get = |rest: &[&str]| bench.run(&[&["get", &server.url_of("file")], rest].concat());
    for (dest, place) in [
        (&[][..], "file"),
        (&["name"], "name"),
        (&["there"], "there/file"),
        (&["new/"], "new/file"),
    ] {
        assert_eq!(get(dest).code, 0);
        assert_eq!(fs::read(bench.path(place)).unwrap(), content(1_000), "{place}");
        assert!(get(dest).failed_with("--force"), "{}", get(dest).stderr);
    }
    assert!(get(&["no/such/name"]).failed_with("no/such"));
    fs::write(bench.path("served/file"), content(2_000)).unwrap();
    assert_eq!(get(&["name", "--force"]).code, 0);
    assert_eq!(fs::read(bench.path("name")).unwrap(), content(2_000));
    assert_eq!(bench.leftovers(), Vec::<String>::new());
}

#[test]
fn a_server_with_another_key_is_not_believed() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    let server = bench.serve(&[]);
    let other = bench.run(&["keygen", "--identity", "other"]).stdout;
    let url = server.url_of("file").replace(&server.key, other.trim());
    let got = bench.run(&["get", &url, "--timeout", "2s"]);
    assert!(got.failed_with("holds another key"), "{}", got.stderr);
}

#[cfg(unix)]
#[test]
fn a_preshared_key_must_be_the_same_on_both_sides() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    for (name, secret) in
        [("psk", "a secret of enough bytes"), ("wrong", "another one of the same")]
    {
        fs::write(bench.path(name), secret).unwrap();
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let server = bench.serve(&["--psk-file", "psk"]);
    let url = server.url_of("file");
    let got = bench.run(&["get", &url, "--timeout", "2s"]);
    assert!(got.failed_with("pre-shared key"), "{}", got.stderr);
    let got = bench.run(&["get", &url, "--psk-file", "wrong", "--timeout", "1s"]);
    assert!(got.failed_with("127.0.0.1"), "{}", got.stderr);
    assert!(!bench.path("file").exists());
    let got = bench.run(&["get", &url, "--psk-file", "psk"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
}

#[test]
fn nobody_there_is_said_within_the_timeout() {
    let bench = Bench::new();
    let key = bench.run(&["keygen"]).stdout;
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url =
        format!("fontis://127.0.0.1:{port}/file?key={}&secret={}", key.trim(), "A".repeat(22));
    fs::write(bench.path("file"), "content").unwrap();
    for arguments in [&["get", &url][..], &["send", "file", &url]] {
        let begin = Instant::now();
        let got = bench.run(&[arguments, &["--timeout", "500ms"]].concat());
        assert!(got.failed_with("no answer from 127.0.0.1"), "{}", got.stderr);
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    }
    let unknown = url.replace("127.0.0.1", "nobody.invalid");
    let got = bench.run(&["get", &unknown]);
    assert!(got.failed_with("cannot find the address of nobody.invalid"), "{}", got.stderr);
}

#[test]
fn what_is_not_there_or_outside_is_not_served() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    fs::write(bench.path("secret"), "secret").unwrap();
    let server = bench.serve(&[]);
    for path in ["missing", "../secret", "%2e%2e/secret", "a/../../secret", "/etc/passwd"] {
        let got = bench.run(&["get", &server.url_of(path), "got"]);
        assert!(got.failed_with("127.0.0.1"), "{path}: {}", got.stderr);
        assert!(!bench.path("got").exists(), "{path}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret", bench.path("served/link")).unwrap();
        std::os::unix::fs::symlink("/etc", bench.path("served/etc")).unwrap();
        for path in ["link", "etc/passwd"] {
            let got = bench.run(&["get", &server.url_of(path), "-"]);
            assert_ne!((got.code, &*got.stdout), (0, "secret"), "{path}");
            assert!(got.stdout.is_empty(), "{path}: {}", got.stdout);
        }
    }
    let got = bench.run(&["get", &server.url_of("missing"), "--json"]);
    let events = got.events();
    assert_eq!((got.code, events.len()), (1, 1));
    assert_eq!(events[0]["event"], "error");
    assert!(events[0]["message"].as_str().unwrap().contains("no such file"), "{}", events[0]);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_an_error_at_both_ends() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1_000)).unwrap();
    fs::set_permissions(bench.path("served/file"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(bench.path("served/file")).is_ok() {
        eprintln!("skipped: nothing is unreadable for root");
        return;
    }
    let server = bench.serve(&["--json"]);
    assert!(bench.run(&["get", &server.url_of("file")]).failed_with("no such file"));
    assert!(server.event("failed")["message"].as_str().unwrap().contains("file"));
}

#[test]
fn a_port_in_use_and_a_folder_that_is_none_are_said_in_a_line() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), "").unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "receive"] {
        let failed = |arguments: &[&str], hint| {
            let run = bench.run(&[&[command], arguments].concat());
            assert!(run.failed_with(hint), "{}", run.stderr);
        };
        failed(&["served", "--listen", &address], "in use");
        failed(&["served/file", "--listen", "127.0.0.1:0"], "is not a folder");
        failed(&["missing", "--listen", "127.0.0.1:0"], "no folder missing");
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_would_be_right() {
    let bench = Bench::new();
    let key = bench.run(&["keygen"]).stdout;
    let url = format!("fontis://192.0.2.1:9/x?key={}", key.trim());
    for (arguments, hint) in [
        (&["get"][..], "URL"),
        (&["get", "http://example.org/x"], "fontis://192.0.2.1:4433/file?key=KEY"),
        (&["get", "fontis://example.org:4433/x"], "no key"),
        (&["get", &url, "--timeout", "0"], "longer than zero"),
        (&["send", &url], "URL"),
        (&["send", "file", "other"], "fontis://192.0.2.1:4433/file?key=KEY"),
        (&["send", "-", "-", &url], "once"),
        (&["send", "served", &url, "--rate", "fast"], "greedy"),
        (
            &["send", "served", &url.replace("192.0.2.1", "203.0.113.9"), "--rate", "greedy"],
            "--force-greedy",
        ),
        (&["serve", "--rate", "greedy"], "overloads every network"),
        (&["serve", "--rate", "0mbit"], "20mbit"),
        (&["serve", "--listen", "4433"], "ADDR:PORT"),
    ] {
        let run = bench.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(hint), "{arguments:?}: {}", run.stderr);
    }
    let secret = format!("{url}&secret={}", "A".repeat(99));
    assert!(!bench.run(&["get", &secret]).stderr.contains("AAAA"));
}

#[test]
fn what_is_sent_arrives_and_both_ends_say_so() {
    let bench = Bench::new();
    fs::create_dir(bench.path("inbox")).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    fs::write(bench.path("file"), content(2_000_000)).unwrap();
    fs::write(bench.path("folder/inside"), content(1_000)).unwrap();
    let receiver = bench.receive(&["--json"]);
    assert!(receiver.url.contains("secret="), "{}", receiver.url);
    let sent = bench.run(&["send", "file", "folder", &receiver.url, "--json"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let events = sent.events();
    let reports: Vec<&Value> = events.iter().filter(|event| event["event"] == "sent").collect();
    assert_eq!([&reports[0]["name"], &reports[1]["name"]], ["file", "folder"]);
    for report in reports {
        let received = receiver.event("received");
        assert_eq!((&received["hash"], &received["name"]), (&report["hash"], &report["name"]));
    }
    assert_eq!(fs::read(bench.path("inbox/file")).unwrap(), content(2_000_000));
    assert_eq!(fs::read(bench.path("inbox/folder/inside")).unwrap(), content(1_000));

    let again = bench.run(&["send", "file", &receiver.url]);
    assert!(again.failed_with("says:"), "{}", again.stderr);
    let missing = bench.run(&["send", "file", "missing", &receiver.url]);
    assert!(missing.failed_with("missing"), "{}", missing.stderr);
}

#[test]
fn standard_input_is_sent_too() {
    let bench = Bench::new();
    fs::create_dir(bench.path("inbox")).unwrap();
    fs::write(bench.path("file"), content(100_000)).unwrap();
    let receiver = bench.receive(&[]);
    let input = fs::File::open(bench.path("file")).unwrap();
    let sent = bench.command(&["send", "-", &receiver.url]).stdin(input).output().unwrap();
    assert!(sent.status.success());
    assert_eq!(fs::read(bench.path("inbox/stdin")).unwrap(), content(100_000));
}

#[test]
fn who_does_not_know_the_secret_cannot_send() {
    let bench = Bench::new();
    fs::create_dir(bench.path("inbox")).unwrap();
    fs::write(bench.path("file"), content(1_000)).unwrap();
    let receiver = bench.receive(&["--force"]);
    let (start, _) = receiver.url.split_once("&secret=").unwrap();
    let guessed = bench.run(&["send", "file", &format!("{start}&secret={}", "A".repeat(22))]);
    assert!(guessed.failed_with("secret"), "{}", guessed.stderr);
    assert!(bench.run(&["send", "file", start]).failed_with("no secret"));
    assert!(!bench.path("inbox/file").exists());
    for _ in 0..2 {
        assert_eq!(bench.run(&["send", "file", &receiver.url]).code, 0);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_transfer_leaves_no_name_and_goes_on_from_there() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(20_000_000)).unwrap();
    let server = bench.serve(&["--rate", "20mbit", "--json"]);
    let mut get = Running::start(bench.command(&["get", &server.url_of("file"), "--json"]));
    assert_eq!(get.event("progress")["total"], 20_000_000);
    get.interrupt();
    let (code, stderr) = get.end();
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("fontis: interrupted"), "{stderr}");
    assert!(stderr.contains("goes on"), "{stderr}");
    assert!(!bench.path("file").exists());
    // The server learns at once that nobody listens any more.
    let begin = Instant::now();
    server.event("failed");
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[test]
fn events_are_json_and_come_at_most_five_times_a_second() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(2_500_000)).unwrap();
    let server = bench.serve(&["--rate", "20mbit", "--json"]);
    let got = bench.run(&["get", &server.url_of("file"), "--json", "-v"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(got.stderr.contains("rtt "), "{}", got.stderr);
    let events = got.events();
    let (done, progress) = events.split_last().unwrap();
    let seconds = done["seconds"].as_f64().unwrap();
    assert!((1.0..5.0).contains(&seconds), "{done}");
    assert!((1..=seconds as usize * 5 + 6).contains(&progress.len()), "{}", progress.len());
    for event in progress {
        assert_eq!((&event["event"], &event["total"]), (&"progress".into(), &2_500_000.into()));
        for number in ["bytes", "rate_mbps", "loss", "rtt_ms"] {
            assert!(event[number].is_number(), "{event}");
        }
    }
    assert_eq!(done["hash"], &*hash(&bench.path("served/file")));
    let goodput = done["goodput_mbps"].as_f64().unwrap();
    assert!((goodput * seconds - 20.0).abs() < 0.1, "{done}");
    for count in ["packets_received", "data_packets_received", "symbols_needed"] {
        assert!(done[count].as_u64().unwrap() > 200, "{done}");
    }
    let names = [server.event("connected"), server.event("started"), server.event("sent")];
    assert!(names.iter().all(|event| event["remote"].is_string()), "{names:?}");
    assert!(names[2]["data_packets"].as_u64().unwrap() > 200, "{}", names[2]);
}

#[test]
fn the_manual_and_completions_know_every_command() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["man", "man"]).code, 0);
    for command in ["serve", "get", "receive", "send", "relay", "keygen"] {
        let page = fs::read_to_string(bench.path(&format!("man/fontis-{command}.1"))).unwrap();
        assert!(page.contains("Examples"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = bench.run(&["completions", shell]);
        assert!(script.code == 0 && script.stdout.contains("receive"), "{shell}");
    }
}

#[test]
fn keygen_makes_an_identity_once() {
    let bench = Bench::new();
    let first = bench.run(&["keygen"]);
    assert_eq!((first.code, first.stdout.trim().len()), (0, 43), "{}", first.stderr);
    assert_eq!(bench.run(&["keygen"]).stdout, first.stdout);
    assert_ne!(bench.run(&["keygen", "--identity", "other"]).stdout, first.stdout);
}
