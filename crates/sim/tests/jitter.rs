//! `auto` alone and in crowds on random paths whose delay jitters, as those of radios do.
//!
//! `FONTIS_RUNS` sets how many paths (10 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main jitter -- --nocapture`.

use std::fmt::Write as _;

use fontis_base::Stream;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

/// Links in a row that hold packets back at random: each by half as long as the one before, so that
/// the sum is nearly uniform.
const HOLDS: u32 = 5;

/// A path: Mbit/s, and milliseconds of the round trip and of the jitter of each direction.
#[derive(Debug)]
struct Path {
    rate: f64,
    rtt: f64,
    jitter: f64,
    /// Whether packets overtake others by it.
    reorders: bool,
    /// The loss towards the client.
    loss: f64,
}

impl Path {
    fn random(s: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let (rate, rtt, jitter) = (between(10.0, 100.0), between(0.2, 40.0), between(5.0, 60.0));
        Self { rate, rtt, jitter, reorders: s.below(2) == 1, loss: 0.0 }
    }

    /// One that loses packets as well.
    fn lossy(s: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let (rate, rtt) = (between(10.0, 100.0), between(20.0, 150.0));
        let (jitter, loss) = (between(0.3, 40.0), between(0.01, 0.15));
        Self { rate, rtt, jitter, reorders: s.below(2) == 1, loss }
    }

    /// What a flow gets of the rate.
    fn share(&self, seed: u64) -> f64 {
        let Self { rate, rtt, jitter, loss, .. } = self;
        let packets = (rate * 1e3 * (rtt + jitter) / 12e3).max(30.0) as u64;
        let mut text =
            format!("[scenario]\nseed = {seed}\nduration = \"20 s\"\nsample = \"1 s\"\n");
        for (name, from, to) in [("down", "server", "client"), ("up", "client", "server")] {
            let holds = if self.reorders { HOLDS } else { 0 };
            let station = |n| if n > holds { to.into() } else { format!("{name}{n}") };
            let keeps = if self.reorders { 0.0 } else { *jitter };
            write!(
                text,
                "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{}\"\none_way = true\n\
                 rate = \"{rate:.4} Mbit/s\"\ndelay = \"{:.4} ms\"\nbuffer = \"{packets} packets\"\n\
                 jitter = \"{keeps:.4} ms\"\nloss = \"{:.4} %\"\n",
                station(1),
                rtt / 2.0,
                if name == "down" { loss * 100.0 } else { 0.0 },
            )
            .expect("a string takes it");
            for n in 1..=holds {
                write!(
                    text,
                    "[[link]]\nname = \"{name}-{n}\"\nfrom = \"{}\"\nto = \"{}\"\none_way = true\n\
                     record = false\nrate = \"100 Gbit/s\"\nreorder = \"50%:{:.4}ms\"\n",
                    station(n),
                    station(n + 1),
                    jitter / f64::from(1 << n),
                )
                .expect("a string takes it");
            }
        }
        text.push_str("[[flow]]\nname = \"get\"\nprotocol = \"dfcp\"\n");
        text.push_str("from = \"server\"\nto = \"client\"\n");
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        recording.metric("goodput", "get").expect("there is one") / rate
    }
}

#[test]
fn a_lone_flow_fills_a_path_whose_delay_jitters() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 10));
    let mut shares = Vec::new();
    for seed in first..first + runs {
        let path = Path::random(&mut Stream::new(seed, "jitter"));
        let share = path.share(seed);
        println!("seed {seed}: {path:.2?}: {share:.3}");
        shares.push(share);
    }
    let mean = shares.iter().sum::<f64>() / runs as f64;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    println!("mean {mean:.3}, least {least:.3}");
    assert!(least > 0.7 && mean > 0.85, "mean {mean}, least {least}");
}

#[test]
fn a_lone_flow_fills_a_lossy_path_whose_delay_jitters() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 10));
    let mut sum = 0.0;
    for seed in first..first + runs {
        let path = Path::lossy(&mut Stream::new(seed, "lossy jitter"));
        let share = path.share(seed) / (1.0 - path.loss);
        println!("seed {seed}: {path:.3?}: {share:.3}");
        sum += share;
    }
    let mean = sum / runs as f64;
    println!("mean {mean:.3}");
    assert!(mean > 0.7, "mean {mean}");
}

