use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use fontis_base::{Packet, Time, relax};

/// The packets that propagate, delivered in the order (deliver_at, seq).
///
/// All but the ones held back for reordering are due in the order in which they come, so a plain queue holds them
/// and a heap the others.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    in_order: VecDeque<Due<P>>,
    held_back: BinaryHeap<Due<P>>,
    next_seq: u64,
    /// When the latest of the packets in order is or was due.
    last_due: Time,
}

#[derive(Clone, Debug)]
struct Due<P> {
    at: Time,
    seq: u64,
    packet: Packet<P>,
}

impl<P> Flight<P> {
    pub(crate) fn new() -> Self {
        Self {
            in_order: VecDeque::new(),
            held_back: BinaryHeap::new(),
            next_seq: 0,
            last_due: Time::ZERO,
        }
    }

    /// Takes a packet that is due at `at`, or when the last one before it is.
    pub(crate) fn push(&mut self, at: Time, packet: Packet<P>) {
        self.last_due = self.last_due.max(at);
        let due = self.due(self.last_due, packet);
        self.in_order.push_back(due);
    }

    /// Takes a packet that is due `by` later than [`push`](Self::push) would have it, and lets others overtake it.
    pub(crate) fn push_held_back(
        &mut self,
        at: Time,
        by: fontis_base::Duration,
        packet: Packet<P>,
    ) {
        let due = self.due(self.last_due.max(at) + by, packet);
        self.held_back.push(due);
    }

    /// When the next delivery is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        match (self.in_order.front(), self.held_back.peek()) {
            (Some(a), Some(b)) => Some(a.at.min(b.at)),
            (a, b) => a.or(b).map(|due| due.at),
        }
    }

    /// Whether a packet in order is on its way: then none that is sent later is due before it.
    pub(crate) fn has_in_order(&self) -> bool {
        !self.in_order.is_empty()
    }

    /// The next packet due at `now`, and when it was due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Packet<P>)> {
        if self.next_at()? > now {
            return None;
        }
        let held_back_first = match (self.in_order.front(), self.held_back.peek()) {
            // A heap of `Due` has its least at the top, so "greater" means "due earlier".
            (Some(a), Some(b)) => b > a,
            (a, _) => a.is_none(),
        };
        let due = if held_back_first { self.held_back.pop() } else { self.in_order.pop_front() };
        relax(&mut self.in_order);
        due.map(|due| (due.at, due.packet))
    }

    fn due(&mut self, at: Time, packet: Packet<P>) -> Due<P> {
        let seq = self.next_seq;
        self.next_seq += 1;
        Due { at, seq, packet }
    }
}

impl<P> Ord for Due<P> {
    /// Reversed, because the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Due<P> {}
