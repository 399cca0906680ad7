//! Videos over `auto`: messages of many packets that have a deadline, over one link and over two.
//!
//! `FONTIS_RUNS` sets how many points (6 by default), `FONTIS_SEED` the first seed. A failure names
//! the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main videos -- --nocapture`.

use std::fmt::Write as _;

use fontis_base::Stream;
use fontis_proto::rate::tfrc::throughput;
use fontis_sim::scenario::Scenario;

use crate::support::number::number;

/// Two links: each with Mbit/s, milliseconds there and back, and loss; and a video's Mbit/s.
#[derive(Clone, Debug)]
struct Point {
    links: [(f64, f64, f64); 2],
    video: f64,
    fps: u64,
    deadline: f64,
}

/// What became of a video's frames.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    in_time: f64,
    /// Milliseconds.
    p99: f64,
    /// Bits sent, headers and feedback included, ÷ bits of the frames.
    cost: f64,
}

impl Point {
    fn random(s: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let video = between(0.5, 8.0);
        let mut link = || (video * between(3.0, 10.0), between(10.0, 80.0), between(0.002, 0.04));
        let links = [link(), link()];
        let longest = links[0].1.max(links[1].1);
        Self { links, video, fps: 25, deadline: 2.0 * longest + 100.0 }
    }

    /// What TCP would have over so many of the links, in units of the video's rate.
    fn fair(&self, count: usize) -> f64 {
        let of_link = |(rate, rtt, loss): &(f64, f64, f64)| {
            let bytes = throughput(1500.0, rtt / 1e3, 4.0 * rtt / 1e3, *loss);
            (bytes * 8e-6).min(*rate)
        };
        self.links.iter().take(count).map(of_link).sum::<f64>() / self.video
    }

    /// The video over the first `count` links.
    fn run(&self, count: usize, is_lossy: bool, seed: u64) -> Outcome {
        let mut text =
            format!("[scenario]\nseed = {seed}\nduration = \"60 s\"\nwarmup = \"5 s\"\n");
        text.push_str("[[host]]\nname = \"laptop\"\n[[host]]\nname = \"server\"\n");
        text.push_str("[[link]]\nname = \"rack\"\nfrom = \"server\"\nto = \"core\"\n");
        text.push_str("rate = \"10 Gbit/s\"\ndelay = \"10 us\"\n");
        for (number, (rate, rtt, loss)) in self.links.iter().enumerate().take(count) {
            let loss = if is_lossy { *loss } else { 0.0 };
            for (name, from, to, loss) in
                [("last", "core", "laptop", loss), ("first", "laptop", "core", 0.0)]
            {
                write!(
                    text,
                    "[[link]]\nname = \"{name}{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
                     rate = \"{rate:.4} Mbit/s\"\ndelay = \"{:.4} ms\"\nloss = \"{:.4} %\"\n\
                     buffer = \"1 BDP\"\none_way = true\n",
                    rtt / 2.0,
                    loss * 100.0,
                )
                .expect("a string takes it");
            }
        }
        let Self { video, fps, deadline, .. } = self;
        let paths = if count > 1 { "paths = [\"laptop/first1\"]\n" } else { "" };
        write!(
            text,
            "[[flow]]\nname = \"video\"\nprotocol = \"dfcp\"\nfrom = \"server\"\n\
             to = \"laptop/first0\"\n{paths}app = \"video\"\nrate = \"{video:.4} Mbit/s\"\n\
             fps = {fps}\ndeadline = \"{deadline:.2} ms\"\n",
        )
        .expect("a string takes it");
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let recording = runs[0].experiment.run(|| false).expect("nothing stops it");
        let metric = |name: &str, of: &str| recording.metric(name, of).expect("it is measured");
        let carried = |(number, (rate, _, loss)): (usize, &(f64, f64, f64))| {
            let passed = metric("utilisation", &format!("last{number}")) * rate;
            passed / (1.0 - if is_lossy { *loss } else { 0.0 })
        };
        let sent: f64 = self.links.iter().enumerate().take(count).map(carried).sum();
        Outcome {
            in_time: metric("messages_in_time", "video"),
            p99: metric("message_delay_p99", "video"),
            cost: sent / video,
        }
    }
}

#[test]
fn frames_come_in_time_although_packets_are_lost() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 6));
    for seed in first..first + runs {
        let point = Point::random(&mut Stream::new(seed, "videos"));
        println!("seed {seed}: {point:.3?}");
        for count in [1, 2] {
            let (lossy, clean) = (point.run(count, true, seed), point.run(count, false, seed));
            let fair = point.fair(count);
            let later = lossy.p99 - clean.p99;
            println!(
                "    {count} links, TCP has {fair:.2}: 99 % of frames {later:.1} ms later than \
                 without loss; {lossy:.3?}, without loss {clean:.3?}"
            );
            assert!(clean.in_time > 0.99 && clean.cost < 1.5, "seed {seed}: {clean:?}");
            assert!(fair < 2.0 || lossy.in_time > 0.97, "seed {seed}: {lossy:?}");
            assert!(lossy.cost < 1.9, "seed {seed}: {lossy:?}");
        }
    }
}

#[test]
fn videos_that_overload_a_link_give_way() {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", 4));
    for seed in first..first + runs {
        let mut s = Stream::new(seed, "crowds");
        let count = 4 + s.below(17) as u32;
        let mut between = |low: f64, high: f64| low * (high / low).powf(s.unit());
        let (rtt, video, over) = (between(20.0, 200.0), between(1.0, 5.0), between(0.4, 3.0));
        let rate = video * f64::from(count) * over;
        let buffer = (rate * rtt / 12.0).max(20.0);
        let text = format!(
            "[scenario]\nseed = {seed}\nduration = \"60 s\"\nwarmup = \"10 s\"\n\
             [topology]\nrate = \"{rate:.4} Mbit/s\"\nrtt = \"{rtt:.4} ms\"\n\
             buffer = \"{buffer:.0} packets\"\n\
             [[flow]]\nname = \"video\"\ncount = {count}\nprotocol = \"dfcp\"\napp = \"video\"\n\
             rate = \"{video:.4} Mbit/s\"\ndeadline = \"1 s\"\n",
        );
        let runs = Scenario::parse(&text).expect("it is right").runs().expect("a run");
        let metrics = runs[0].experiment.run(|| false).expect("nothing stops it").metrics();
        let of = |metric: &str| {
            let rows = metrics.iter().filter(move |((name, _), _)| name == metric);
            rows.map(|(_, value)| *value).collect::<Vec<f64>>()
        };
        let shares = of("messages_in_time");
        let mean = shares.iter().sum::<f64>() / f64::from(count);
        let drops = of("drop_rate")[0];
        println!(
            "seed {seed}: {count} videos of {video:.2} Mbit/s, {over:.2} of their rate, {rtt:.0} \
             ms: {mean:.3} in time, {drops:.3} dropped"
        );
        assert!(drops < 0.1, "seed {seed}: {drops} of all packets were dropped");
        assert!(over < 1.6 || mean > 0.9, "seed {seed}: {mean} in time");
    }
}
