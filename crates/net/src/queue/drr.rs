use std::collections::{BTreeMap, VecDeque};

use fontis_base::{FlowId, Observer, Packet, Time};

use crate::queue::bucket::bucket_of;
use crate::queue::limit::Limit;
use crate::queue::longest::Longest;
use crate::queue::options::QueueOptions;
use crate::queue::quanta::Quanta;
use crate::queue::report::{ELEMENT, OVERFLOW};
use crate::queue::shares::{ONE, Shares};

/// Deficit round robin (Shreedhar and Varghese, 1996): flows take turns, and in each turn a flow
/// may send a quantum of bytes and what it saved before, so flows with unequal packets share the
/// line equally in bytes. With weights a turn is longer by a flow's share.
///
/// The buffer is shared. When it overflows, the longest flow in bytes loses the last packet that it
/// put in (the paper's buffer stealing), so a flood cannot push out others; equally long flows lose
/// in turn.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    /// The flows that have packets here, and no others.
    flows: BTreeMap<FlowId, Flow<P>>,
    /// The same flows in the order of their turns.
    turns: VecDeque<FlowId>,
    longest: Longest<FlowId>,
    packets: usize,
    bytes: u64,
    quantum: u64,
    /// The quanta of traffic classes, if they differ.
    quanta: Option<Quanta>,
    shares: Shares,
    limit: Limit,
    per_flow: bool,
    /// As printed: one packet a turn, and a flow keeps its place and its deficit when it has
    /// nothing to send.
    literal: bool,
    /// Salt and number of the queues that flows are spread over, if they have none of their own.
    hashed: Option<(u64, u32)>,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Packet<P>>,
    bytes: u64,
    /// What it may still send in this turn, in parts of a byte.
    deficit: u64,
    /// Whether it has got its quantum for this turn.
    served: bool,
}

impl<P> Drr<P> {
    /// An empty queue with a quantum of 1500 bytes.
    pub fn new(limit: Limit) -> Self {
        Self {
            flows: BTreeMap::new(),
            turns: VecDeque::new(),
            longest: Longest::new(FlowId(0)),
            packets: 0,
            bytes: 0,
            quantum: 1500,
            quanta: None,
            shares: Shares::default(),
            limit,
            per_flow: false,
            literal: false,
            hashed: None,
        }
    }

    /// The same queue with another quantum, and with a buffer for each flow if that is wanted.
    pub fn with_options(self, options: &QueueOptions) -> Self {
        // A turn in which nothing can be saved would never end.
        let quantum = u64::from(options.quantum.max(1));
        let shares = Shares::new(options);
        Self { quantum, quanta: options.quanta, shares, per_flow: options.per_flow, ..self }
    }

    /// The scheduler as section 4.4 of the dissertation prints it, for comparison: a turn ends
    /// after one packet, and a flow's deficit is never reset. With a quantum above the packet size
    /// it serves flows equally in packets.
    pub fn literal(self) -> Self {
        Self { literal: true, ..self }
    }

