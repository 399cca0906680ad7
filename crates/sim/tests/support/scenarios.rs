//! What a rate controller must stand: paths that are shared, that change, or whose queue is other
//! than expected.
//!
//! Each function runs one experiment in virtual time and returns its figures beside their targets.
//! All are the same on every machine; the ones without random loss hardly depend on their seed.

use fontis_base::{Duration, Probability, Rate, Size, Time};
use fontis_net::{Limit, LinkConfig, Loss, Policer, QueueKind, RateChange, Schedule};

use fontis_proto::dfcp::DfcpConfig;

use super::dumbbell::{Dumbbell, Flow, Shared};
use super::figure::{Figure, Target};
use super::timeline::Moment;
use super::transfer::Transfer;

/// The round trip of every path here.
pub const RTT: Duration = Duration::from_millis(100);
/// More than any flow can fetch while an experiment lasts.
const ENDLESS: u64 = 10 << 30;
/// Goodput is judged over so many round trips: the controller empties the queue every few seconds,
/// and feedback of a slow path comes in lumps.
const WINDOW: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

fn at(time: Duration) -> Time {
    Time::ZERO + time
}

fn link(rate: Rate) -> LinkConfig {
    let buffer = Limit::one_bdp(rate, RTT);
    LinkConfig { rate, delay: RTT / 2, buffer, ..LinkConfig::default() }
}

/// Two flows on one FIFO bottleneck of 100 Mbit/s with a buffer of one bandwidth-delay product; the
/// second starts `later`.
pub fn two_flows(seed: u64, later: Duration) -> Vec<Figure> {
    let start = at(later);
    let flow = |start| Flow { start, size: ENDLESS };
    let link = link(Rate::from_mbps(100));
    let dumbbell = Dumbbell {
        down: link.clone(),
        up: link,
        until: start + SECOND * 30,
        ..Dumbbell::new(seed, vec![flow(Time::ZERO), flow(start)])
    };
    let Shared { timeline, .. } = dumbbell.run();
    let fair = |from, to| timeline.jain(from, to) >= 0.9;
    let settled = timeline.settled(start, SECOND, fair);
    let settled = settled.map_or(f64::INFINITY, |at| at.since(start).as_secs_f64());
    let (dropped, entered) = timeline.queue_drops(start, dumbbell.until);
    let used: f64 = (0..2).map(|flow| timeline.throughput(flow, start, dumbbell.until)).sum();
    let figure = |name, value, target| Figure {
        experiment: format!("two flows, {later} apart"),
        name,
        value,
        target,
    };
    let jain = |from, to| timeline.jain(start + SECOND * from, start + SECOND * to);
    vec![
        figure("Jain, first 10 s", jain(0, 10), Target::AtLeast(0.9)),
        figure("Jain of 1 s >= 0.9 for good after, s", settled, Target::AtMost(10.0)),
        figure("Jain, 10 s to 30 s", jain(10, 30), Target::AtLeast(0.9)),
        figure("queue drops", dropped as f64 / entered as f64, Target::AtMost(0.02)),
        figure("bottleneck used", used / 100e6, Target::None),
    ]
}

/// Pairs of flows as in [`two_flows`], with `pairs` different seeds and times between their starts:
/// the worst of each figure.
pub fn worst_of_pairs(seed: u64, pairs: u64) -> Vec<Figure> {
    let runs = (0..pairs).map(|pair| {
        // Steps that share no period with the controller's own clocks.
        two_flows(seed + pair, Duration::from_millis(130 + 317 * pair))
    });
    let worse = |worst: Vec<Figure>, run: Vec<Figure>| {
        let of_two = |(a, b): (Figure, Figure)| match a.target {
            Target::AtMost(_) if b.value > a.value => b,
            Target::AtLeast(_) | Target::None if b.value < a.value => b,
            _ => a,
        };
        worst.into_iter().zip(run).map(of_two).collect()
    };
    let worst = runs.reduce(worse).unwrap_or_default();
    let named = |figure| Figure { experiment: format!("worst of {pairs} pairs"), ..figure };
    worst.into_iter().map(named).collect()
}

/// One flow over a path that changes, or whose queue is other than expected.
struct Single {
    name: &'static str,
    seed: u64,
    down: LinkConfig,
    /// What the path carries in the end.
    rate: Rate,
    /// When it becomes what it is at the end.
    change: Duration,
    /// How long it is watched from then on.
    span: Duration,
}