/// Several flows over one path whose delay jitters.
#[derive(Debug)]
struct Crowd {
    flows: u32,
    /// Mbit/s, and milliseconds.
    rate: f64,
    rtt: f64,
    jitter: f64,
    /// In packets.
    buffer: f64,
    queue: &'static str,
    /// The loss towards the receivers.
    loss: f64,
}

impl Crowd {
    fn random(s: &mut Stream) -> Self {
        let flows = 2 + s.below(19) as u32;
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let (rate, rtt, jitter) = (between(20.0, 200.0), between(20.0, 100.0), between(0.3, 40.0));
        let bdp = rate * rtt / 12.0;
        // The class of docs/rate.md: 20 packets at least, and eight of the whole for each flow.
        let rate = if bdp < 5.0 * f64::from(flows) { rate * 5.0 } else { rate };
        let bdp = rate * rtt / 12.0;
        let least = (8.0 * f64::from(flows) - bdp).max(20.0);
        let buffer = (bdp * between(0.1, 2.0)).max(least);
        let queue = ["fifo", "fifo", "codel"][s.below(3) as usize];
        Self { flows, rate, rtt, jitter, buffer, queue, loss: 0.0 }
    }

    /// The shares of the packets that the queue drops, and of the rate that the flows get.
    fn run(&self, seed: u64) -> (f64, f64) {
        let Self { flows, rate, rtt, jitter, buffer, queue, loss } = self;
        let delay = rtt / 2.0;
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"40 s\"\nwarmup = \"20 s\"\nsample = \"1 s\"\n\
             [[link]]\nname = \"forth\"\nfrom = \"a\"\nto = \"m\"\none_way = true\n\
             rate = \"{rate:.4} Mbit/s\"\ndelay = \"{delay:.4} ms\"\n\
             buffer = \"{buffer:.0} packets\"\nqueue = \"{queue}\"\njitter = \"{jitter:.4} ms\"\n\
             [[link]]\nname = \"loses\"\nfrom = \"m\"\nto = \"b\"\none_way = true\n\
             rate = \"10 Gbit/s\"\nloss = \"{:.4} %\"\n\
             [[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\none_way = true\n\
             rate = \"1 Gbit/s\"\ndelay = \"{delay:.4} ms\"\n\
             [[flow]]\nname = \"get\"\ncount = {flows}\nprotocol = \"dfcp\"\nfrom = \"a\"\n\
             to = \"b\"\nstart = \"0 s\"\n",
            100.0 * loss,
        );
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        let drops = recording.metric("drop_rate", "forth").expect("there is one");
        let goodput = recording.metric("goodput", "all").expect("there is one");
        (drops, goodput / rate)
    }
}

#[test]
fn crowds_on_a_path_whose_delay_jitters_drop_little() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    for seed in first..first + runs {
        let mut s = Stream::new(seed, "jittery crowds");
        let crowd = Crowd::random(&mut s);
        let (drops, share) = crowd.run(seed);
        println!("seed {seed}: {crowd:.2?}: {drops:.4} dropped, {share:.3}");
        assert!(drops < 0.1, "seed {seed}: {drops} of all packets were dropped");
    }
}

#[test]
fn crowds_on_a_lossy_path_whose_delay_jitters_drop_little() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    let mut sum = 0.0;
    for seed in first..first + runs {
        let mut s = Stream::new(seed, "jittery lossy crowds");
        let mut crowd = Crowd::random(&mut s);
        crowd.loss = 0.01 + 0.09 * s.unit();
        let (drops, share) = crowd.run(seed);
        let share = share / (1.0 - crowd.loss);
        println!("seed {seed}: {crowd:.2?}: {drops:.4} dropped, {share:.3}");
        assert!(drops < 0.1, "seed {seed}: {drops} of all packets were dropped");
        sum += share;
    }
    let mean = sum / runs as f64;
    println!("mean {mean:.3}");
    assert!(mean > 0.6, "mean {mean}");
}

#[test]
fn a_queue_that_is_none_does_not_stop_a_flow() {
    // A first flight that meets losses, and delays that no reduction shortens: the rate must stay
    // high enough to tell jitter from a queue.
    for seed in [223, 356, 419] {
        let share = Path::random(&mut Stream::new(seed, "jitter")).share(seed);
        assert!(share > 0.5, "seed {seed}: {share}");
    }
}
