use core::ops::{Index, IndexMut};

use fontis_base::{Time, prefetch};

/// The nodes of a world, and their pending events, at most one for each: side by side, because whoever asks for one
/// nearly always asks for the other.
///
/// A hierarchy of wheels of 64 slots: a slot of the lowest is a nanosecond, one of the next 64 of them, and so on, so
/// that any time has its slot. An event goes to the wheel of the highest digit (to the base 64) in which its time
/// differs from the present, and moves down as the present draws near; alone in the next slot, it is taken from where
/// it is. Events at the same time come in the order in which they were made: they move together, and nothing is put
/// before them. All costs the same however many events are pending.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<N> {
    now: u64,
    slots: Vec<Row>,
    /// Which slots of each wheel hold events.
    filled: [u64; WHEELS],
    /// Which wheels hold events.
    wheels: u16,
    nodes: Vec<Place<N>>,
}

/// A line of the cache, so that no node lies in two.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Place<N> {
    node: N,
    event: Event,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    /// The slot; [`NONE`] if the node has no event.
    slot: u32,
    /// Its place there.
    index: u32,
}

/// The events of a slot, in the order in which they were made: of thousands of nodes none need be touched to find the next.
#[derive(Clone, Debug, Default)]
struct Row {
    /// When, and the node; [`NONE`] where an event was taken back.
    events: Vec<(u64, u32)>,
    /// All before were taken.
    first: u32,
    /// How many are left.
    left: u32,
}

const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;
const WHEELS: usize = 64usize.div_ceil(BITS as usize);
const NONE: u32 = u32::MAX;
/// So many events that were taken back may always lie in a slot, and it may keep the memory for so many.
const MANY: usize = 64;
/// A node is brought near so many events before its own is moved.
const NEAR: usize = 8;

impl<N> Default for Agenda<N> {
    fn default() -> Self {
        Self {
            now: 0,
            slots: vec![Row::default(); WHEELS * SLOTS as usize],
            filled: [0; WHEELS],
            wheels: 0,
            nodes: Vec::new(),
        }
    }
}

impl<N> Agenda<N> {
    /// Makes room in memory for so many nodes more.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve_exact(nodes);
    }

    /// Adds a node without an event; its number.
    pub(crate) fn add(&mut self, node: N) -> usize {
        let event = Event { at: 0, slot: NONE, index: 0 };
        self.nodes.push(Place { node, event });
        self.nodes.len() - 1
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A node, if there is one of that number.
    pub(crate) fn get(&self, node: u32) -> Option<&N> {
        self.nodes.get(node as usize).map(|place| &place.node)
    }

    /// All nodes, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut N> {
        self.nodes.iter_mut().map(|place| &mut place.node)
    }

    /// When a node's event is due.
    #[cfg(test)]
    pub(crate) fn pending(&self, node: u32) -> Option<Time> {
        let event = self.event(node);
        (event.slot != NONE).then(|| Time::from_nanos(event.at))
    }

    /// Sets a node's event, in place of the one that it has. A time that has passed is read as the present.
    pub(crate) fn set(&mut self, node: u32, at: Time) {
        self.clear(node);
        let at = at.as_nanos().max(self.now);
        self.link(node, at);
    }

    /// Sets a node's event, unless it has one that is due no later.
    pub(crate) fn set_no_later(&mut self, node: u32, at: Time) {
        let event = self.event(node);
        if event.slot == NONE || at.as_nanos() < event.at {
            self.set(node, at);
        }
    }

    /// Takes back a node's event.
    pub(crate) fn clear(&mut self, node: u32) {
        let Event { slot, index, .. } = *self.event(node);
        if slot == NONE {
            return;
        }
        self.event_mut(node).slot = NONE;
        let (row, index) = (&mut self.slots[slot as usize], index as usize);
        row.events[index].1 = NONE;
        row.left -= 1;
        if row.left == 0 {
            self.empty(slot as usize);
        } else if index + 1 == row.events.len() {
            // A node that puts its event off again and again must not fill the slot.
            row.events.truncate(index);
        } else if row.events.len() > 4 * row.left as usize + MANY {
            self.close_up(slot as usize);
        }
    }

    /// Takes out of a slot what was taken or taken back.
    #[cold]
    fn close_up(&mut self, slot: usize) {
        let Row { events, first, .. } = &mut self.slots[slot];
        events.drain(..core::mem::take(first) as usize);
        events.retain(|(_, node)| *node != NONE);
        for (index, (_, node)) in (0..).zip(events) {
            self.nodes[*node as usize].event.index = index;
        }
    }

    /// Takes the next event, if it is due no later than `until`.
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        let until = until.as_nanos();
        while self.wheels != 0 {
            let wheel = self.wheels.trailing_zeros() as usize;
            let index = u64::from(self.filled[wheel].trailing_zeros());
            let number = wheel * SLOTS as usize + index as usize;
            let row = &mut self.slots[number];
            if wheel == 0 || row.left == 1 {
                let mut first = row.first as usize;
                while row.events[first].1 == NONE {
                    first += 1;
                }
                row.first = first as u32;
                let (at, node) = row.events[first];
                if at > until {
                    return None;
                }
                self.now = at;
                row.first += 1;
                row.left -= 1;
                if row.left == 0 {
                    self.empty(number);
                }
                self.event_mut(node).slot = NONE;
                return Some((Time::from_nanos(at), node));
            }
            let shift = BITS * wheel as u32;
            let above = self.now >> shift >> BITS << BITS;
            let base = (above | index) << shift;
            if base > until {
                return None;
            }
            self.now = base;
            self.move_down(number);
        }
        None
    }

    /// Brings a node and its event into the cache.
    pub(crate) fn bring_near(&self, node: u32) {
        self.nodes.get(node as usize).into_iter().for_each(prefetch);
    }

    fn event(&self, node: u32) -> &Event {
        &self.nodes[node as usize].event
    }

    fn event_mut(&mut self, node: u32) -> &mut Event {
        &mut self.nodes[node as usize].event
    }

    /// Nodes whose events are about the next to come; [`NONE`] stands where there are too few.
    pub(crate) fn ahead<const COUNT: usize>(&self) -> [u32; COUNT] {
        let mut nodes = [NONE; COUNT];
        let (mut count, mut wheels) = (0, self.wheels);
        while wheels != 0 {
            let wheel = wheels.trailing_zeros() as usize;
            wheels &= wheels - 1;
            let mut filled = self.filled[wheel];
            while filled != 0 {
                if count == COUNT {
                    return nodes;
                }
                let index = filled.trailing_zeros() as usize;
                filled &= filled - 1;
                let row = &self.slots[wheel * SLOTS as usize + index];
                nodes[count] = row.events[row.first as usize].1;
                count += 1;
            }
        }
        nodes
    }

    /// Empties a slot in which no event is left.
    fn empty(&mut self, slot: usize) {
        let Row { events, first, .. } = &mut self.slots[slot];
        *first = 0;
        if events.capacity() > MANY {
            *events = Vec::new();
        }
        events.clear();
        let (wheel, index) = (slot / SLOTS as usize, slot as u64 % SLOTS);
        self.filled[wheel] &= !(1 << index);
        if self.filled[wheel] == 0 {
            self.wheels &= !(1 << wheel);
        }
    }

    /// Spreads a slot over the wheels below, in order.
    fn move_down(&mut self, slot: usize) {
        let Row { mut events, first, .. } = core::mem::take(&mut self.slots[slot]);
        self.empty(slot);
        for index in first as usize..events.len() {
            if let Some(&(_, later)) = events.get(index + NEAR) {
                self.bring_near(later);
            }
            let (at, node) = events[index];
            if node != NONE {
                self.link(node, at);
            }
        }
        if events.capacity() <= MANY {
            events.clear();
            self.slots[slot].events = events;
        }
    }

    fn link(&mut self, node: u32, at: u64) {
        let differs = (at ^ self.now) | 1;
        let wheel = ((63 - differs.leading_zeros()) / BITS) as usize;
        let index = (at >> (BITS * wheel as u32)) % SLOTS;
        let number = wheel * SLOTS as usize + index as usize;
        let row = &mut self.slots[number];
        let place = row.events.len() as u32;
        row.events.push((at, node));
        row.left += 1;
        self.filled[wheel] |= 1 << index;
        self.wheels |= 1 << wheel;
        *self.event_mut(node) = Event { at, slot: number as u32, index: place };
    }
}

