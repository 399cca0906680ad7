use fontis_base::{Time, prefetch};

/// The pending events of a world, at most one for each node.
///
/// A hierarchy of wheels of 64 slots: a slot of the lowest is a nanosecond, one of the next 64 of them, and so on, so
/// that any time has its slot. An event goes to the wheel of the highest digit (to the base 64) in which its time
/// differs from the present, and moves down as the present draws near; alone in the next slot, it is taken from where
/// it is. Events at the same time come in the order in which they were made: they move together, and nothing is put
/// before them. All costs the same however many events are pending.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    now: u64,
    /// First and last node of each slot.
    slots: Vec<[u32; 2]>,
    /// Which slots of each wheel hold events.
    filled: [u64; WHEELS],
    /// Which wheels hold events.
    wheels: u16,
    nodes: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    next: u32,
    previous: u32,
    /// The slot; [`NONE`] if the node has no event.
    slot: u32,
}

const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;
const WHEELS: usize = 64usize.div_ceil(BITS as usize);
const NONE: u32 = u32::MAX;

impl Default for Events {
    fn default() -> Self {
        Self {
            now: 0,
            slots: vec![[NONE; 2]; WHEELS * SLOTS as usize],
            filled: [0; WHEELS],
            wheels: 0,
            nodes: Vec::new(),
        }
    }
}

