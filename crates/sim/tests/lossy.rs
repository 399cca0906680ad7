//! `auto` alone on random paths that lose packets, begun cold or with a token.
//!
//! `FONTIS_RUNS` sets how many paths (8 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main lossy -- --nocapture`.

use fontis_base::Stream;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

/// Packets that the narrowest path holds in a round trip.
const LEAST: f64 = 80.0;

/// A path: Mbit/s, milliseconds of the round trip, loss, and what a token remembers of its rate.
#[derive(Debug)]
struct Path {
    rate: f64,
    rtt: f64,
    loss: f64,
    known: f64,
}

impl Path {
    /// One that holds some fifteen packets to eighty.
    fn of_few_packets(s: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let rate = between(5.0, 50.0);
        let rtt = (between(15.0, LEAST) * 12.0 / rate).max(10.0);
        Self { rate, rtt, loss: 0.3 * s.unit(), known: 0.0 }
    }

    fn random(s: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let rate = between(10.0, 200.0);
        let rtt = between((LEAST * 12.0 / rate).max(10.0), 200.0);
        let known = rate * between(0.5, 1.5);
        let loss = 0.3 * s.unit();
        Self { rate, rtt, loss, known: if s.below(2) == 1 { known } else { 0.0 } }
    }

    /// What a flow gets of what comes through, in 30 s, the start included.
    fn share(&self, seed: u64) -> f64 {
        let Self { rate, rtt, loss, known } = self;
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"30 s\"\nsample = \"1 s\"\n\
             [topology]\nrate = \"{rate:.4} Mbit/s\"\nrtt = \"{rtt:.4} ms\"\nbuffer = \"1 BDP\"\n\
             queue = \"fifo\"\nloss = \"{:.4} %\"\n\
             [dfcp]\nknown = \"{known:.4} Mbit/s\"\n\
             [[flow]]\nname = \"get\"\nprotocol = \"dfcp\"\n",
            loss * 100.0
        );
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        recording.metric("goodput", "get").expect("there is one") / rate / (1.0 - loss)
    }
}

#[test]
fn a_lone_flow_bears_any_loss_where_a_path_holds_eighty_packets() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    let mut shares = Vec::new();
    for seed in first..first + runs {
        let path = Path::random(&mut Stream::new(seed, "lossy"));
        let share = path.share(seed);
        println!("seed {seed}: {path:.3?}: {share:.3}");
        shares.push(share);
    }
    let mean = shares.iter().sum::<f64>() / runs as f64;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let half = shares.iter().filter(|share| **share < 0.5).count();
    println!("mean {mean:.3}, least {least:.3}, below a half {half}");
    assert!(mean > 0.75, "mean {mean}");
    // Those that hold a few more packets than the narrowest may need several trials.
    assert!(half as u64 * 8 <= runs, "{half} of {runs} have less than a half");
}

#[test]
fn many_a_lone_flow_bears_much_loss_where_a_path_holds_few_packets() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    let mut sum = 0.0;
    for seed in first..first + runs {
        let path = Path::of_few_packets(&mut Stream::new(seed, "few packets"));
        let share = path.share(seed);
        println!("seed {seed}: {path:.3?}: {share:.3}");
        sum += share;
    }
    // With none of its loss proved, a flow has a fifth and less.
    let mean = sum / runs as f64;
    println!("mean {mean:.3}");
    assert!(mean > 0.45, "{mean}");
}