impl<N> Index<usize> for Agenda<N> {
    type Output = N;

    fn index(&self, node: usize) -> &N {
        &self.nodes[node].node
    }
}

impl<N> IndexMut<usize> for Agenda<N> {
    fn index_mut(&mut self, node: usize) -> &mut N {
        &mut self.nodes[node].node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_node_and_its_event_take_a_line_of_the_cache() {
        assert_eq!(size_of::<Place<crate::world::Slot>>(), 64);
    }

    #[test]
    fn events_that_are_put_off_in_turn_do_not_fill_their_slot() {
        let mut agenda = Agenda::default();
        (0..4).for_each(|node| assert_eq!(agenda.add(node), node));
        let at = |nanos| Time::from_nanos((1 << 40) + nanos);
        agenda.set(3, at(5));
        (0..10_000).for_each(|round| agenda.set(round % 3, at(10 + u64::from(round))));
        let longest = agenda.slots.iter().map(|slot| slot.events.len()).max();
        assert!(longest <= Some(4 * 4 + MANY + 1), "{longest:?}");
        for (round, node) in [(5, 3), (10_007, 1), (10_008, 2), (10_009, 0)] {
            assert_eq!(agenda.pop(Time::MAX), Some((at(round), node)));
        }
        assert_eq!(agenda.pop(Time::MAX), None);
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_their_times_and_then_of_their_making(
            operations in prop::collection::vec((0u32..12, 0u8..8, 0u64..u64::MAX), 1..300)
        ) {
            let mut agenda = Agenda::default();
            (0..12).for_each(|node| assert_eq!(agenda.add(node), node));
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
                        agenda.set(node, Time::from_nanos(at));
                    }
                    5 => {
                        naive.retain(|_, other| *other != node);
                        agenda.clear(node);
                    }
                    _ => {
                        let until = now.saturating_add(span);
                        let want = naive.first_key_value().map(|((at, _), node)| (*at, *node));
                        let want = want.filter(|(at, _)| *at <= until);
                        let got = agenda.pop(Time::from_nanos(until));
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
                    prop_assert_eq!(agenda.pending(node), want);
                }
            }
        }
    }
}
