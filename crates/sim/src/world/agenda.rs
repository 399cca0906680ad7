use core::ops::{Index, IndexMut};

use fontis_base::distance::MOVED_EVENT;
use fontis_base::{Prefetch, Time, prefetch};

/// The nodes of a world, and their pending events, at most one for each: side by side, because
/// whoever asks for one nearly always asks for the other.
///
/// The next events stand sorted. The later ones are in a hierarchy of wheels of 64 slots: a slot of
/// the lowest is a nanosecond, one of the next 64 of them, and so on, so that any time has its
/// slot. An event goes to the wheel of the highest digit (to the base 64) in which its time differs
/// from the present of the wheels, and moves down as that draws near, until there are few enough in
/// its slot to be sorted. Events at the same time come in the order in which they were made: they
/// move together, and nothing is put before them. All costs the same however many events are
/// pending.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<N> {
    now: u64,
    /// The next events, the last one first: when, and the node.
    next: Vec<(u64, u32)>,
    /// All events before this are there, and no others.
    horizon: u64,
    /// The present of the wheels, which is never after the horizon.
    base: u64,
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
    /// The slot, if it is in the wheels; [`NONE`] if the node has no event.
    slot: u32,
    /// Its place there.
    index: u32,
}

/// The events of a slot, in the order in which they were made: of thousands of nodes none need be
/// touched to find the next.
#[derive(Clone, Debug, Default)]
struct Row {
    /// When, and the node; [`NONE`] where an event was taken back.
    events: Vec<(u64, u32)>,
    /// How many are left.
    left: u32,
}

const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;
const WHEELS: usize = 64usize.div_ceil(BITS as usize);
const NONE: u32 = u32::MAX;
/// So many events that were taken back may always lie in a slot, and it may keep the memory for so
/// many.
const MANY: usize = 64;
/// So many events are sorted at least, as long as there are others.
const FEWEST: usize = 16;
/// So many are added to them at once.
const SOME: usize = 32;
/// If more are to be sorted, some go back to the wheels.
const MOST: usize = 128;

impl<N> Default for Agenda<N> {
    fn default() -> Self {
        Self {
            now: 0,
            next: Vec::with_capacity(MOST + 1),
            horizon: 0,
            base: 0,
            slots: vec![Row::default(); WHEELS * SLOTS as usize],
            filled: [0; WHEELS],
            wheels: 0,
            nodes: Vec::new(),
        }
    }
}

impl<N> Prefetch for Agenda<N> {
    /// A node and its event.
    type Part = u32;

