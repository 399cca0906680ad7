use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fontis_base::{FlowId, Observer, Packet, Time};

use crate::queue::limit::Limit;
use crate::queue::longest::Longest;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};
use crate::queue::shares::{ONE, Shares};

/// Weighted fair queueing between flows or traffic classes, as WF²Q+ (Bennett and Zhang, 1997): of
/// the packets whose service a fluid system would have begun, the one that it would finish first is
/// next.
///
/// Virtual time advances by the bytes served, divided by the shares of the flows that wait.
///
/// A shared buffer that overflows takes the last packet of the longest flow in bytes; equally long
/// flows lose in turn.
#[derive(Clone, Debug)]
pub struct Wfq<P> {
    flows: BTreeMap<FlowId, Flow<P>>,
    heads: Heads,
    virtual_time: u64,
    longest: Longest<FlowId>,
    packets: usize,
    bytes: u64,
    limit: Limit,
    per_flow: bool,
    shares: Shares,
}

/// The flows that have packets.
#[derive(Clone, Debug, Default)]
struct Heads {
    /// Those whose first packet may begin, by its virtual finish.
    eligible: BTreeSet<(u64, FlowId)>,
    /// Those whose first packet may not, by its virtual start; and its finish.
    waiting: BTreeSet<(u64, FlowId, u64)>,
    /// The shares of both together.
    shares: u64,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Packet<P>>,
    bytes: u64,
    start: u64,
    finish: u64,
    /// The share with which its first packet is among the heads.
    share: u64,
}

