//! Captures of TCP, of the simulator and of the kernel, beside tshark's reading of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fontis_trace::{Kind, Marks, Trace};

use crate::{done, fontis, ours, simulate};

/// A packet as both read it: frame, bytes, first byte, how many, acknowledged.
type Row = (u64, u32, u64, u32, u64);

/// What tshark reads of a capture's TCP: each packet, and the frames that it takes for
/// retransmissions.
fn tshark(path: &Path) -> (Vec<Row>, BTreeSet<u64>) {
    // What is sent again has several names, after how long it took; at its sender, out of order is
    // one of them.
    let fields = [
        "frame.number",
        "ip.len",
        "tcp.seq",
        "tcp.len",
        "tcp.ack",
        "tcp.analysis.retransmission",
        "tcp.analysis.fast_retransmission",
        "tcp.analysis.spurious_retransmission",
        "tcp.analysis.out_of_order",
    ];
    let mut command = Command::new("tshark");
    command.args([
        "-o",
        "tcp.relative_sequence_numbers:TRUE",
        "-Y",
        "tcp",
        "-T",
        "fields",
        "-E",
        "occurrence=f",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut rows = Vec::new();
    let mut again = BTreeSet::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let values: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| values[at].parse::<u64>().unwrap_or(0);
        rows.push((number(0), number(1) as u32, number(2), number(3) as u32, number(4)));
        if values[5..].iter().any(|value| !value.is_empty()) {
            again.insert(number(0));
        }
    }
    (rows, again)
}

/// The same packets in the same words: tshark counts from the SYN, we from the first byte.
fn compare(path: &Path) -> (Trace, BTreeSet<u64>) {
    let (rows, again) = tshark(path);
    let trace = ours(path);
    let mut seen: Vec<Row> = Vec::new();
    for packet in
        trace.packets.iter().filter(|p| trace.flows[usize::from(p.flow)].protocol == "TCP")
    {
        seen.push((packet.number, packet.size, packet.seq, packet.len, packet.ack));
    }
    seen.sort_unstable();
    assert_eq!(seen.len(), rows.len());
    for (ours, theirs) in seen.iter().zip(&rows) {
        assert_eq!((ours.0, ours.1, ours.3), (theirs.0, theirs.1, theirs.3), "{ours:?} {theirs:?}");
        if theirs.3 > 0 {
            assert_eq!(ours.2 + 1, theirs.2, "sequence of {theirs:?}");
        }
        // What acknowledges nothing but the SYN is zero of ours, and the last may count the FIN.
        if theirs.4 > 1 && ours.4 > 0 {
            assert!(ours.4 + 1 == theirs.4, "acknowledgement of {theirs:?}: {ours:?}");
        }
    }
    (trace, again)
}

pub(crate) fn has(command: &str) -> bool {
    let version =
        Command::new(command).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

#[test]
fn captures_of_the_simulator_are_read_as_tshark_reads_them() {
    if !has("tshark") {
        println!("not compared: tshark is not installed (Debian: tshark)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for protocol in ["cubic", "newreno"] {
        let path = simulate(folder.path(), protocol).join("packets.pcapng");
        let (trace, again) = compare(&path);
        assert!(trace.packets.len() > 1000);
        let marked: BTreeSet<u64> = trace
            .packets
            .iter()
            .filter(|p| p.marks.has(Marks::RETRANSMITTED))
            .map(|p| p.number)
            .collect();
        assert!(marked.len() > 5, "{protocol}: {}", marked.len());
        assert_eq!(marked, again, "{protocol}");
    }
    // Of DFCP tshark sees datagrams.
    let path = simulate(folder.path(), "dfcp").join("packets.pcapng");
    let output = Command::new("tshark")
        .args(["-T", "fields", "-e", "frame.number", "-e", "ip.len", "-r"])
        .arg(&path)
        .output()
        .unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    let trace = ours(&path);
    let mut seen: Vec<String> =
        trace.packets.iter().map(|p| format!("{}\t{}", p.number, p.size)).collect();
    seen.sort_by_key(|line| line.split('\t').next().and_then(|number| number.parse::<u64>().ok()));
    assert_eq!(seen, theirs.lines().collect::<Vec<_>>());
}

#[cfg(target_os = "linux")]
#[test]
fn a_capture_of_the_kernels_tcp_is_read_as_tshark_reads_it() {
    if !has("tshark")
        || !has("dumpcap")
        || !fontis(&["testbed", "shell", "--", "true"]).status.success()
    {
        println!("not compared: it needs tshark, dumpcap and network namespaces");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; 2_000_000]).unwrap();
    let path = folder.path().join("kernel.pcapng");
    let fetch = "import os,time,urllib.request as u\n\
                 url = 'http://%s:8099/file' % os.environ['FONTIS_GATEWAY']\n\
                 for _ in range(50):\n\
                 \x20try: u.urlopen(url).read(); break\n\
                 \x20except OSError: time.sleep(0.1)\n";
    fs::write(folder.path().join("fetch.py"), fetch).unwrap();
    // It has begun to capture when the file is there.
    let script = format!(
        "dumpcap -q -i any -w {path} 2>/dev/null & D=$!; for i in $(seq 100); do [ -s {path} ] && break; sleep 0.1; done; \
         python3 {fetch}; sleep 0.5; kill -INT $D; wait $D",
        path = path.display(),
        fetch = folder.path().join("fetch.py").display(),
    );
    let beside = format!(
        "python3 -m http.server 8099 --directory {} >/dev/null 2>&1",
        folder.path().display()
    );
    let link = [
        "--rate",
        "20mbit",
        "--delay",
        "20ms",
        "--loss",
        "1%",
        "--seed",
        "3",
        "--super-packets",
        "none",
    ];
    let mut args = vec!["testbed", "shell"];
    args.extend(link);
    args.extend(["--beside", &beside, "--", "sh", "-c", &script]);
    done(&args);
    let (trace, _) = compare(&path);
    let data = trace.packets.iter().filter(|p| p.kind == Kind::Data).count();
    assert!(data > 1000, "{data}");
    let delivered =
        trace.flows.iter().flat_map(|flow| flow.counts).map(|counts| counts.delivered).max();
    // The file and the head of the answer.
    assert!(
        delivered.is_some_and(|bytes| (2_000_000..2_001_000).contains(&bytes)),
        "{delivered:?}"
    );
}