impl Events {
    /// Makes room in memory for so many nodes more.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve_exact(nodes);
    }

    /// Makes room for one more node.
    pub(crate) fn add_node(&mut self) {
        self.nodes.push(Entry { at: 0, next: NONE, previous: NONE, slot: NONE });
    }

    /// When a node's event is due.
    #[cfg(test)]
    pub(crate) fn pending(&self, node: u32) -> Option<Time> {
        let entry = &self.nodes[node as usize];
        (entry.slot != NONE).then(|| Time::from_nanos(entry.at))
    }

    /// Sets a node's event, in place of the one that it has. A time that has passed is read as the present.
    pub(crate) fn set(&mut self, node: u32, at: Time) {
        self.clear(node);
        let at = at.as_nanos().max(self.now);
        self.link(node, at);
    }

    /// Sets a node's event, unless it has one that is due no later.
    pub(crate) fn set_no_later(&mut self, node: u32, at: Time) {
        let entry = &self.nodes[node as usize];
        if entry.slot == NONE || at.as_nanos() < entry.at {
            self.set(node, at);
        }
    }

    /// Takes back a node's event.
    pub(crate) fn clear(&mut self, node: u32) {
        if self.nodes[node as usize].slot != NONE {
            self.unlink(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let Entry { slot, next, previous, .. } = self.nodes[node as usize];
        let ends = &mut self.slots[slot as usize];
        match previous {
            NONE => ends[0] = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => ends[1] = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        if self.slots[slot as usize][0] == NONE {
            self.empty(slot as usize / SLOTS as usize, u64::from(slot) % SLOTS);
        }
        self.nodes[node as usize].slot = NONE;
    }

    /// Takes the next event, if it is due no later than `until`.
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        let until = until.as_nanos();
        while self.wheels != 0 {
            let wheel = self.wheels.trailing_zeros() as usize;
            let index = u64::from(self.filled[wheel].trailing_zeros());
            let slot = wheel * SLOTS as usize + index as usize;
            let [first, last] = self.slots[slot];
            if wheel == 0 || first == last {
                let at = self.nodes[first as usize].at;
                if at > until {
                    return None;
                }
                self.now = at;
                if first == last {
                    // Alone, as nearly all are.
                    self.slots[slot] = [NONE; 2];
                    self.empty(wheel, index);
                    self.nodes[first as usize].slot = NONE;
                } else {
                    self.unlink(first);
                }
                return Some((Time::from_nanos(at), first));
            }
            let shift = BITS * wheel as u32;
            let above = self.now >> shift >> BITS << BITS;
            let base = (above | index) << shift;
            if base > until {
                return None;
            }
            self.now = base;
            self.move_down(slot, wheel, index);
        }
        None
    }

    /// Brings the entry of a node into the cache.
    pub(crate) fn bring_near(&self, node: u32) {
        if let Some(entry) = self.nodes.get(node as usize) {
            prefetch(entry);
        }
    }

    /// The first nodes of the next slots that hold events, in order: about which events come next. What lies behind
    /// them in the same slots is left out; [`NONE`] stands where there are too few.
    pub(crate) fn ahead<const N: usize>(&self) -> [u32; N] {
        let mut nodes = [NONE; N];
        let (mut count, mut wheels) = (0, self.wheels);
        while wheels != 0 {
            let wheel = wheels.trailing_zeros() as usize;
            wheels &= wheels - 1;
            let mut filled = self.filled[wheel];
            while filled != 0 {
                if count == N {
                    return nodes;
                }
                let index = filled.trailing_zeros() as usize;
                filled &= filled - 1;
                nodes[count] = self.slots[wheel * SLOTS as usize + index][0];
                count += 1;
            }
        }
        nodes
    }

    /// Notes that a slot holds no event.
    fn empty(&mut self, wheel: usize, index: u64) {
        self.filled[wheel] &= !(1 << index);
        if self.filled[wheel] == 0 {
            self.wheels &= !(1 << wheel);
        }
    }

    /// Spreads a slot over the wheels below, in order.
    fn move_down(&mut self, slot: usize, wheel: usize, index: u64) {
        let mut node = core::mem::replace(&mut self.slots[slot], [NONE; 2])[0];
        self.empty(wheel, index);
        while node != NONE {
            let Entry { at, next, .. } = self.nodes[node as usize];
            self.link(node, at);
            node = next;
        }
    }

    fn link(&mut self, node: u32, at: u64) {
        let differs = (at ^ self.now) | 1;
        let wheel = ((63 - differs.leading_zeros()) / BITS) as usize;
        let index = (at >> (BITS * wheel as u32)) % SLOTS;
        let slot = wheel * SLOTS as usize + index as usize;
        let ends = &mut self.slots[slot];
        let last = ends[1];
        ends[1] = node;
        if last == NONE {
            ends[0] = node;
            self.filled[wheel] |= 1 << index;
            self.wheels |= 1 << wheel;
        } else {
            self.nodes[last as usize].next = node;
        }
        self.nodes[node as usize] = Entry { at, next: NONE, previous: last, slot: slot as u32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_their_times_and_then_of_their_making(
            operations in prop::collection::vec((0u32..12, 0u8..8, 0u64..u64::MAX), 1..300)
        ) {
            let mut events = Events::default();
            (0..12).for_each(|_| events.add_node());
            let mut naive: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let (mut now, mut sequence) = (0, 0);
            for (node, operation, random) in operations {
                // Spans of every order of magnitude, and often the same time.
                let span = if operation < 2 { 0 } else { random >> (random % 60) };
                match operation {
                    0..5 => {
                        let at = now + (span >> 2);
                        naive.retain(|_, other| *other != node);
                        sequence += 1;
                        naive.insert((at, sequence), node);
                        events.set(node, Time::from_nanos(at));
                    }
                    5 => {
                        naive.retain(|_, other| *other != node);
                        events.clear(node);
                    }
                    _ => {
                        let until = now.saturating_add(span);
                        let want = naive.first_key_value().map(|((at, _), node)| (*at, *node));
                        let want = want.filter(|(at, _)| *at <= until);
                        let got = events.pop(Time::from_nanos(until));
                        prop_assert_eq!(got.map(|(at, node)| (at.as_nanos(), node)), want);
                        if let Some((at, _)) = want {
                            naive.pop_first();
                            now = at;
                        } else {
                            now = until;
                        }
                        prop_assume!(now < u64::MAX / 2);
                    }
                }
                for node in 0..12 {
                    let want = naive.iter().find(|(_, other)| **other == node);
                    let want = want.map(|((at, _), _)| Time::from_nanos(*at));
                    prop_assert_eq!(events.pending(node), want);
                }
            }
        }
    }
}
