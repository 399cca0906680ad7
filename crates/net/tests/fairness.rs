//! Flows that offer the same to a full queue lose the same and get the same.

use fontis_base::{Address, Ecn, FlowId, Observer, Packet, PacketId, Size, Stream, Time};
use fontis_net::{FlowFacts, Limit, Queue, QueueKind, QueueOptions};
use proptest::prelude::*;

/// Queues that promise equal shares.
const FAIR: [QueueKind; 5] =
    [QueueKind::Drr, QueueKind::DrrLiteral, QueueKind::Sfq, QueueKind::Wfq, QueueKind::FqCoDel];

/// Packets that each flow offers.
const ROUNDS: u32 = 400;

/// Packets dropped, by flow.
struct Drops(Vec<u32>);

impl<P> Observer<P> for Drops {
    fn dropped(&mut self, _: Time, _: &str, packet: &Packet<P>, _: &'static str) {
        self.0[packet.flow.0 as usize] += 1;
    }
}

fn packet(flow: u32) -> Packet<()> {
    Packet {
        id: PacketId(0),
        src: Address(0),
        dst: Address(1),
        flow: FlowId(flow),
        size: 1500,
        segments: 1,
        ecn: Ecn::NotEct,
        corrupt: false,
        class: 0,
        payload: (),
    }
}

/// Every flow offers a packet a round, in an order that is drawn for each round, to a line that
/// sends `line` of a hundred. Drops and departures, by flow.
fn overload(queue: &mut Queue<()>, flows: u32, line: u64, stream: &mut Stream) -> [Vec<u32>; 2] {
    let mut drops = Drops(vec![0; flows as usize]);
    let mut served = vec![0; flows as usize];
    let mut order: Vec<u32> = (0..flows).collect();
    for _ in 0..ROUNDS {
        for at in 0..order.len() {
            let other = at + stream.below((order.len() - at) as u64) as usize;
            order.swap(at, other);
            queue.enqueue(Time::ZERO, packet(order[at]), &mut drops);
            if stream.below(100) < line
                && let Some(packet) = queue.dequeue(Time::ZERO, &mut drops)
            {
                served[packet.flow.0 as usize] += 1;
            }
        }
    }
    [drops.0, served]
}

/// Flows of equal demand differ by chance only: five standard deviations of a count of independent
/// events, which losses and departures of a queue stay below, and what the buffer holds at the end.
fn assert_equal(name: &str, counts: &[u32], places: u32) {
    let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    let held = (f64::from(places) / counts.len() as f64).ceil() + 1.0;
    let bound = 5.0 * mean.sqrt() + held;
    for (flow, count) in counts.iter().enumerate() {
        let off = (f64::from(*count) - mean).abs();
        assert!(off <= bound, "{name} of flow {flow}: {count}, of all {mean:.1} ± {bound:.1}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_flows_lose_equally_and_get_equal_shares(
        flows in 2u32..40,
        places in 1u32..120,
        in_bytes in any::<bool>(),
        line in 30u64..80,
        seed in any::<u64>(),
    ) {
        let limit = if in_bytes {
            Limit::Bytes(Size::from_bytes(u64::from(places) * 1500))
        } else {
            Limit::Packets(u64::from(places))
        };
        // So many buckets that no two flows share one.
        let options = QueueOptions { buckets: u32::MAX, ..QueueOptions::default() };
        for kind in FAIR {
            let mut stream = Stream::new(seed, "fairness");
            let mut queue = kind.build(limit, &options, || Stream::new(seed, "queue"));
            let [drops, served] = overload(&mut queue, flows, line, &mut stream);
            assert_equal(&format!("{kind}: drops"), &drops, places);
            assert_equal(&format!("{kind}: packets"), &served, places);
        }
    }
}

/// Bytes of each flow that a line takes of flows which always have packets waiting. Flow `n` has
/// traffic class `classes[n]`.
fn saturated(queue: &mut Queue<()>, classes: &[u8], stream: &mut Stream) -> Vec<u64> {
    let of = |flow: usize, size: u32| Packet { class: classes[flow], size, ..packet(flow as u32) };
    let size = |s: &mut Stream| 40 + s.below(1461) as u32;
    for flow in (0..classes.len()).cycle().take(40 * classes.len()) {
        queue.enqueue(Time::ZERO, of(flow, size(stream)), &mut ());
    }
    let mut served = vec![0; classes.len()];
    for turn in 0..60_000 {
        let packet = queue.dequeue(Time::ZERO, &mut ()).expect("many wait");
        let flow = packet.flow.0 as usize;
        // What the first turns give depends on who came first.
        if turn >= 2000 {
            served[flow] += u64::from(packet.size);
        }
        queue.enqueue(Time::ZERO, of(flow, size(stream)), &mut ());
    }
    served
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn weights_share_a_line_by_their_roots_whether_flows_or_classes_have_them(
        weights in prop::collection::vec(0.3f64..6.0, 2..6),
        alpha in prop_oneof![0.5f64..6.0, Just(f64::INFINITY)],
        seed in any::<u64>(),
    ) {
        let flows = weights.iter().map(|p| FlowFacts { weight: Some(*p), ..FlowFacts::default() });
        let named: Vec<String> = weights.iter().map(f64::to_string).collect();
        let class_weights = named.join(":").parse().ok();
        let plain = QueueOptions { alpha, ..QueueOptions::default() };
        let own = QueueOptions { flows: flows.collect(), ..plain.clone() };
        let classed = QueueOptions { class_weights, ..plain };
        let by_class = QueueOptions { by_class: true, ..classed.clone() };
        let classes: Vec<u8> = (0..weights.len() as u8).collect();
        // The first class has two flows, which share what it has.
        let with_twin: Vec<u8> = classes.iter().copied().chain([0]).collect();
        for kind in [QueueKind::Drr, QueueKind::Wfq] {
            for (options, classes) in
                [(&own, &classes), (&classed, &classes), (&by_class, &with_twin)]
            {
                let mut queue = kind.build(Limit::UNLIMITED, options, || Stream::new(seed, "q"));
                let mut served = saturated(&mut queue, classes, &mut Stream::new(seed, "load"));
                if served.len() > weights.len() {
                    served[0] += served.pop().expect("the twin");
                }
                let shares: Vec<f64> = weights.iter().map(|p| p.powf(alpha.recip())).collect();
                let [all, sum] = [served.iter().sum::<u64>() as f64, shares.iter().sum()];
                for (bytes, share) in served.iter().zip(shares) {
                    let off = *bytes as f64 / all / (share / sum) - 1.0;
                    prop_assert!(off.abs() < 0.02, "{kind} {options:?}: {off}");
                }
            }
        }
    }
}
