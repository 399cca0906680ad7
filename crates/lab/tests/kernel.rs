//! FLD_TCP in the kernel against FLD_TCP in the simulator, over the same links. Where this process
//! cannot make networks or load programs into the kernel, nothing is compared, and that is said.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fontis_base::Stream;
use fontis_lab::kernel::{KernelError, KernelTrial};
use fontis_lab::{kernel, testbed};
use fontis_proto::congestion::CongestionKind;
use fontis_sim::Recording;
use fontis_sim::experiment::run::Watch;
use fontis_sim::scenario::Scenario;
use sha2::{Digest, Sha256};

const MSS: f64 = 1448.0;
const THRESHOLD: f64 = (2 << 20) as f64;

/// A scenario in the simulator and on the testbed; `None` where that is not possible.
fn both(text: &str) -> Option<[(&'static str, Recording); 2]> {
    let runs = Scenario::parse(text).expect("a scenario").runs().expect("a run");
    let experiment = &runs[0].experiment;
    if testbed::gain_privilege().is_err() {
        eprintln!("not compared: no networks can be made here");
        return None;
    }
    match testbed::run(experiment, Watch::default(), || false) {
        Ok(kernel) => {
            let simulated = experiment.run(|| false).expect("nobody stops it");
            let (kernel, _) = kernel.expect("nobody stops it");
            Some([("kernel", kernel.recording), ("simulator", simulated)])
        }
        Err(error) => {
            let error = error.to_string();
            let lacks = ["permission denied", "this kernel cannot", "cannot make a network"];
            assert!(lacks.iter().any(|lack| error.contains(lack)), "{error}");
            eprintln!("not compared: {error}");
            None
        }
    }
}

/// A row of a flow: time, window in segments, copies sent, bytes received.
type Row = (f64, f64, f64, f64);

fn rows(recording: &Recording, name: &str) -> Vec<Row> {
    let flow = &recording.flow;
    let [time, window, copies, received] =
        ["time", "window", "retransmitted", "received"].map(|column| flow.numbers(column));
    let names = flow.texts("name").expect("names");
    (0..time.len())
        .filter(|row| names.get(*row) == Some(name))
        .map(|row| (time[row], window[row] / MSS, copies[row], received[row]))
        .collect()
}

/// The windows that last so long, while a round trip passes without acknowledgements.
fn rests(rows: &[Row], least: f64) -> Vec<f64> {
    let mut windows: Vec<(f64, f64, f64)> = Vec::new();
    for (time, window, ..) in rows.iter().filter(|row| row.1 > 0.0) {
        match windows.last_mut() {
            Some((present, _, end)) if present == window => *end = *time,
            _ => windows.push((*window, *time, *time)),
        }
    }
    windows.retain(|(_, start, end)| end - start >= least);
    windows.into_iter().map(|(window, ..)| window).take(5).collect()
}

#[test]
fn without_loss_the_kernels_window_is_the_simulators() {
    let mut stream = Stream::new(3, "paths");
    for case in 0..3 {
        let rtt = 60 + stream.below(60);
        let text = format!(
            "[scenario]\nduration = \"{} ms\"\nsample = \"2 ms\"\n\
             [topology]\nrate = \"1 Gbit/s\"\nrtt = \"{rtt} ms\"\nbuffer = \"2 BDP\"\n\
             [tcp]\nreceive_buffer = \"64 MB\"\n[[flow]]\nname = \"own\"\nprotocol = \"fld\"\n",
            7 * rtt
        );
        // A window that an application on a busy machine does not fill in time grows less.
        let mut attempts = 0..4;
        loop {
            assert!(attempts.next().is_some(), "case {case}: no attempt was undisturbed");
            let Some(recordings) = both(&text) else { return };
            let windows = recordings.map(|(platform, recording)| {
                let windows = rests(&rows(&recording, "own"), 0.3e-3 * rtt as f64);
                println!("case {case}, {rtt} ms, {platform}: {windows:?}");
                windows
            });
            assert_eq!(windows[1][..5], [10.0, 30.0, 90.0, 270.0, 810.0]);
            let mut pairs = windows[0].iter().zip(&windows[1]);
            assert!(pairs.clone().all(|(kernel, simulated)| *kernel <= simulated + 1.0));
            if windows[0].len() >= 4 && pairs.all(|(kernel, simulated)| kernel + 1.0 >= *simulated)
            {
                break;
            }
        }
    }
}

#[test]
fn flows_of_one_run_begin_with_windows_of_their_own_in_the_kernel_as_in_the_simulator() {
    let text = "[scenario]\nduration = \"400 ms\"\nsample = \"2 ms\"\n\
                [topology]\nrate = \"1 Gbit/s\"\nrtt = \"80 ms\"\n\
                [tcp]\nreceive_buffer = \"64 MB\"\n[[flow]]\nname = \"two\"\nprotocol = \"fld\"\n\
                tcp.initial_window = 2\n[[flow]]\nname = \"ten\"\nprotocol = \"newreno\"\n";
    let Some(recordings) = both(text) else { return };
    for (platform, recording) in recordings {
        for (flow, want) in [("two", 2.0), ("ten", 10.0)] {
            let windows = rests(&rows(&recording, flow), 0.02);
            assert_eq!(windows.first(), Some(&want), "{platform}, {flow}: {windows:?}");
        }
    }
}

/// The windows before and after each copy that no other is near, and the bytes received by then.
fn isolated(rows: &[Row], rtt: f64) -> Vec<(f64, f64, f64)> {
    let mut found = Vec::new();
    for at in 1..rows.len() {
        let (time, _, copies, received) = rows[at];
        let (_, prior, before, _) = rows[at - 1];
        let value = |from: f64| rows.iter().rfind(|row| row.0 <= from).copied();
        let (Some(earlier), Some(later)) = (value(time - 2.5 * rtt), value(time + 2.5 * rtt))
        else {
            continue;
        };
        // In slow start the window before the loss lies between two samples.
        if earlier.1 + 4.0 < prior {
            continue;
        }
        let ends = rows.last().is_some_and(|last| last.0 > time + 2.5 * rtt);
        if !ends || copies != before + 1.0 || later.2 != copies || earlier.2 != before {
            continue;
        }
        // The recovery takes a round trip; after it the window grows by a segment in each.
        let after = value(time + 1.4 * rtt).map_or(0.0, |row| row.1);
        found.push((prior, after, received));
    }
    found
}

#[test]
fn an_isolated_loss_costs_the_same_in_the_kernel_and_in_the_simulator() {
    let (mut counts, mut close) = ([[0; 2]; 2], 0);
    // A flow is short for twenty round trips only: an isolated loss in them is rare.
    let is_enough = |counts: &[[usize; 2]; 2]| counts.iter().flatten().all(|count| *count >= 2);
    for seed in 1..=12 {
        if seed > 3 && is_enough(&counts) {
            break;
        }
        println!("seed {seed}");
        let text = format!(
            "[scenario]\nduration = \"8 s\"\nsample = \"2 ms\"\nseed = {seed}\n\
             [topology]\nrate = \"1 Gbit/s\"\nrtt = \"40 ms\"\nloss = \"0.4%\"\n\
             [tcp]\nreceive_buffer = \"64 MB\"\n\
             [[flow]]\nname = \"own\"\nprotocol = \"fld\"\ncount = 8\n"
        );
        let Some(recordings) = both(&text) else { return };
        for (at, (platform, recording)) in recordings.iter().enumerate() {
            for flow in 1..=8 {
                for (prior, after, received) in
                    isolated(&rows(recording, &format!("own.{flow}")), 0.04)
                {
                    // What is on its way is not received yet.
                    let slack = 2.0 * prior * MSS;
                    let is_short = received + slack < THRESHOLD;
                    if !is_short && received < THRESHOLD + slack {
                        continue;
                    }
                    let want = if is_short { prior - 1.0 } else { (prior / 2.0).floor() };
                    // A segment may be added before the loss is known, and one after the recovery.
                    println!("{platform}: {prior} to {after}, want {want}, short: {is_short}");
                    counts[at][usize::from(is_short)] += 1;
                    close += usize::from((after - want).abs() <= 1.0);
                }
            }
        }
    }
    println!("{counts:?} isolated losses of long and short flows, in kernel and simulator");
    let all: usize = counts.iter().flatten().sum();
    println!("{close} of {all} within a segment");
    assert!(is_enough(&counts), "{counts:?}");
    // A busy machine reads some windows late.
    assert!(close * 20 >= all * 17, "{close} of {all}");
}

fn sources() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/bpf")
}