    fn prefetch(&self, node: u32) {
        self.nodes.get(node as usize).into_iter().for_each(prefetch);
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

    /// Sets a node's event, in place of the one that it has. A time that has passed is read as the
    /// present.
    pub(crate) fn set(&mut self, node: u32, at: Time) {
        self.clear(node);
        self.insert(node, at.as_nanos().max(self.now));
    }

    /// Sets a node's event, unless it has one that is due no later.
    #[inline]
    pub(crate) fn set_no_later(&mut self, node: u32, at: Time) {
        let event = self.event(node);
        if event.slot == NONE {
            self.insert(node, at.as_nanos().max(self.now));
        } else if at.as_nanos() < event.at {
            self.set(node, at);
        }
    }

    /// Takes back a node's event.
    #[inline]
    fn clear(&mut self, node: u32) {
        if self.event(node).slot != NONE {
            self.take_back(node);
        }
    }

    fn take_back(&mut self, node: u32) {
        let Event { at, slot, index } = *self.event(node);
        self.event_mut(node).slot = NONE;
        if at < self.horizon {
            if let Some(place) = self.next.iter().rposition(|(_, other)| *other == node) {
                self.next.remove(place);
            }
            return;
        }
        let (number, index) = (slot as usize, index as usize);
        let row = &mut self.slots[number];
        row.events[index].1 = NONE;
        row.left -= 1;
        if row.left == 0 {
            let events = self.take(number);
            self.reuse(number, events);
        } else if index + 1 == row.events.len() {
            // A node that puts its event off again and again must not fill the slot.
            row.events.truncate(index);
        } else if row.events.len() > 4 * row.left as usize + MANY {
            self.close_up(number);
        }
    }

    /// Takes out of a slot what was taken back.
    #[cold]
    fn close_up(&mut self, slot: usize) {
        let events = &mut self.slots[slot].events;
        events.retain(|(_, node)| *node != NONE);
        for (index, (_, node)) in (0..).zip(events) {
            self.nodes[*node as usize].event.index = index;
        }
    }

    /// Takes the next event, if it is due no later than `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        if self.next.len() < FEWEST && self.wheels != 0 {
            self.refill(until.as_nanos());
        }
        let (at, node) = self.next.pop_if(|(at, _)| *at <= until.as_nanos())?;
        self.now = at;
        self.event_mut(node).slot = NONE;
        Some((Time::from_nanos(at), node))
    }

    /// Takes events from the wheels, until there are some to be the next.
    fn refill(&mut self, until: u64) {
        // What is taken is later than what is there; it is appended in its own order, and turned
        // round at the end.
        let known = self.next.len();
        while self.wheels != 0 && self.next.len() < SOME {
            let begin = self.next_slot();
            // What is added may be due then, so the wheels must not go on.
            if begin > until {
                break;
            }
            let wheel = self.wheels.trailing_zeros();
            let number = wheel as usize * SLOTS as usize
                + (begin >> (BITS * wheel)) as usize % SLOTS as usize;
            let few = self.slots[number].left as usize <= SOME;
            if !few && !self.next.is_empty() {
                break;
            }
            self.base = begin;
            self.horizon = self.horizon.max(begin);
            let events = self.take(number);
            if few || wheel == 0 {
                // Those of a slot of the lowest wheel are due at the same time.
                let from = self.next.len();
                self.next.extend(events.iter().filter(|(_, node)| *node != NONE));
                self.next[from..].sort_by_key(|(at, _)| *at);
                self.horizon = begin.saturating_add(1 << (BITS * wheel));
            } else {
                for (index, &(at, node)) in events.iter().enumerate() {
                    if let Some(&(_, later)) = events.get(index + MOVED_EVENT) {
                        self.prefetch(later);
                    }
                    if node != NONE {
                        self.enter(node, at);
                    }
                }
            }
            self.reuse(number, events);
        }
        self.next[known..].reverse();
        self.next.rotate_left(known);
        // Until the next slot there is nothing else.
        if !self.next.is_empty() {
            self.horizon = self.horizon.max(self.next_slot());
        }
    }

    /// When the next slot of the wheels begins that holds events; [`u64::MAX`] if none does.
    #[inline]
    fn next_slot(&self) -> u64 {
        if self.wheels == 0 {
            return u64::MAX;
        }
        let wheel = self.wheels.trailing_zeros();
        let index = u64::from(self.filled[wheel as usize].trailing_zeros());
        let shift = BITS * wheel;
        (self.base >> shift >> BITS << BITS | index) << shift
    }

    fn event(&self, node: u32) -> &Event {
        &self.nodes[node as usize].event
    }

    fn event_mut(&mut self, node: u32) -> &mut Event {
        &mut self.nodes[node as usize].event
    }

    /// The node whose event comes after so many others; [`NONE`] if that is not known yet.
    pub(crate) fn ahead(&self, others: usize) -> u32 {
        self.next.iter().rev().nth(others).map_or(NONE, |(_, node)| *node)
    }

    /// Takes all events out of a slot.
    fn take(&mut self, slot: usize) -> Vec<(u64, u32)> {
        let (wheel, index) = (slot / SLOTS as usize, slot as u64 % SLOTS);
        self.filled[wheel] &= !(1 << index);
        if self.filled[wheel] == 0 {
            self.wheels &= !(1 << wheel);
        }
        core::mem::take(&mut self.slots[slot]).events
    }

    /// Gives the memory of what was in a slot back to it, if it is little.
    fn reuse(&mut self, slot: usize, mut events: Vec<(u64, u32)>) {
        if events.capacity() <= MANY {
            events.clear();
            self.slots[slot].events = events;
        }
    }

    /// Gives a node that has none an event.
    #[inline]
    fn insert(&mut self, node: u32, at: u64) {
        if at >= self.horizon {
            return self.enter(node, at);
        }
        *self.event_mut(node) = Event { at, slot: 0, index: 0 };
        sort_in(&mut self.next, at, node);
        if self.next.len() > MOST {
            self.spill();
        }
    }

    /// Gives the later half of the next events back to the wheels.
    #[cold]
    fn spill(&mut self) {
        let (middle, _) = self.next[self.next.len() / 2];
        let later = self.next.partition_point(|(at, _)| *at > middle);
        let Some(first) = later.checked_sub(1) else { return };
        // The wheels do not go back.
        if self.next[first].0 <= self.base {
            return;
        }
        self.horizon = self.next[first].0;
        for index in (0..later).rev() {
            let (at, node) = self.next[index];
            self.enter(node, at);
        }
        self.next.drain(..later);
    }

    /// Puts an event into the wheels.
    fn enter(&mut self, node: u32, at: u64) {
        let differs = (at ^ self.base) | 1;
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

/// Puts an event among the next, after all that are due at the same time.
#[inline]
fn sort_in(next: &mut Vec<(u64, u32)>, at: u64, node: u32) {
    next.push((at, node));
    let mut place = next.len() - 1;
    // Most come soon, so few are to be moved.
    while place > 0 && next[place - 1].0 <= at {
        next[place] = next[place - 1];
        place -= 1;
    }
    next[place] = (at, node);
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
        let longest = agenda.slots.iter().map(|row| row.events.len()).max();
        assert!(longest <= Some(4 * 4 + MANY + 1), "{longest:?}");
        for (round, node) in [(5, 3), (10_007, 1), (10_008, 2), (10_009, 0)] {
            assert_eq!(agenda.pop(Time::MAX), Some((at(round), node)));
        }
        assert_eq!(agenda.pop(Time::MAX), None);
    }

    #[test]
    fn more_events_than_are_sorted_come_as_they_were_made() {
        let mut agenda = Agenda::default();
        let nodes = 4 * MOST as u32;
        (0..2 * nodes + 1).for_each(|node| assert_eq!(agenda.add(node), node as usize));
        // At one time in the wheels; at many times, some of them shared, once all before the
        // horizon are sorted.
        (0..nodes).for_each(|node| agenda.set(node, Time::from_nanos(1 << 30)));
        agenda.set(2 * nodes, Time::from_nanos(1));
        assert_eq!(agenda.pop(Time::from_nanos(1)), Some((Time::from_nanos(1), 2 * nodes)));
        let at = |node: u32| Time::from_nanos(100 + u64::from(node * 7 % 50));
        (nodes..2 * nodes).for_each(|node| agenda.set(node, at(node)));
        let mut want: Vec<_> = (nodes..2 * nodes).map(|node| (at(node), node)).collect();
        want.sort_by_key(|(at, _)| *at);
        want.extend((0..nodes).map(|node| (Time::from_nanos(1 << 30), node)));
        let got: Vec<_> = core::iter::from_fn(|| agenda.pop(Time::MAX)).collect();
        assert_eq!(got, want);
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_their_times_and_then_of_their_making(
            nodes in prop::sample::select(vec![12u32, 300]),
            operations in prop::collection::vec((0u32..300, 0u8..8, 0u64..u64::MAX), 1..1000)
        ) {
            let mut agenda = Agenda::default();
            (0..nodes).for_each(|node| assert_eq!(agenda.add(node), node as usize));
            let mut naive: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let (mut now, mut sequence) = (0, 0);
            for (node, operation, random) in operations {
                let node = node % nodes;
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
                for node in 0..nodes {
                    let want = naive.iter().find(|(_, other)| **other == node);
                    let want = want.map(|((at, _), _)| Time::from_nanos(*at));
                    prop_assert_eq!(agenda.pending(node), want);
                }
            }
        }
    }
}
