//! Transfers from several servers at once.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, Running, content, one_of_three};

/// How many times as long a file takes from three servers of which two are killed as from the
/// one that is left.
fn times_as_long_from_three_of_which_two_are_killed() -> f64 {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(20_000_000)).unwrap();
    let mut command = |limit: &str| {
        let arguments = ["serve", "served", "--listen", "127.0.0.1:0", "--json", "--limit", limit];
        let mut running = Running::start(bench.command(&arguments));
        let urls = running.event("listening");
        let url = urls["urls"][0].as_str().unwrap().replace("/?", "/file?");
        (running, url)
    };
    let mut servers = ["40mbit", "20mbit", "20mbit"].map(&mut command);
    let urls = servers.each_ref().map(|(_, url)| url.clone());
    let seconds = |done: &Value| done["seconds"].as_f64().unwrap();
    let alone = seconds(bench.run(&["get", &urls[0], "alone", "--json"]).events().last().unwrap());
    let arguments = ["get", &urls[0], &urls[1], &urls[2], "got", "--json"];
    let mut get = Running::start(bench.command(&arguments));
    get.event("progress");
    // As by kill -9: nobody says a word.
    let [(_first, _), (second, _), (third, _)] = &mut servers;
    for server in [second, third] {
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.kill();
    }
    let done = get.event("done");
    assert!(fs::read(bench.path("got")).unwrap() == content(20_000_000));
    seconds(&done) / alone
}

#[test]
fn a_file_comes_from_three_servers_of_which_two_are_killed() {
    let run = || Some(times_as_long_from_three_of_which_two_are_killed());
    one_of_three(run, |times| *times < 1.5);
}

#[test]
fn servers_that_are_not_there_are_named_and_the_others_send() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    let server = bench.serve(&[]);
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    let absent = server.url_with("127.0.0.1", port, "file");
    let missing = server.url_of("missing");
    let got = bench.run(&["get", &absent, &server.url_of("file"), &missing, "--timeout", "2s"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(fs::read(bench.path("file")).unwrap() == content(3_000_000));
    assert!(got.stderr.contains("sends no more, the others go on: "), "{}", got.stderr);
    assert!(got.stderr.contains("no such file"), "{}", got.stderr);
    let got = bench.run(&["get", &absent, &missing, "none", "--timeout", "1s", "--retries", "0"]);
    assert_eq!(got.code, 1, "{}", got.stderr);
    assert!(!bench.path("none").exists());
}

#[test]
fn only_the_last_argument_is_a_destination() {
    let bench = Bench::new();
    let key = bench.run(&["keygen"]).stdout;
    let url = format!("fontis://127.0.0.1:9/x?key={}", key.trim());
    let got = bench.run(&["get", &url, "here", &url]);
    assert_eq!(got.code, 2, "{}", got.stderr);
    assert!(got.stderr.contains("only the last argument"), "{}", got.stderr);
    let got = bench.run(&["get", &url, &url, "-"]);
    assert_eq!(got.code, 2, "{}", got.stderr);
    assert!(got.stderr.contains("name a file or a folder"), "{}", got.stderr);
}
