//! The `relay` command as a user meets it: what it prints, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn fontis(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontis"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    fontis(arguments).output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_would_be_right() {
    for (arguments, hint) in [
        (&["relay"][..], "--to"),
        (&["relay", "--to", "127.0.0.1:9", "--delay", "50"], "50 ms"),
        (&["relay", "--to", "127.0.0.1:9", "--queue", "blue"], "fifo, fifo-ecn, drr"),
        (&["relay", "--to", "127.0.0.1", "--rate", "1mbit"], "HOST:PORT"),
        (&["relay", "--to", "127.0.0.1:9", "--outage", "1s:2s:2s"], "EVERY"),
        (&["relay", "--to", "127.0.0.1:9", "--stats-every", "0"], "longer than zero"),
        (&["relay", "--to", "127.0.0.1:9", "--loss", "1%", "--loss-model", "2%"], "--loss"),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error(&output).contains(hint), "{arguments:?}: {}", error(&output));
    }
}

#[test]
fn a_port_in_use_exits_with_1_and_one_line() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output(&["relay", "--listen", &address, "--to", "127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(1));
    let text = error(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("fontis: ") && text.contains(&address), "{text}");
}

#[cfg(unix)]
#[test]
fn it_says_where_it_listens_relays_and_sums_up_on_ctrl_c() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let to = server.local_addr().unwrap().to_string();
    let mut relay = fontis(&["relay", "--to", &to, "--delay", "5ms", "--seed", "7", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(relay.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["seed"], 7);

    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(&[0; 100], started["listening"].as_str().unwrap()).unwrap();
    assert_eq!(server.recv(&mut [0; 200]).unwrap(), 100);

    let interrupted = Command::new("kill").args(["-INT", &relay.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(relay.wait().unwrap().code(), Some(0));
    let summary: serde_json::Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(summary["up"]["delivered"]["packets"], 1);
    assert_eq!(summary["up"]["delivered"]["bytes"], 128);
}
