use std::collections::VecDeque;

use fontis_base::distance::QUEUED_PACKET;
use fontis_base::{Observer, Packet, Time, append, relax};

use crate::queue::limit::Limit;
use crate::queue::tail::Tail;

/// First in, first out, with a tail that drops: a packet that does not fit is dropped itself.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<Packet<P>>,
    tail: Tail,
}

impl<P> Fifo<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self::with_tail(Tail::new(limit))
    }

    pub(crate) fn with_tail(tail: Tail) -> Self {
        Self { packets: VecDeque::new(), tail }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        mut packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        if self.tail.takes(now, &mut packet, observer) {
            append(&mut self.packets, packet);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        _now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        // It is given as it was taken: to look into it first would move it twice.
        let packet = self.packets.pop_front();
        if let Some(packet) = &packet {
            self.tail.lets_go(packet.size);
        }
        match self.packets.get(QUEUED_PACKET) {
            Some(packet) => observer.nears(packet),
            None => _ = relax(&mut self.packets),
        }
        packet
    }

    pub(crate) fn len(&self) -> usize {
        self.tail.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tail.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::report::OVERFLOW;
    use crate::queue::testing::{Log, packet};
    use fontis_base::{Ecn, Size};

    #[test]
    fn a_full_queue_drops_the_packet_that_does_not_fit_and_takes_a_smaller_one() {
        let mut queue = Fifo::new(Limit::Bytes(Size::from_bytes(3000)));
        let mut log = Log::default();
        for (id, size) in [(1, 1500), (2, 1400), (3, 101), (4, 100)] {
            queue.enqueue(Time::ZERO, packet(id, 0, size), &mut log);
        }
        assert_eq!(log.dropped, [(3, OVERFLOW)]);
        assert_eq!((queue.len(), queue.bytes()), (3, 3000));
        let order: Vec<u64> =
            core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut log)).map(|p| p.id.0).collect();
        assert_eq!(order, [1, 2, 4]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn what_finds_more_than_the_threshold_is_marked_if_it_can_be() {
        let mut queue =
            Fifo::with_tail(Tail::new(Limit::UNLIMITED).marking_above(Limit::Packets(2)));
        let mut log = Log::default();
        for id in 0..6 {
            let ecn = if id == 4 { Ecn::NotEct } else { Ecn::Ect0 };
            queue.enqueue(Time::ZERO, Packet { ecn, ..packet(id, 0, 100) }, &mut log);
        }
        assert_eq!(log.marked, [3, 5]);
        assert_eq!(log.dropped, []);
    }

    #[test]
    fn a_limit_in_packets_ignores_their_size() {
        let mut queue = Fifo::new(Limit::Packets(2));
        let mut log = Log::default();
        for id in 1..=3 {
            queue.enqueue(Time::ZERO, packet(id, 0, 60_000), &mut log);
        }
        assert_eq!(log.dropped, [(3, OVERFLOW)]);
    }
}
