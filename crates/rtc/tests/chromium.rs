//! Data channels with a browser, which others wrote.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use fontis_base::Stream;
use fontis_proto::data_channel::{ChannelContent, DataChannelOptions};
use fontis_rtc::{RtcConfig, RtcPeer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(60);

/// A browser that is told what to do.
struct Browser {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    // It ends with this.
    _child: Child,
}

impl Browser {
    /// Starts Chromium; nothing if it, node or the viewer's packages are not there.
    async fn start() -> Option<Self> {
        let viewer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../viewer");
        let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".into());
        if !viewer.join("node_modules").exists() || !PathBuf::from(chromium).exists() {
            eprintln!("skipped: no Chromium, or no packages in viewer (scripts/viewer.sh build)");
            return None;
        }
        let mut child = Command::new("node")
            .arg("browser/channel.mjs")
            .current_dir(viewer)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Some(Self { input, output, _child: child })
    }

    async fn ask(&mut self, command: Value) -> Value {
        let ask = async {
            self.input.write_all(format!("{command}\n").as_bytes()).await.expect("it reads");
            let line = self.output.next_line().await.expect("it answers").expect("it lives");
            serde_json::from_str(&line).expect("JSON")
        };
        tokio::time::timeout(PATIENCE, ask).await.unwrap_or_else(|_| panic!("in time: {command}"))
    }
}

/// Gives back what comes on all channels that the peer opens.
async fn echo(peer: RtcPeer) {
    while let Ok(Some(channel)) = peer.incoming().await {
        tokio::spawn(async move {
            while let Ok(Some(content)) = channel.recv().await {
                channel.send(content).await.expect("it is sent back");
            }
        });
    }
}

fn text(value: &Value) -> &str {
    value["sdp"].as_str().expect("a description")
}

/// Lengths of messages, log-uniform to 200 kB, with a few that are empty. Those at odd places are
/// text of letters of two bytes.
fn sizes(random: &mut Stream, count: usize) -> Vec<usize> {
    let size = |_| (200_000_f64.powf(random.unit()) as usize - 1) & !1;
    (0..count).map(size).collect()
}

/// Opens a channel, sends messages of these lengths and compares what comes back.
async fn exchange(peer: &RtcPeer, label: &str, is_ordered: bool, sizes: &[usize]) {
    let label = label.to_owned();
    let options = DataChannelOptions { label, is_ordered, ..DataChannelOptions::default() };
    let channel = peer.open(options).await.expect("a channel");
    for (at, size) in sizes.iter().enumerate() {
        let content = match at % 2 {
            1 => ChannelContent::Text("λ".repeat(size / 2)),
            _ => ChannelContent::Binary(vec![at as u8; *size].into()),
        };
        channel.send(content.clone()).await.expect("it is sent");
        let back = channel.recv().await.expect("no failure");
        assert!(back == Some(content), "message {at} of {size} bytes");
    }
}

/// Both ends open channels over a connection that one of them has offered; each echoes what comes
/// on the other's.
async fn talk(offers: bool, seed: u64) {
    let Some(mut browser) = Browser::start().await else { return };
    let peer = RtcPeer::bind(RtcConfig::default()).await.expect("a peer");
    if offers {
        let offer = peer.offer().expect("an offer");
        let answer = browser.ask(json!({ "do": "answer", "sdp": offer })).await;
        peer.accept(text(&answer)).expect("an answer");
    } else {
        let offer = browser.ask(json!({ "do": "offer" })).await;
        let answer = peer.answer(text(&offer)).expect("an offer");
        browser.ask(json!({ "do": "accept", "sdp": answer })).await;
    }
    let talk = async {
        peer.connected().await.expect("a connection");
        let mut random = Stream::new(seed, "chromium");
        exchange(&peer, "ours", true, &sizes(&mut random, 40)).await;
        exchange(&peer, "unordered", false, &sizes(&mut random, 10)).await;
        // The browser learns that they ended.
        loop {
            let closed = browser.ask(json!({ "do": "closed" })).await;
            if closed["closed"] == json!(["ours", "unordered"]) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::spawn(echo(peer));
        for (label, ordered) in [("theirs", true), ("again", true), ("loose", false)] {
            let sizes = sizes(&mut random, 20);
            let command =
                json!({ "do": "send", "label": label, "ordered": ordered, "sizes": sizes });
            let done = browser.ask(command).await;
            assert_eq!(done["back"], sizes.len(), "seed {seed}: {label}");
        }
    };
    tokio::time::timeout(PATIENCE, talk).await.expect("in time");
}

#[tokio::test]
async fn a_browser_answers_and_talks_on_channels_of_both() {
    talk(true, std::process::id().into()).await;
}

#[tokio::test]
async fn a_browser_offers_and_talks_on_channels_of_both() {
    talk(false, std::process::id().into()).await;
}
