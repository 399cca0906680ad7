//! `fontis view`: what it says and writes; and its reading of captures beside tshark's.

mod packets;
mod transports;
mod tshark;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fontis_trace::{Detail, Trace, capture};

fn fontis(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fontis")).args(args).output().unwrap()
}

/// Runs it, and gives what it says on standard output.
fn done(args: &[&str]) -> String {
    let output = fontis(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs it, and gives its exit code and the one line that it says.
fn refused(args: &[&str]) -> (i32, String) {
    let output = fontis(args);
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A transfer of the simulator, with its packets and its sender's capture.
fn simulate(folder: &Path, protocol: &str) -> PathBuf {
    let scenario = folder.join(format!("{protocol}.toml"));
    let written = format!(
        "[scenario]\nid = \"{protocol}\"\nduration = \"30 s\"\nuntil_done = true\n[topology]\nrate = \"20 Mbit/s\"\n\
         rtt = \"40 ms\"\nloss = \"1%\"\n[dfcp]\nrate = \"auto\"\n[[flow]]\nprotocol = \"{protocol}\"\napp = \"object\"\n\
         size = \"2 MB\"\n"
    );
    fs::write(&scenario, written).unwrap();
    done(&["sim", text(&scenario), "--packets", "--pcap", "-o", text(folder)]);
    folder.join(protocol).join("00000")
}

#[test]
fn figures_and_pages_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let recording = simulate(folder.path(), "dfcp");
    let figure = folder.path().join("figure.svg");
    let said = done(&["view", text(&recording), "--svg", text(&figure), "--until", "0.5"]);
    assert!(said.contains("figure.svg: ") && said.contains(" packets"), "{said}");
    let drawn = fs::read_to_string(&figure).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    assert!(drawn.contains("bottleneck") && drawn.matches("<path").count() > 2, "{}", drawn.len());
    // Without the pages it says what to run.
    let page = folder.path().join("page.html");
    let output = fontis(&["view", text(&recording), "--export", text(&page)]);
    if output.status.success() {
        assert!(fs::read_to_string(&page).unwrap().contains("\"title\":\"dfcp\""));
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("run make viewer") && !page.exists(), "{said}");
    }
}

#[test]
fn a_folder_stands_for_the_best_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let recording = simulate(folder.path(), "cubic");
    let lanes = |path: &Path| {
        let figure = folder.path().join("figure.svg");
        done(&["view", text(path), "--svg", text(&figure)]);
        fs::read_to_string(&figure).unwrap().contains("bottleneck")
    };
    // A capture knows nothing of the queues.
    assert!(lanes(&recording));
    fs::remove_file(recording.join("packets.trace")).unwrap();
    assert!(!lanes(&recording));
    assert!(!lanes(recording.parent().unwrap()));
    fs::remove_file(recording.join("packets.pcapng")).unwrap();
    let said = refused(&["view", text(&recording)]).1;
    assert!(said.contains("no packets.trace, qlog, pcap or pcapng in it"), "{said}");
}

#[test]
fn what_cannot_be_shown_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("nothing");
    fs::write(&nothing, "hello\n").unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let svg = folder.path().join("out.svg");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["view", text(&nothing)], 1, "it is no trace, pcap, pcapng, qlog, trace of ns-2"),
        (&["view", "/does/not/exist"], 1, "No such file"),
        (&["view", text(&empty)], 2, "fontis sim --packets"),
        (&["view", text(&nothing), "--from", "5", "--until", "4"], 2, "--until must be later"),
        (&["view", "--svg", text(&svg)], 2, "required"),
    ];
    for (args, code, part) in cases {
        let (exit, said) = refused(args);
        assert_eq!(exit, code, "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
    assert!(!svg.exists());
}

fn ours(path: &Path) -> Trace {
    capture::read(File::open(path).unwrap(), "capture", Detail::default()).unwrap()
}