    /// Stochastic fair queueing (McKenney, 1990): flows are spread over `buckets` queues that take
    /// the turns.
    pub fn hashed(self, salt: u64, buckets: u32) -> Self {
        Self { hashed: Some((salt, buckets)), ..self }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let size = u64::from(packet.size);
        let id = match self.hashed {
            None => self.shares.turn(&packet),
            Some((salt, buckets)) => FlowId(bucket_of(packet.flow, salt, buckets)),
        };
        let flow = self.flows.entry(id).or_insert_with(|| {
            self.turns.push_back(id);
            Flow { packets: VecDeque::new(), bytes: 0, deficit: 0, served: false }
        });
        if self.per_flow && !self.limit.holds(flow.packets.len() + 1, flow.bytes + size) {
            if flow.packets.is_empty() && !self.literal {
                self.flows.remove(&id);
                self.turns.pop_back();
            }
            return observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
        flow.packets.push_back(packet);
        flow.bytes += size;
        self.longest.grown(flow.bytes);
        self.bytes += size;
        self.packets += 1;
        while !self.per_flow && !self.limit.holds(self.packets, self.bytes) {
            self.drop_from_longest(now, observer);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        _now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        if self.literal {
            return self.dequeue_literal();
        }
        loop {
            let id = *self.turns.front()?;
            let flow = self.flows.get_mut(&id)?;
            if !flow.served {
                flow.served = true;
                let head = flow.packets.front()?;
                flow.deficit += match &self.quanta {
                    Some(quanta) => quanta.of(head.class) * ONE,
                    None => self.quantum.saturating_mul(self.shares.of(head)),
                };
            }
            let size = flow.packets.front().map(|packet| u64::from(packet.size))?;
            if size * ONE > flow.deficit {
                flow.served = false;
                self.turns.rotate_left(1);
                continue;
            }
            flow.deficit -= size * ONE;
            flow.bytes -= size;
            self.bytes -= size;
            self.packets -= 1;
            let packet = flow.packets.pop_front();
            if let Some(next) = flow.packets.front() {
                observer.nears(next);
            }
            if flow.packets.is_empty() {
                // What an idle flow saved is lost, or it could burst later.
                self.flows.remove(&id);
                self.turns.pop_front();
            }
            return packet;
        }
    }

    /// Steps 2 to 4 as printed, for every flow that was ever seen.
    fn dequeue_literal(&mut self) -> Option<Packet<P>> {
        while self.packets > 0 {
            let id = *self.turns.front()?;
            self.turns.rotate_left(1);
            let flow = self.flows.get_mut(&id)?;
            flow.deficit = flow.deficit.saturating_add(self.quantum * ONE);
            let head = flow.packets.front().map(|packet| u64::from(packet.size));
            if let Some(size) = head.filter(|size| *size * ONE <= flow.deficit) {
                flow.deficit -= size * ONE;
                flow.bytes -= size;
                self.bytes -= size;
                self.packets -= 1;
                return flow.packets.pop_front();
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn drop_from_longest(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let Some(id) = self.longest.choose(&self.flows, |flow| flow.bytes) else { return };
        let Some(flow) = self.flows.get_mut(&id) else { return };
        if let Some(packet) = flow.packets.pop_back() {
            let size = u64::from(packet.size);
            flow.bytes -= size;
            self.bytes -= size;
            self.packets -= 1;
            observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
        if flow.packets.is_empty() && !self.literal {
            self.flows.remove(&id);
            self.turns.retain(|turn| *turn != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};
    use fontis_base::Size;

    /// Serves `packets` packets while every flow of `flows` (id, packet size) stays backlogged;
    /// bytes per flow.
    fn shares(queue: &mut Drr<()>, flows: &[(u32, u32)], packets: u64) -> BTreeMap<u32, u64> {
        let mut served = BTreeMap::new();
        for id in 0..packets {
            for &(flow, size) in flows {
                while queue.flows.get(&FlowId(flow)).is_none_or(|flow| flow.packets.len() < 3) {
                    queue.enqueue(Time::ZERO, packet(id, flow, size), &mut ());
                }
            }
            let packet = queue.dequeue(Time::ZERO, &mut ()).unwrap();
            *served.entry(packet.flow.0).or_default() += u64::from(packet.size);
        }
        served
    }

    #[test]
    fn flows_with_unequal_packets_get_equal_bytes() {
        let mut queue = Drr::new(Limit::UNLIMITED);
        let served = shares(&mut queue, &[(1, 1500), (2, 500), (3, 64), (4, 9000)], 200_000);
        let mean = served.values().sum::<u64>() as f64 / 4.0;
        for (flow, bytes) in served {
            assert!((bytes as f64 / mean - 1.0).abs() < 0.01, "flow {flow}: {bytes} of {mean}");
        }
    }

    #[test]
    fn as_printed_flows_get_equal_packets_instead() {
        let mut queue = Drr::new(Limit::UNLIMITED).literal();
        let served = shares(&mut queue, &[(1, 1500), (2, 500)], 100_000);
        let ratio = served[&1] as f64 / served[&2] as f64;
        assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn flows_that_share_a_bucket_share_its_turns() {
        let one = || Drr::<()>::new(Limit::UNLIMITED).hashed(1, 1);
        let mut queue = one();
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, id as u32, 1500), &mut ());
        }
        assert_eq!(queue.flows.len(), 1);
        let mut spread = Drr::<()>::new(Limit::UNLIMITED).hashed(1, 1024);
        for flow in 0..100 {
            spread.enqueue(Time::ZERO, packet(1, flow, 1500), &mut ());
        }
        // Of 100 flows in 1024 queues about five share one: 100 - 1024·(1 - (1 - 1/1024)^100).
        assert!((90..=99).contains(&spread.flows.len()), "{}", spread.flows.len());
    }

    #[test]
    fn with_a_buffer_for_each_flow_a_flood_loses_its_own() {
        let options = QueueOptions { per_flow: true, ..QueueOptions::default() };
        let mut queue = Drr::new(Limit::Packets(2)).with_options(&options);
        let mut log = Log::default();
        for id in 1..=3 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut log);
        }
        queue.enqueue(Time::ZERO, packet(4, 2, 1000), &mut log);
        assert_eq!(log.dropped, [(3, OVERFLOW)]);
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn a_flow_that_joins_late_gets_its_share_from_then_on_and_no_more() {
        let mut queue = Drr::new(Limit::UNLIMITED);
        shares(&mut queue, &[(1, 1500)], 10_000);
        let served = shares(&mut queue, &[(1, 1500), (2, 700)], 10_000);
        let ratio = served[&1] as f64 / served[&2] as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn a_flow_that_went_idle_starts_without_savings() {
        let mut queue = Drr::new(Limit::UNLIMITED);
        let mut log = Log::default();
        // A lone packet of 100 bytes leaves 1400 of its quantum unused.
        queue.enqueue(Time::ZERO, packet(1, 1, 100), &mut log);
        queue.dequeue(Time::ZERO, &mut log);
        for id in 2..6 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut log);
            queue.enqueue(Time::ZERO, packet(id + 10, 2, 1000), &mut log);
        }
        let order: Vec<u32> = core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut log))
            .map(|packet| packet.flow.0)
            .collect();
        // Quanta of 1500: one packet, then two with the 500 saved, in turns.
        assert_eq!(order, [1, 2, 1, 1, 2, 2, 1, 2]);
    }

    #[test]
    fn an_overflow_takes_from_the_longest_flow() {
        let mut queue = Drr::new(Limit::Bytes(Size::from_bytes(5000)));
        let mut log = Log::default();
        for id in 1..=5 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut log);
        }
        queue.enqueue(Time::ZERO, packet(6, 2, 1000), &mut log);
        assert_eq!(log.dropped, [(5, OVERFLOW)]);
        assert_eq!((queue.len(), queue.bytes()), (5, 5000));
    }

