//! `auto` alone on random paths that lose packets, begun cold or with a token; and several flows
//! that share one.
//!
//! `FONTIS_RUNS` sets how many paths (8 by default, 3 of the shared ones), `FONTIS_SEED` the first
//! seed. A failure names the seed that repeats it:
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

    /// One that loses .05 to 3 %, as most lossy paths do.
    fn of_little_loss(s: &mut Stream) -> Self {
        let path = Self::random(s);
        Self { loss: 5e-4 * 60_f64.powf(s.unit()), known: 0.0, ..path }
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

/// What a lone flow gets on each of so many paths of a kind.
fn shares_of(kind: &str, first: u64, runs: u64, path: fn(&mut Stream) -> Path) -> Vec<f64> {
    let share = |seed| {
        let path = path(&mut Stream::new(seed, kind));
        let share = path.share(seed);
        println!("seed {seed}: {path:.4?}: {share:.3}");
        share
    };
    let shares: Vec<f64> = (first..first + runs).map(share).collect();
    println!("mean {:.3}, least {:.3}", mean(&shares), least(&shares));
    shares
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len() as f64
}

fn least(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_lone_flow_bears_any_loss_where_a_path_holds_eighty_packets() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    let shares = shares_of("lossy", first, runs, Path::random);
    let half = shares.iter().filter(|share| **share < 0.5).count();
    assert!(mean(&shares) > 0.75, "mean {}", mean(&shares));
    // Those that hold a few more packets than the narrowest may need several trials.
    assert!(half as u64 * 8 <= runs, "{half} of {runs} have less than a half");
}

#[test]
fn a_lone_flow_bears_a_little_loss() {
    // On one of the first paths a flow had .38 when chance shortened the queue that it aims at.
    let (first, runs) = (number("FONTIS_SEED", 27), number("FONTIS_RUNS", 12));
    let shares = shares_of("little", first, runs, Path::of_little_loss);
    assert!(mean(&shares) > 0.8 && least(&shares) > 0.4, "{shares:?}");
}

#[test]
fn many_a_lone_flow_bears_much_loss_where_a_path_holds_few_packets() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 8));
    let shares = shares_of("few packets", first, runs, Path::of_few_packets);
    // With none of its loss proved, a flow has a fifth and less.
    assert!(mean(&shares) > 0.45, "{}", mean(&shares));
}

/// Flows of one kind that share a path which loses 2 to 20 %: their number, Mbit/s, milliseconds of
/// the round trip, loss, and the buffer in packets.
#[derive(Debug)]
struct Crowd {
    flows: u64,
    rate: f64,
    rtt: f64,
    loss: f64,
    buffer: u64,
}

impl Crowd {
    /// A path that holds eight packets of each flow, of half a bandwidth-delay product to two.
    fn random(s: &mut Stream) -> Self {
        loop {
            let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
            let (flows, rate, rtt) =
                (between(2.0, 20.9) as u64, between(10.0, 100.0), between(10.0, 200.0));
            let (buffer, loss) = (between(0.5, 2.0), 0.02 + 0.18 * s.unit());
            let bdp = rate * rtt / 12.0;
            if bdp * (1.0 + buffer) >= 8.0 * flows as f64 {
                let buffer = (bdp * buffer).max(20.0) as u64;
                return Self { flows, rate, rtt, loss, buffer };
            }
        }
    }

    /// Jain's index, what arrives of what comes through, and what the bottleneck drops, after 40 s.
    fn shares(&self, seed: u64) -> [f64; 3] {
        let Self { flows, rate, rtt, loss, buffer } = self;
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"90 s\"\nwarmup = \"40 s\"\nsample = \"1 s\"\n\
             start_jitter = \"3 s\"\n\
             [topology]\nrate = \"{rate:.4} Mbit/s\"\nrtt = \"{rtt:.4} ms\"\n\
             buffer = \"{buffer} packets\"\nqueue = \"fifo\"\nloss = \"{:.4} %\"\n\
             [[flow]]\nprotocol = \"dfcp\"\ncount = {flows}\n",
            loss * 100.0
        );
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        let [jain, goodput] =
            ["jain", "goodput"].map(|name| recording.metric(name, "all").expect("there is one"));
        let drops = recording.metric("drop_rate", "bottleneck").expect("there is a bottleneck");
        [jain, goodput / rate / (1.0 - loss), drops]
    }
}

#[test]
fn several_flows_prove_the_loss_of_a_path_that_they_share() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 3));
    let (mut jains, mut fair) = (0.0, 0);
    for seed in first..first + runs {
        let crowd = Crowd::random(&mut Stream::new(seed, "crowd"));
        let [jain, goodput, drops] = crowd.shares(seed);
        println!("seed {seed}: {crowd:.3?}: Jain {jain:.2}, {goodput:.3}, dropped {drops:.4}");
        assert!(drops <= 0.04, "seed {seed}: {drops} of all packets were dropped");
        assert!(goodput > 0.5, "seed {seed}: {goodput}");
        jains += jain;
        fair += u64::from(jain >= 0.9);
    }
    let mean = jains / runs as f64;
    println!("mean {mean:.3}, {fair} of {runs} at .9");
    // Where each takes what others keep for an overload, it is .4 and less.
    assert!(mean > 0.55, "{mean}");
}
