//! Calls over `auto`: messages that leave at a steady rate.
//!
//! `FONTIS_RUNS` sets how many paths (8 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main calls -- --nocapture`.

use fontis_base::Stream;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

/// Bytes of the headers of a message's packet.
const HEADERS: f64 = 65.0;

/// A path: Mbit/s, milliseconds, the loss of either direction, and the kbit/s of a call's messages.
#[derive(Debug)]
struct Path {
    rate: f64,
    rtt: f64,
    loss: f64,
    voice: f64,
}

/// What became of calls: the least share of messages that came in time, the mean of them, and what
/// the bottleneck dropped.
#[derive(Debug)]
struct Outcome {
    least: f64,
    mean: f64,
    drops: f64,
    /// Bits at the bottleneck, as a share of those of the messages.
    cost: f64,
}

impl Path {
    /// The bytes of a message: 20 ms of voice.
    fn piece(&self) -> f64 {
        self.voice * 20.0 / 8.0
    }

    fn calls(&self, count: u32, seed: u64) -> Outcome {
        let Self { rate, rtt, loss, voice } = self;
        let piece = self.piece();
        let buffer = (rate * rtt / 12.0).max(20.0);
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"60 s\"\nwarmup = \"10 s\"\nsample = \"1 s\"\n\
             [topology]\nrate = \"{rate:.4} Mbit/s\"\nrtt = \"{rtt:.4} ms\"\n\
             buffer = \"{buffer:.0} packets\"\n\
             loss = \"{:.4}%\"\nloss_back = \"{:.4}%\"\n\
             [[flow]]\nname = \"call\"\ncount = {count}\nprotocol = \"dfcp\"\napp = \"voice\"\n\
             rate = \"{voice:.3} kbit/s\"\npiece = \"{piece:.0} B\"\non = \"10000 s\"\n\
             off = \"0 s\"\ndeadline = \"2 s\"\n",
            loss * 100.0,
            loss * 100.0,
        );
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        let metrics = recording.metrics();
        let of = |metric: &str| {
            let rows = metrics.iter().filter(move |((name, _), _)| name == metric);
            rows.map(|(_, value)| *value).collect::<Vec<f64>>()
        };
        let shares = of("messages_in_time");
        assert_eq!(shares.len(), count as usize);
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = shares.iter().sum::<f64>() / f64::from(count);
        let (drops, used) = (of("drop_rate")[0], of("utilisation")[0]);
        let cost = used * rate * 1e3 / (voice * f64::from(count));
        Outcome { least, mean, drops, cost }
    }
}

#[test]
fn a_call_on_a_lossy_path_keeps_its_rate() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    for seed in first..first + runs {
        let mut s = Stream::new(seed, "calls");
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let path = Path {
            rate: between(2.0, 50.0),
            rtt: between(20.0, 800.0),
            loss: between(0.005, 0.05),
            voice: between(16.0, 100.0),
        };
        let call = path.calls(1, seed);
        println!("seed {seed}: {path:.3?}: {call:.3?}");
        assert!(call.least > 0.99, "seed {seed}: {} of the messages came in time", call.least);
        // Three copies, and 500 bytes of headers and feedback for each message: packets of their
        // own for what belongs to each would take more.
        assert!(call.cost < 3.0 + 500.0 / path.piece(), "seed {seed}: {}", call.cost);
    }
}

#[test]
fn calls_that_overload_a_link_give_way() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    for seed in first..first + runs {
        let mut s = Stream::new(seed, "calls");
        let count = 4 + s.below(30) as u32;
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let (rtt, voice, over) = (between(20.0, 800.0), between(16.0, 100.0), between(1.0, 8.0));
        let rate = (voice * f64::from(count) / 1e3 * over).max(0.2);
        let path = Path { rate, rtt, loss: 0.0, voice };
        let calls = path.calls(count, seed);
        println!("seed {seed}: {count} calls, {over:.2} of their rate: {path:.3?}: {calls:.3?}");
        // What tells the ends of messages must not fill the link when they are given up.
        assert!(calls.drops < 0.5, "seed {seed}: {} of all packets were dropped", calls.drops);
        // Where a link carries each message twice, with its headers, it serves nearly all.
        let twice = 2.0 * (path.piece() + HEADERS) / path.piece();
        assert!(over < twice || calls.mean > 0.85, "seed {seed}: {calls:?}");
    }
}
