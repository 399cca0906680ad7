//! Races as a user meets them.

use serde_json::Value;

use super::{error, fontis, possible};

#[test]
fn everybody_arrives_in_a_race_and_it_is_drawn() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (file, picture) = (folder.path().join("file"), folder.path().join("race.svg"));
    let mut bytes = vec![0; 3_000_000];
    fontis_base::Stream::new(7, "content").fill(&mut bytes);
    std::fs::write(&file, bytes).expect("it can be written");
    let (file, picture) = (file.to_str().expect("UTF-8"), picture.to_str().expect("UTF-8"));
    let path = ["--rate", "50mbit", "--rtt", "20ms", "--loss", "0.1%", "--seed", "7"];
    let rest = ["--against", "cubic,quic", "--picture", picture, "--limit", "60s", "--json"];
    let logs = folder.path().join("logs");
    let mut race = fontis(&["race", file]);
    race.args(path).args(rest).arg("--qlog").arg(&logs);
    let output = race.output().expect("it runs");
    assert!(output.status.success(), "{}", error(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut runners = Vec::new();
    for line in text.lines() {
        let finish: Value = serde_json::from_str(line).expect("JSON");
        let (seconds, bound) = (finish["seconds"].as_f64(), finish["bound_seconds"].as_f64());
        assert!(seconds.is_some_and(|seconds| Some(seconds) > bound.map(|b| b * 0.9)), "{line}");
        runners.push(finish["runner"].as_str().expect("a name").to_owned());
    }
    assert_eq!(runners, ["fontis", "cubic", "quic"]);
    let drawn = std::fs::read_to_string(picture).expect("a picture");
    assert!(drawn.starts_with("<svg") && drawn.contains("cubic") && drawn.contains("quic"));
    let logs = std::fs::read_dir(logs).expect("logs").map(|log| log.expect("a log").file_name());
    let mut ends: Vec<String> = logs.map(|log| log.to_string_lossy().into_owned()).collect();
    ends.sort_by_key(|log| log.contains("_server"));
    assert!(
        matches!(&ends[..], [client, server] if client.ends_with("_client.sqlog")
        && server.ends_with("_server.sqlog")),
        "{ends:?}"
    );
}

#[test]
fn over_two_paths_a_race_takes_both_together() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (file, picture) = (folder.path().join("file"), folder.path().join("race.svg"));
    std::fs::write(&file, vec![7; 6_000_000]).expect("it can be written");
    let (file, picture) = (file.to_str().expect("UTF-8"), picture.to_str().expect("UTF-8"));
    let paths = ["--path", "20mbit,20ms", "--path", "10mbit,30ms,1%", "--seed", "7"];
    let rest = ["--against", "fontis-one,mptcp-cubic", "--picture", picture, "--json"];
    let mut carried = Vec::new();
    // Other tests take a part of the processors: one run in three must show it.
    for _ in 0..3 {
        let command = fontis(&["race", file, "--in-turn"]).args(paths).args(rest).output();
        let output = command.expect("it runs");
        assert!(output.status.success(), "{}", error(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let finishes = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let finishes: Vec<Value> = finishes.collect();
        let names: Vec<&str> = finishes.iter().filter_map(|one| one["runner"].as_str()).collect();
        assert_eq!(names, ["fontis", "fontis-one", "mptcp-cubic"]);
        let goodput = |index: usize| finishes[index]["goodput_mbps"].as_f64().expect("it arrived");
        assert!(goodput(1) < 20.0, "one path carries no more than its rate: {text}");
        let bounds = finishes.iter().map(|one| one["bound_seconds"].as_f64());
        assert!(bounds.into_iter().all(|bound| bound < Some(1.7)), "{text}");
        carried.push(goodput(0));
        if goodput(0) > 20.0 {
            return;
        }
    }
    panic!("two carry more than the better one can: {carried:?} Mbit/s");
}