impl Single {
    fn run(self) -> Vec<Figure> {
        let Self { name, seed, down, rate, change, span } = self;
        let up = LinkConfig { delay: RTT / 2, ..LinkConfig::default() };
        let change = at(change);
        let end = change + span;
        let flow = Flow { start: Time::ZERO, size: ENDLESS };
        let Shared { timeline, .. } =
            Dumbbell { down, up, until: end, ..Dumbbell::new(seed, vec![flow]) }.run();
        // A flow that begins with the experiment has nothing to settle before its first data
        // arrive.
        let first =
            timeline.moments.iter().find(|moment| moment.clients[0].data_packets_received > 0);
        let begin = first.map_or(end, |moment| moment.at).max(change);
        let steady = timeline.throughput(0, end - span / 2, end);
        let near = |from, to| (timeline.throughput(0, from, to) / steady - 1.0).abs() <= 0.1;
        let settled = timeline.settled(begin, WINDOW, near);
        let settled = settled.map_or(f64::INFINITY, |at| {
            (at - WINDOW).since(begin).as_secs_f64() / RTT.as_secs_f64()
        });
        let delay = |moment: &Moment| moment.down.queue_bytes as f64 * 8e3 / rate.as_bps() as f64;
        let figure = |figure, value, target| Figure {
            experiment: name.to_owned(),
            name: figure,
            value,
            target,
        };
        vec![
            figure("settled after, RTT", settled, Target::AtMost(100.0)),
            figure(
                "waste, first 5 s",
                timeline.waste(0, change, change + SECOND * 5),
                Target::AtMost(0.1),
            ),
            figure("waste, all", timeline.waste(0, change, end), Target::AtMost(0.1)),
            figure(
                "steady rate / what the path carries",
                steady / rate.as_bps() as f64,
                Target::None,
            ),
            figure("queue after 10 RTT, ms", delay(timeline.at(change + RTT * 10)), Target::None),
        ]
    }
}

/// 100 Mbit/s that become 10 Mbit/s after five seconds.
pub fn slower(seed: u64) -> Vec<Figure> {
    let rate = Rate::from_mbps(10);
    let change = SECOND * 5;
    let rate_changes = Schedule::new([RateChange { at: at(change), rate }]);
    let down = LinkConfig { rate_changes, ..link(Rate::from_mbps(100)) };
    Single { name: "100 to 10 Mbit/s", seed, down, rate, change, span: SECOND * 20 }.run()
}

/// 100 Mbit/s with a buffer of a twentieth of the bandwidth-delay product.
pub fn short_buffer(seed: u64) -> Vec<Figure> {
    let rate = Rate::from_mbps(100);
    let buffer = Limit::Bytes(Size::from_bytes(rate.bdp(RTT).as_bytes() / 20));
    let down = LinkConfig { buffer, ..link(rate) };
    let name = "buffer of 0.05 BDP";
    Single { name, seed, down, rate, change: Duration::ZERO, span: SECOND * 20 }.run()
}

/// 100 Mbit/s behind CoDel.
pub fn codel(seed: u64) -> Vec<Figure> {
    let rate = Rate::from_mbps(100);
    let down = LinkConfig { queue: QueueKind::CoDel, ..link(rate) };
    Single { name: "CoDel", seed, down, rate, change: Duration::ZERO, span: SECOND * 20 }.run()
}

/// A policer of 50 Mbit/s with a burst of 100 kB on a line of 1 Gbit/s.
pub fn policer(seed: u64) -> Vec<Figure> {
    let rate = Rate::from_mbps(50);
    let policer = Some(Policer { rate, burst: Size::from_bytes(100_000) });
    let down = LinkConfig { policer, ..link(Rate::from_mbps(1000)) };
    Single { name: "policer", seed, down, rate, change: Duration::ZERO, span: SECOND * 20 }.run()
}

/// A cold start at 5 Mbit/s with a buffer of 20 packets.
pub fn slow_start(seed: u64) -> Vec<Figure> {
    let rate = Rate::from_mbps(5);
    let down = LinkConfig { buffer: Limit::Packets(20), ..link(rate) };
    let name = "cold at 5 Mbit/s, 20 packets";
    let flow = Flow { start: Time::ZERO, size: ENDLESS };
    let until = at(SECOND * 2);
    // With real bytes the request travels in the first packet, and its answer says how fast the
    // path is.
    let shared = Dumbbell {
        down: down.clone(),
        up: link(rate),
        until,
        config: DfcpConfig::default(),
        ..Dumbbell::new(seed, vec![flow])
    };
    let dropped = |to| shared.run().timeline.queue_drops(Time::ZERO, at(to)).0 as f64;
    let mut figures =
        Single { name, seed, down, rate, change: Duration::ZERO, span: SECOND * 20 }.run();
    figures.insert(
        0,
        Figure {
            experiment: name.to_owned(),
            name: "packets dropped in the first second",
            value: dropped(SECOND),
            target: Target::AtMost(30.0),
        },
    );
    figures
}

/// Objects of `size` bytes fetched by a new connection over 100 Mbit/s: the time over two round
/// trips and the object at the line's rate, of which the median should be at most `target`, and the
/// slowest in a hundred beside it.
pub fn small(size: u64, loss: f64, seeds: core::ops::Range<u64>, target: f64) -> Vec<Figure> {
    let rate = Rate::from_mbps(100);
    let mut times: Vec<f64> = seeds
        .map(|seed| {
            let mut transfer = Transfer::new(seed, size);
            transfer.config.max_packet_size = 1500;
            transfer.up = link(rate);
            transfer.down =
                LinkConfig { loss: Loss::Bernoulli(Probability::new(loss)), ..link(rate) };
            let took = transfer.run().duration.map_or(f64::INFINITY, Duration::as_secs_f64);
            took / transfer.bound(rate, RTT).as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
    let experiment = format!("{} KB cold, {:.0} % loss", size / 1000, loss * 100.0);
    let figure =
        |name, value, target| Figure { experiment: experiment.clone(), name, value, target };
    let tail = if loss > 0.0 { Target::AtMost(1.6) } else { Target::None };
    vec![
        figure("median / (2 RTT + serialisation)", quantile(0.5), Target::AtMost(target)),
        figure("p99 / median", quantile(0.99) / quantile(0.5), tail),
    ]
}
