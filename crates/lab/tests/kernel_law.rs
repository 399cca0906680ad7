//! The law of `contrib/bpf/fld.bpf.c` against the simulator's, on sequences of events that flows in
//! the simulator have recorded. A C compiler makes an ordinary program of the law; where there is
//! none, nothing is compared, and that is said.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use fontis_base::{Stream, Time};
use fontis_proto::congestion::{
    Acknowledgement, CongestionControl, CongestionMaker, Fld, FldOptions, Phase,
};
use fontis_sim::host::rows::tcp::Tcp;
use fontis_sim::scenario::Scenario;

const MSS: u64 = 1448;
const THRESHOLD: u64 = 2 << 20;

/// What the simulator's flows have heard, as lines for the kernel's law, and what they made of each
/// acknowledgement; `None` where the two are not to be compared.
#[derive(Debug, Default)]
struct Record {
    lines: String,
    wanted: Vec<Option<(u64, u64)>>,
}

/// FLD_TCP that records what it hears.
#[derive(Clone, Debug)]
struct Recorder {
    fld: Fld,
    record: Arc<Mutex<Record>>,
    phase: Phase,
    /// The next losses begin a recovery.
    begins: bool,
    delivered: u64,
    acked_to: u64,
    /// What the kernel has of it is set anew behind the next acknowledgement.
    apart: bool,
}

impl Recorder {
    fn say(&self, line: &str) {
        let mut record = self.record.lock().expect("nobody panics with it");
        writeln!(record.lines, "{line}").expect("a string takes it");
    }

    /// Whether the two count the flow's length on different sides of the threshold: bytes that were
    /// delivered above a hole.
    fn is_crossing(&self) -> bool {
        (self.delivered > THRESHOLD) != (self.acked_to > THRESHOLD)
    }
}