#[test]
fn the_object_is_made_of_the_source_beside_it() {
    for name in kernel::names() {
        let source = fs::read(sources().join(format!("{name}.bpf.c"))).expect("a source");
        let hash: String = Sha256::digest(&source).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            kernel::source_hash(name).expect("an object"),
            hash,
            "contrib/bpf/{name}.bpf.o is of another source: run contrib/bpf/build.sh"
        );
    }
}

/// Cells of docs/safety.md in which an algorithm drops more than a fiftieth, and more than CUBIC:
/// the cell, and both shares.
fn broken_rows(page: &str, name: &str) -> Vec<(String, String, String)> {
    let (mut columns, mut broken) = (None, Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let place = |name| cells.iter().position(|cell| *cell == name);
        if cells[0] == "cell" {
            columns = place(name).zip(place("cubic"));
            continue;
        }
        // Tables of other transports have neither column.
        let Some((own, cubic)) = columns else { continue };
        let drops = |column: usize| cells[column].split(',').next().unwrap_or("").to_owned();
        let (fld, cubic) = (drops(own), drops(cubic));
        let number = |text: &str| text.parse::<f64>().expect("a share");
        if number(&fld) > 0.02 && number(&fld) > number(&cubic) {
            broken.push((cells[0].to_owned(), fld, cubic));
        }
    }
    broken
}

