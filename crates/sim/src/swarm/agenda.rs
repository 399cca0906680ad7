use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fontis_base::Time;
use fontis_proto::swarm::SwarmMessage;

/// Something that happens in a swarm.
#[derive(Clone, Copy, Debug)]
pub(super) enum SwarmEvent {
    /// A message has come to all neighbours of its sender.
    Told { from: u32, message: SwarmMessage },
    /// A message has come to one of them.
    Hear { at: u32, from: u32, message: SwarmMessage },
    /// An offer has come.
    Offer { upload: u32 },
    /// A refusal has come back.
    Refused { upload: u32 },
    /// A block begins to leave.
    Begin { upload: u32 },
    /// A block has nearly left, or has, if its plan still counts.
    Step { upload: u32, plan: u32 },
    /// The receiver may take the next one.
    Filled { upload: u32 },
    /// A block has come.
    Arrived { upload: u32 },
    /// A node comes.
    Join { node: u32 },
    /// A node leaves.
    Leave { node: u32 },
    /// Two nodes have a connection, and `from` has said what it has.
    Met { at: u32, from: u32 },
    /// A neighbour is gone.
    Parted { at: u32, from: u32 },
    /// The halves do not reach each other any more.
    Divide,
    /// They do again.
    Unite,
}

/// What is to happen, in the order of time; of one time, in the order in which it was decided.
#[derive(Debug, Default)]
pub(super) struct SwarmAgenda {
    heap: BinaryHeap<Entry>,
    order: u64,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    order: u64,
    event: SwarmEvent,
}

impl SwarmAgenda {
    pub(super) fn push(&mut self, at: Time, event: SwarmEvent) {
        self.order += 1;
        self.heap.push(Entry { at, order: self.order, event });
    }

    /// The next event that is due by a time.
    pub(super) fn pop_until(&mut self, until: Time) -> Option<(Time, SwarmEvent)> {
        let next = self.heap.peek().filter(|next| next.at <= until).is_some();
        let next = if next { self.heap.pop() } else { None };
        next.map(|entry| (entry.at, entry.event))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // A heap gives its greatest first.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
