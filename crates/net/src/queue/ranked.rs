use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use fontis_base::{FlowId, Observer, Packet, Time};

use crate::queue::facts::FlowFacts;
use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};

/// What makes a flow wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// What it has had: least attained service (Rai, Urvoy-Keller and Biersack, 2005).
    Attained,
    /// What it still needs: shortest remaining processing time (Schrage, 1968). The queue knows
    /// flows' lengths from [`FlowFacts`]; those without a length come last.
    Remaining,
    /// Whether it has had so many bytes: those that had fewer go first, in the order of arrival.
    Short(u64),
}

/// Serves the flow that comes first by what it has had, by what it still needs, or by whether it is
/// short, and flows of equal rank in turn.
///
/// What a flow has had are the bytes of its packets that left here, at the IP layer: copies of what
/// was lost behind the queue count again. It is never forgotten, so a flow that pauses is not new.
///
/// The buffer is shared. When it overflows, the flow that would be served last loses the packet
/// that it put in last.
#[derive(Clone, Debug)]
pub struct Ranked<P> {
    rank: Rank,
    facts: Arc<[FlowFacts]>,
    /// Every flow that was ever seen.
    flows: BTreeMap<FlowId, RankedFlow<P>>,
    /// Those that have packets, by rank; of equal ones the one that was served, or came, longest
    /// ago.
    order: BTreeSet<Place>,
    next_turn: u64,
    packets: usize,
    bytes: u64,
    limit: Limit,
}

/// Rank, turn and flow.
type Place = (u64, u64, FlowId);

#[derive(Clone, Debug)]
struct RankedFlow<P> {
    /// With the turn at which each came.
    packets: VecDeque<(u64, Packet<P>)>,
    served: u64,
    /// The turn at which it was last served.
    turn: u64,
}

impl<P> Ranked<P> {
    pub(crate) fn new(limit: Limit, options: &QueueOptions, rank: Rank) -> Self {
        Self {
            rank,
            facts: Arc::clone(&options.flows),
            flows: BTreeMap::new(),
            order: BTreeSet::new(),
            next_turn: 0,
            packets: 0,
            bytes: 0,
            limit,
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let id = packet.flow;
        let turn = self.turn();
        let flow = self.flows.entry(id).or_insert_with(|| RankedFlow {
            packets: VecDeque::new(),
            served: 0,
            turn,
        });
        self.bytes += u64::from(packet.size);
        self.packets += 1;
        flow.packets.push_back((turn, packet));
        if flow.packets.len() == 1 {
            self.order.extend(self.place(id));
        }
        while !self.limit.holds(self.packets, self.bytes) {
            self.drop_from_last(now, observer);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        _now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        let (.., id) = self.order.pop_first()?;
        let turn = self.turn();
        let flow = self.flows.get_mut(&id)?;
        let (_, packet) = flow.packets.pop_front()?;
        let size = u64::from(packet.size);
        flow.served += size;
        flow.turn = turn;
        if let Some((_, next)) = flow.packets.front() {
            observer.nears(next);
        }
        self.bytes -= size;
        self.packets -= 1;
        self.order.extend(self.place(id));
        Some(packet)
    }

    fn turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// Where a flow that has packets stands.
    fn place(&self, id: FlowId) -> Option<Place> {
        let flow = self.flows.get(&id)?;
        let (came, _) = flow.packets.front()?;
        let length = self.facts.get(id.0 as usize).and_then(|facts| facts.length);
        Some(match self.rank {
            Rank::Attained => (flow.served, flow.turn, id),
            Rank::Remaining => (
                length.map_or(u64::MAX, |length| length.saturating_sub(flow.served)),
                flow.turn,
                id,
            ),
            Rank::Short(bytes) => (u64::from(flow.served >= bytes), *came, id),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn drop_from_last(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let Some(place) = self.order.last().copied() else { return };
        let Some(flow) = self.flows.get_mut(&place.2) else { return };
        let Some((_, packet)) = flow.packets.pop_back() else { return };
        self.bytes -= u64::from(packet.size);
        self.packets -= 1;
        if flow.packets.is_empty() {
            self.order.remove(&place);
        }
        observer.dropped(now, ELEMENT, &packet, OVERFLOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};

    fn queue(rank: Rank, lengths: &[u64]) -> Ranked<()> {
        let facts = |length: &u64| FlowFacts { length: Some(*length), ..FlowFacts::default() };
        let flows = lengths.iter().map(facts).collect();
        let options = QueueOptions { flows, ..QueueOptions::default() };
        Ranked::new(Limit::Packets(100), &options, rank)
    }

    fn order(queue: &mut Ranked<()>) -> Vec<u32> {
        core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut ()).map(|p| p.flow.0)).collect()
    }

    #[test]
    fn the_flow_that_had_least_goes_first_until_it_has_as_much_as_the_others() {
        let mut queue = queue(Rank::Attained, &[]);
        for id in 0..3 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1000), &mut ());
        }
        assert_eq!(order(&mut queue), [0, 0, 0]);
        for id in 0..6 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1000), &mut ());
            queue.enqueue(Time::ZERO, packet(id, 1, 1000), &mut ());
        }
        assert_eq!(order(&mut queue), [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn the_flow_that_needs_least_goes_first_and_one_without_an_end_last() {
        let mut queue = queue(Rank::Remaining, &[9000, 3000]);
        for id in 0..3 {
            for flow in [2, 0, 1] {
                queue.enqueue(Time::ZERO, packet(id, flow, 1000), &mut ());
            }
        }
        assert_eq!(order(&mut queue), [1, 1, 1, 0, 0, 0, 2, 2, 2]);
    }

    #[test]
    fn short_flows_go_first_in_the_order_of_arrival_and_no_flow_overtakes_itself() {
        let mut queue = queue(Rank::Short(2000), &[]);
        for id in 0..3 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1000), &mut ());
        }
        queue.enqueue(Time::ZERO, packet(3, 1, 1000), &mut ());
        queue.enqueue(Time::ZERO, packet(4, 1, 1000), &mut ());
        queue.enqueue(Time::ZERO, packet(5, 1, 1000), &mut ());
        let ids = core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut ()).map(|p| p.id.0));
        assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 3, 4, 2, 5]);
    }

    #[test]
    fn an_overflow_takes_from_the_flow_that_would_be_served_last() {
        let mut queue = queue(Rank::Attained, &[]);
        queue.limit = Limit::Packets(2);
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(1, 0, 1000), &mut log);
        queue.dequeue(Time::ZERO, &mut log);
        for (id, flow) in [(2, 0), (3, 0), (4, 1), (5, 1), (6, 0)] {
            queue.enqueue(Time::ZERO, packet(id, flow, 1000), &mut log);
        }
        let dropped: Vec<u64> = log.dropped.iter().map(|(id, _)| *id).collect();
        assert_eq!(dropped, [3, 2, 6]);
        assert_eq!((queue.len(), queue.bytes(), order(&mut queue)), (2, 2000, vec![1, 1]));
    }
}