impl<P> Wfq<P> {
    /// An empty queue; the limit is for all flows together, or for each.
    pub fn new(limit: Limit, options: &QueueOptions) -> Self {
        Self {
            flows: BTreeMap::new(),
            heads: Heads::default(),
            virtual_time: 0,
            longest: Longest::new(FlowId(0)),
            packets: 0,
            bytes: 0,
            limit,
            per_flow: options.per_flow,
            shares: Shares::new(options),
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let (id, size) = (self.shares.turn(&packet), u64::from(packet.size));
        let virtual_time = self.virtual_time;
        let flow = self.flows.entry(id).or_insert_with(|| Flow {
            packets: VecDeque::new(),
            bytes: 0,
            start: virtual_time,
            finish: virtual_time,
            share: ONE,
        });
        if self.per_flow && !self.limit.holds(flow.packets.len() + 1, flow.bytes + size) {
            return observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
        flow.bytes += size;
        flow.packets.push_back(packet);
        self.longest.grown(flow.bytes);
        self.bytes += size;
        self.packets += 1;
        if flow.packets.len() == 1 {
            flow.start = flow.finish.max(virtual_time);
            self.heads.place(id, flow, virtual_time, &self.shares);
        }
        while !self.per_flow && !self.limit.holds(self.packets, self.bytes) {
            self.drop_from_longest(now, observer);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        _now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        if self.packets == 0 {
            return None;
        }
        // "V = max(V, the least start)": with no flow eligible, time jumps to the first that will
        // be.
        let Heads { eligible, waiting, shares } = &mut self.heads;
        if let (true, Some((start, ..))) = (eligible.is_empty(), waiting.first()) {
            self.virtual_time = self.virtual_time.max(*start);
        }
        while let Some(&(start, id, finish)) = waiting.first() {
            if start > self.virtual_time {
                break;
            }
            waiting.pop_first();
            eligible.insert((finish, id));
        }
        let active = *shares;
        let (_, id) = eligible.pop_first()?;
        let flow = self.flows.get_mut(&id)?;
        let packet = flow.packets.pop_front()?;
        if let Some(next) = flow.packets.front() {
            observer.nears(next);
        }
        let size = u64::from(packet.size);
        flow.bytes -= size;
        self.bytes -= size;
        self.packets -= 1;
        self.heads.shares -= flow.share;
        self.virtual_time += (size * ONE).saturating_mul(ONE) / active;
        if flow.packets.is_empty() {
            // A flow that comes back begins no earlier than it would have ended.
            if self.packets == 0 {
                self.flows.clear();
                self.virtual_time = 0;
            }
        } else {
            flow.start = flow.finish;
            self.heads.place(id, flow, self.virtual_time, &self.shares);
        }
        Some(packet)
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
        let Some(packet) = flow.packets.pop_back() else { return };
        let size = u64::from(packet.size);
        flow.bytes -= size;
        self.bytes -= size;
        self.packets -= 1;
        if flow.packets.is_empty() {
            self.heads.eligible.remove(&(flow.finish, id));
            self.heads.waiting.remove(&(flow.start, id, flow.finish));
            self.heads.shares -= flow.share;
            flow.finish = flow.start;
        }
        observer.dropped(now, ELEMENT, &packet, OVERFLOW);
    }
}

impl Heads {
    /// Gives a flow's first packet its finish, and its place.
    fn place<P>(&mut self, id: FlowId, flow: &mut Flow<P>, virtual_time: u64, shares: &Shares) {
        let Some(head) = flow.packets.front() else { return };
        flow.share = shares.of(head);
        self.shares += flow.share;
        flow.finish = flow.start + (u64::from(head.size) * ONE).saturating_mul(ONE) / flow.share;
        if flow.start <= virtual_time {
            self.eligible.insert((flow.finish, id));
        } else {
            self.waiting.insert((flow.start, id, flow.finish));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};
    use fontis_base::Size;

    #[test]
    fn flows_with_unequal_packets_get_equal_bytes() {
        let mut queue = Wfq::new(Limit::UNLIMITED, &QueueOptions::default());
        let mut served = BTreeMap::new();
        for id in 0..200_000 {
            for (flow, size) in [(1, 1500), (2, 500), (3, 64), (4, 9000)] {
                while queue.flows.get(&FlowId(flow)).is_none_or(|flow| flow.packets.len() < 3) {
                    queue.enqueue(Time::ZERO, packet(id, flow, size), &mut ());
                }
            }
            let packet = queue.dequeue(Time::ZERO, &mut ()).unwrap();
            *served.entry(packet.flow.0).or_default() += u64::from(packet.size);
        }
        let mean = served.values().sum::<u64>() as f64 / 4.0;
        for (flow, bytes) in served {
            assert!((bytes as f64 / mean - 1.0).abs() < 0.01, "flow {flow}: {bytes} of {mean}");
        }
    }

    #[test]
    fn a_burst_of_one_flow_is_spread_among_the_others() {
        // WFQ proper would send the first flow's eleven packets before the others' second.
        let mut queue = Wfq::new(Limit::UNLIMITED, &QueueOptions::default());
        for id in 0..6 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut ());
        }
        for flow in 2..=6 {
            queue.enqueue(Time::ZERO, packet(10, flow, 1000), &mut ());
        }
        let order: Vec<u32> =
            core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut ())).map(|p| p.flow.0).collect();
        let firsts = order.iter().take(6).filter(|flow| **flow == 1).count();
        assert_eq!((order.len(), firsts), (11, 1), "{order:?}");
    }

    #[test]
    fn an_overflow_takes_from_the_longest_flow_or_from_the_flow_itself() {
        let limit = Limit::Bytes(Size::from_bytes(3000));
        for (per_flow, dropped) in [(false, vec![(3, OVERFLOW)]), (true, vec![])] {
            let options = QueueOptions { per_flow, ..QueueOptions::default() };
            let mut queue = Wfq::new(limit, &options);
            let mut log = Log::default();
            for id in 1..=3 {
                queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut log);
            }
            queue.enqueue(Time::ZERO, packet(4, 2, 1000), &mut log);
            assert_eq!(log.dropped, dropped);
            queue.enqueue(Time::ZERO, packet(5, 1, 1000), &mut log);
            assert_eq!(log.dropped.last(), Some(&(5, OVERFLOW)));
        }
    }
}
