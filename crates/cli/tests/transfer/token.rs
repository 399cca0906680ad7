//! Clients that come again: the token that they were given saves a round trip, once.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, content, hash};

/// The frames of the server's latest connection, in order: whether it sent them, and their names.
fn frames(bench: &Bench) -> Vec<(bool, String)> {
    let logs = fs::read_dir(bench.path("logs")).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap();
    let text = fs::read_to_string(log).unwrap();
    // A record separator stands before each event; the last may still be on its way.
    let records = text.lines().map(|line| line.trim_start_matches('\u{1e}'));
    let events = records.filter_map(|record| serde_json::from_str::<Value>(record).ok());
    let packets =
        events.filter_map(|event| {
            let sent = event["name"] == "transport:packet_sent";
            let frames = event["data"]["frames"].as_array()?.clone();
            Some(frames.into_iter().map(move |frame| {
                (sent, frame["frame_type"].as_str().unwrap_or_default().to_owned())
            }))
        });
    packets.flatten().collect()
}

/// Fetches the file; whether content was sent before the client had confirmed that it is there.
fn is_in_first_round(bench: &Bench, url: &str) -> bool {
    let got = bench.run(&["get", url, "there", "--force"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert_eq!(hash(&bench.path("there")), hash(&bench.path("served/file")));
    let frames = frames(bench);
    let position = |sent, name: &str| {
        frames.iter().position(|frame| *frame == (sent, name.to_owned())).expect(name)
    };
    position(true, "symbols") < position(false, "confirm")
}

/// Tokens that the client keeps.
fn kept(bench: &Bench) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(bench.path("cache/fontis/tokens"));
    let files = folder.into_iter().flatten().map(|entry| entry.unwrap().path());
    files.map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn who_comes_again_has_its_data_in_the_first_round_trip() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(300_000)).unwrap();
    fs::create_dir(bench.path("logs")).unwrap();
    // Loopback is too fast for a client's answer to be late.
    let server = bench.serve(&["--qlog", "logs"]);
    let relay = bench.relay("127.0.0.1", server.port, &["--delay", "40ms"]);
    let url = server.url_with("127.0.0.1", relay.port, "file");
    assert!(!is_in_first_round(&bench, &url));
    let first = kept(&bench);
    assert_eq!(first.len(), 1);
    assert!(is_in_first_round(&bench, &url));
    let second = kept(&bench);
    assert!(second.len() == 1 && second != first, "each is good once, and another comes");
    // Shown a second time, by whoever has kept it.
    let tokens = bench.path("cache/fontis/tokens");
    let name = fs::read_dir(&tokens).unwrap().next().unwrap().unwrap().path();
    fs::write(&name, &first[0]).unwrap();
    assert!(!is_in_first_round(&bench, &url));
    // Anything else that stands in its place is none.
    for other in [&b""[..], b"a token", &[7; 64], &[7; 5000]] {
        fs::write(&name, other).unwrap();
        assert!(!is_in_first_round(&bench, &url), "{} bytes", other.len());
    }
}