impl CongestionControl for Recorder {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        self.delivered += ack.delivered;
        self.acked_to = ack.acked_to;
        if core::mem::take(&mut self.begins) {
            // What is lost was told in the recovery before. A kernel counts it to this one too.
            self.say("r 0");
            self.phase = Phase::Recovery;
            self.apart |= self.delivered <= THRESHOLD;
        }
        match (self.phase, ack.phase) {
            (Phase::Recovery, Phase::Open) => self.say("e"),
            (Phase::Loss, Phase::Open) => self.say("o"),
            _ => {}
        }
        self.phase = ack.phase;
        self.fld.on_ack(ack);
        let (window, threshold) =
            (self.fld.cwnd() / MSS, (self.fld.ssthresh() / MSS).min(0x7fff_ffff));
        let full = u8::from(ack.cwnd_limited);
        self.say(&format!("a {} {full} {} {}", ack.acked / MSS, ack.sent_to, ack.acked_to));
        let is_compared = !self.apart && ack.phase != Phase::Recovery;
        let wanted = is_compared.then_some((window, threshold));
        self.record.lock().expect("nobody panics with it").wanted.push(wanted);
        if self.apart && ack.phase != Phase::Recovery {
            self.say(&format!("s {window} {threshold}"));
            self.apart = false;
        }
    }

    fn on_congestion(&mut self, now: Time, window: u64) {
        self.apart |= self.is_crossing() || window + MSS < self.fld.cwnd();
        if self.phase == Phase::Recovery {
            // One recovery ends and another begins with the same acknowledgement.
            self.say("e");
        }
        self.begins = true;
        self.fld.on_congestion(now, window);
    }

    fn on_lost(&mut self, now: Time, packets: u64) {
        let is_first = core::mem::take(&mut self.begins);
        self.say(&format!("{} {packets}", if is_first { 'r' } else { 'l' }));
        self.phase = if is_first { Phase::Recovery } else { self.phase };
        self.fld.on_lost(now, packets);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        // The kernel keeps the threshold of a recovery in which the timer expires.
        self.apart |= self.phase != Phase::Open || self.is_crossing();
        self.apart |= window + MSS < self.fld.cwnd();
        self.say(&format!("t {}", window / MSS));
        self.phase = Phase::Loss;
        self.fld.on_timeout(now, window);
    }

    fn on_idle(&mut self, restart: u64) {
        self.fld.on_idle(restart);
        self.apart = true;
    }

    fn cwnd(&self) -> u64 {
        self.fld.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.fld.ssthresh()
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

/// Records a flow over a random path.
fn record(seed: u64) -> Record {
    let mut stream = Stream::new(seed, "paths");
    let rate = 5 + stream.below(200);
    let rtt = 10 + stream.below(100);
    let loss = [0.0, 0.02, 0.1, 0.5, 2.0][stream.below(5) as usize];
    let delayed = [0, 40][stream.below(2) as usize];
    let buffer = 0.25 + 2.0 * stream.unit();
    println!("seed {seed}: {rate} Mbit/s, {rtt} ms, {loss} % loss, a buffer of {buffer:.2} BDP");
    let text = format!(
        "[scenario]\nduration = \"10 s\"\nsample = \"1 s\"\nseed = {seed}\n\
         [topology]\nrate = \"{rate} Mbit/s\"\nrtt = \"{rtt} ms\"\nloss = \"{loss}%\"\n\
         buffer = \"{buffer} BDP\"\n[tcp]\ndelayed_ack = \"{delayed} ms\"\n\
         [[flow]]\nprotocol = \"fld\"\n"
    );
    let mut runs = Scenario::parse(&text).expect("a scenario").runs().expect("a run");
    let experiment = &mut runs[0].experiment;
    let shared = Arc::new(Mutex::new(Record::default()));
    let given = shared.clone();
    let maker = CongestionMaker::new(move |mss, window| {
        assert_eq!(mss, MSS);
        let recorder = Recorder {
            fld: Fld::new(mss, window, FldOptions::MODERN),
            record: given.clone(),
            phase: Phase::Open,
            begins: false,
            delivered: 0,
            acked_to: 0,
            apart: false,
        };
        recorder.say(&format!("n {}", window / mss));
        Box::new(recorder)
    });
    let flow = &mut experiment.flows[0];
    let tcp = flow.transport.as_any().downcast_ref::<Tcp>().expect("it is TCP");
    let mut config = (*tcp.config).clone();
    config.foreign = Some(maker);
    flow.transport = Arc::new(Tcp { config: Arc::new(config) });
    experiment.run(|| false).expect("nobody stops it");
    core::mem::take(&mut *shared.lock().expect("nobody panics with it"))
}

/// The events up to an acknowledgement, the last ones alone.
fn before(lines: &str, acknowledgement: usize) -> String {
    let mut seen = 0;
    let lines: Vec<&str> = lines
        .lines()
        .take_while(|line| {
            seen += usize::from(line.starts_with('a'));
            seen <= acknowledgement + 1
        })
        .collect();
    let told: Vec<&str> = lines.into_iter().filter(|line| !line.starts_with("a 0")).collect();
    told[told.len().saturating_sub(30)..].join("\n")
}

#[test]
fn on_recorded_events_the_kernels_law_and_the_simulators_have_the_same_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("replay");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/bpf/replay.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-fno-strict-aliasing", "-DSOURCE_SHA256=\"\""]);
    match compiler.arg("-o").args([&program, &source]).output() {
        Err(error) => return eprintln!("not compared: there is no C compiler: {error}"),
        Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
    }
    let seeds: u64 = std::env::var("FONTIS_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let (mut compared, mut left_out, mut episodes) = (0, 0, 0);
    for seed in 0..seeds {
        let record = record(seed);
        let events = folder.path().join("events");
        fs::write(&events, &record.lines).expect("it is written");
        let input = File::open(&events).expect("it was written");
        let output = Command::new(&program).stdin(input).output().expect("it runs");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("numbers");
        assert_eq!(text.lines().count(), record.wanted.len());
        episodes += record.lines.lines().filter(|line| line.starts_with(['r', 't'])).count();
        for (at, (line, wanted)) in text.lines().zip(&record.wanted).enumerate() {
            let Some((window, threshold)) = wanted else {
                left_out += 1;
                continue;
            };
            let (ours, least) = line.split_once(' ').expect("two numbers");
            let [ours, least] = [ours, least].map(|n| n.parse::<u64>().expect("a number"));
            assert!(
                ours.abs_diff(*window) <= 1 && least.abs_diff(*threshold) <= 1,
                "seed {seed}: the kernel has {line}, the simulator {window} {threshold} after\n{}",
                before(&record.lines, at)
            );
            compared += 1;
        }
    }
    println!(
        "{compared} acknowledgements and {episodes} losses and timeouts alike; {left_out} left out"
    );
    assert!(compared > 1000 * seeds as usize && episodes > seeds as usize);
}