#[test]
fn loading_warns_of_every_row_of_the_page_on_safety_that_is_broken() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    let page = fs::read_to_string(page).expect("the page");
    assert!(kernel::warning("fld").is_some());
    for name in ["fld", "fld-linux", "fld-thesis", "fld-ns2", "jumpstart", "halfback"] {
        assert!(page.contains(&format!("| {name} |")), "{name} is a column");
        let kind: CongestionKind = name.parse().expect("an algorithm");
        let warning = kind.warning().unwrap_or("");
        let broken = broken_rows(&page, name);
        assert_eq!(broken.is_empty(), warning.is_empty(), "{name}");
        for (cell, own, cubic) in broken {
            let numbers = cell.split(' ').filter(|word| word.starts_with(char::is_numeric));
            for number in numbers.map(|word| word.trim_end_matches(',')).chain([&*own, &*cubic]) {
                assert!(warning.contains(number), "{name}, {cell}: {own}, {cubic}");
            }
        }
    }
}

#[test]
fn the_source_compiles_where_there_is_a_clang() {
    if Command::new("clang").arg("--version").output().is_err() {
        return eprintln!("not compiled: there is no clang");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let object = folder.path().join("fld.bpf.o");
    let built = Command::new(sources().join("build.sh")).arg(&object).output().expect("it runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(fs::metadata(object).is_ok_and(|object| object.len() > 1000));
}

/// Objects that a server on the loopback interface sends, several at the same time, to clients that
/// read slowly, so that a connection lasts some 200 ms.
fn traffic(until: Instant) -> std::io::Result<usize> {
    const BYTES: usize = 300_000;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;
    let accepting = std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let mut one = [0];
            if socket.read(&mut one).unwrap_or(0) == 0 {
                return;
            }
            std::thread::spawn(move || socket.write_all(&[0; BYTES]));
        }
    });
    let client = move || -> std::io::Result<usize> {
        let mut done = 0;
        while Instant::now() < until {
            let mut socket = TcpStream::connect(to)?;
            socket.write_all(b"?")?;
            let (mut got, mut buffer) = (0, vec![0; BYTES / 20]);
            while got < BYTES {
                let read = socket.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                got += read;
                std::thread::sleep(Duration::from_millis(8));
            }
            done += usize::from(got == BYTES);
        }
        Ok(done)
    };
    let clients: Vec<_> = (0..6).map(|_| std::thread::spawn(client)).collect();
    let done = clients.into_iter().map(|client| client.join().expect("it ends")).sum();
    // A connection that asks for nothing ends the server.
    drop(TcpStream::connect(to)?);
    accepting.join().expect("it ends");
    done
}

#[test]
fn a_trial_gives_new_connections_one_algorithm_or_the_other_and_restores_the_default() {
    if testbed::gain_privilege().is_err() {
        return eprintln!("not tried: no networks can be made here");
    }
    let namespace = testbed::Namespace::new().expect("a namespace");
    let default = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let tried = namespace.run(|| {
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("reno is there");
        let mut trial = match KernelTrial::begin("fld", 0.5, 1) {
            Ok(trial) => trial,
            Err(error @ (KernelError::Forbidden { .. } | KernelError::Unsupported(_))) => {
                assert_eq!(error.to_string().lines().count(), 1);
                eprintln!("not tried: {error}");
                return Ok(None);
            }
            Err(error) => panic!("{error}"),
        };
        let until = Instant::now() + Duration::from_secs(3);
        let clients = std::thread::spawn(move || traffic(until));
        while !clients.is_finished() {
            trial.step().expect("it goes on");
        }
        let done = clients.join().expect("it ends").expect("the loopback interface works");
        let outcome = trial.end().expect("it ends");
        assert_eq!(default().expect("a default").trim(), "reno");
        // One that is given up restores the default too.
        let mut again = KernelTrial::begin("fld", 0.99, 2).expect("a second one");
        again.step().expect("it goes on");
        drop(again);
        assert_eq!(default().expect("a default").trim(), "reno");
        Ok(Some((done, outcome)))
    });
    let Some((done, outcome)) = tried.expect("a namespace") else { return };
    println!("{done} objects, {outcome:?}");
    assert_eq!(outcome.names, ["fld", "reno"]);
    // Clients sent a byte on the same connections' other ends, which is no data to speak of.
    let class = outcome.classes.iter().find(|class| class.name == "to 500 kB").expect("it is");
    let [tried, other] = class.counts;
    assert!(tried + other <= done && (tried + other) * 10 >= done * 9, "{done}: {outcome:?}");
    assert!(tried * 5 >= done && other * 5 >= done, "{outcome:?}");
    assert!(class.medians.iter().all(|time| (0.01..1.0).contains(time)), "{outcome:?}");
    let faster = class.faster.expect("there are enough");
    assert!(faster.interval[0] <= faster.ratio && faster.ratio <= faster.interval[1]);
}