    #[test]
    fn classes_share_the_line_in_proportion_to_their_quanta() {
        for weight in [1u64, 2, 5, 32] {
            let quanta = format!("1500:{}", 1500 * weight).parse().ok();
            let options = QueueOptions { quanta, per_flow: true, ..QueueOptions::default() };
            let limit = Limit::Packets(200);
            let mut queue = Drr::<()>::new(limit).with_options(&options);
            let mut served = [0u64; 2];
            for id in 0..330 * weight.max(3) {
                for class in 0..2u8 {
                    let packet = packet(id, u32::from(class), 1000);
                    queue.enqueue(Time::ZERO, Packet { class, ..packet }, &mut ());
                }
                let packet = queue.dequeue(Time::ZERO, &mut ()).unwrap();
                served[usize::from(packet.class)] += u64::from(packet.size);
            }
            let ratio = served[1] as f64 / served[0] as f64;
            assert!((ratio / weight as f64 - 1.0).abs() < 0.1, "{weight}: {ratio}");
        }
    }

    #[test]
    fn a_packet_larger_than_the_buffer_leaves_nothing_behind() {
        let mut queue = Drr::new(Limit::Bytes(Size::from_bytes(1000)));
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(1, 1, 1001), &mut log);
        assert_eq!(log.dropped, [(1, OVERFLOW)]);
        assert!(queue.flows.is_empty() && queue.turns.is_empty());
        assert!(queue.dequeue(Time::ZERO, &mut log).is_none());
    }
}
