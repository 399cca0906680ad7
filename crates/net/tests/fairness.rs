//! Flows that offer the same to a full queue lose the same and get the same.

use fontis_base::{Address, Ecn, FlowId, Observer, Packet, PacketId, Size, Stream, Time};
use fontis_net::{Limit, Queue, QueueKind, QueueOptions};
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
