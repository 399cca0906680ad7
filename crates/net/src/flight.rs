use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use fontis_base::{Duration, Packet, Time, append, relax};

/// The packets that propagate, delivered in the order of due times, and of those in the order in which they came.
///
/// All but the ones held back for reordering are due in the order in which they come, so a plain queue holds them
/// and a heap the others.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    in_order: VecDeque<Due<P>>,
    /// When the latest of the packets in order is or was due.
    last_due: Time,
    /// For how many packets in order there is to be room as soon as there is one: bursts come again, and the memory for one is
    /// had at once instead of bit by bit.
    room: u16,
    /// Most links hold none back.
    late: Option<Box<Late<P>>>,
}

/// The packet comes first, so that it is moved out with the same words with which it is moved on: a processor waits for
/// what it has just written if it reads it otherwise.
#[derive(Clone, Debug)]
#[repr(C)]
struct Due<P> {
    packet: Packet<P>,
    at: Time,
}

/// The packets that are held back, and what decides between one of them and one in order that are due at the same time.
#[derive(Clone, Debug)]
struct Late<P> {
    heap: BinaryHeap<HeldBack<P>>,
    next_seq: u64,
    /// Packets in order that have been delivered.
    delivered: u64,
}

#[derive(Clone, Debug)]
struct HeldBack<P> {
    at: Time,
    seq: u64,
    /// How many packets in order had come before it.
    behind: u64,
    packet: Packet<P>,
}

/// Packets of a burst that is expected again at most.
const USUAL_BURST: usize = 1024;

impl<P> Flight<P> {
    pub(crate) fn new() -> Self {
        Self { in_order: VecDeque::new(), last_due: Time::ZERO, room: 0, late: None }
    }

    /// Takes a packet that is due at `at`, or when the last one before it is.
    pub(crate) fn push(&mut self, at: Time, packet: Packet<P>) {
        self.last_due = self.last_due.max(at);
        if self.in_order.capacity() == 0 {
            self.in_order.reserve_exact(self.room.into());
        }
        append(&mut self.in_order, Due { at: self.last_due, packet });
    }

    /// Takes a packet that is due `by` later than [`push`](Self::push) would have it, and lets others overtake it.
    pub(crate) fn push_held_back(&mut self, at: Time, by: Duration, packet: Packet<P>) {
        let late = self.late.get_or_insert_with(|| {
            Box::new(Late { heap: BinaryHeap::new(), next_seq: 0, delivered: 0 })
        });
        let behind = late.delivered + self.in_order.len() as u64;
        let at = self.last_due.max(at) + by;
        late.heap.push(HeldBack { at, seq: late.next_seq, behind, packet });
        late.next_seq += 1;
    }

    /// How many packets there are.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.late.as_ref().map_or(0, |late| late.heap.len())
    }

    /// The packet in order before which so many others are.
    pub(crate) fn get(&self, index: usize) -> Option<&Packet<P>> {
        self.in_order.get(index).map(|due| &due.packet)
    }

    /// When the next delivery is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let in_order = self.in_order.front().map(|due| due.at);
        let Some(held_back) = self.late.as_ref().and_then(|late| late.heap.peek()) else {
            return in_order;
        };
        Some(in_order.map_or(held_back.at, |at| at.min(held_back.at)))
    }

    /// Whether a packet in order is on its way: then none that is sent later is due before it.
    pub(crate) fn has_in_order(&self) -> bool {
        !self.in_order.is_empty()
    }

    /// The next packet due at `now`, and when it was due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Packet<P>)> {
        if self.late.is_some() {
            return self.pop_either(now);
        }
        let due = self.in_order.pop_front_if(|due| due.at <= now)?;
        self.relax();
        Some((due.at, due.packet))
    }

    #[inline]
    fn relax(&mut self) {
        if let Some(room) = relax(&mut self.in_order) {
            self.room = room.min(USUAL_BURST) as u16;
        }
    }

    #[cold]
    fn pop_either(&mut self, now: Time) -> Option<(Time, Packet<P>)> {
        if self.next_at()? > now {
            return None;
        }
        let late = self.late.as_mut()?;
        let held_back_first = match (self.in_order.front(), late.heap.peek()) {
            (Some(a), Some(b)) => (b.at, b.behind) <= (a.at, late.delivered),
            (a, _) => a.is_none(),
        };
        if held_back_first {
            return late.heap.pop().map(|held_back| (held_back.at, held_back.packet));
        }
        late.delivered += 1;
        let due = self.in_order.pop_front()?;
        self.relax();
        Some((due.at, due.packet))
    }
}

impl<P> Ord for HeldBack<P> {
    /// Reversed, because the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

impl<P> PartialOrd for HeldBack<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for HeldBack<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for HeldBack<P> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    #[test]
    fn a_burst_that_comes_again_finds_its_room() {
        let mut flight = Flight::new();
        for id in 0..100 {
            flight.push(Time::ZERO, packet(id, 0, 1500));
        }
        while flight.pop(Time::ZERO).is_some() {}
        assert_eq!(flight.in_order.capacity(), 0, "what is empty takes no memory");
        flight.push(Time::ZERO, packet(100, 0, 1500));
        let room = flight.in_order.capacity();
        assert!(room >= 100);
        (101..200).for_each(|id| flight.push(Time::ZERO, packet(id, 0, 1500)));
        assert_eq!(flight.in_order.capacity(), room);
    }
}
