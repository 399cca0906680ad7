use std::collections::BTreeMap;

use fontis_base::{Duration, LongQueue, Packet, Prefetch, Time, prefetch};

use crate::delivery::Delivery;
use crate::link_part::LinkPart;

/// The packets that propagate, delivered in the order of due times, and of those in the order in
/// which they came.
///
/// All but the ones held back for reordering are due in the order in which they come, so a plain
/// queue holds them and a tree the others. Behind them may stand packets that wait for the line and
/// will travel in their order.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    /// Those that wait are due at [`Time::MAX`].
    in_order: LongQueue<Delivery<P>>,
    /// How many of them are on their way.
    moving: u32,
    /// When the next delivery is due; [`Time::MAX`] if nothing is on its way. It is asked for more
    /// often than it changes, and the packet may be long out of the processor's cache.
    next_at: Time,
    /// When the latest of the packets in order is or was due.
    last_due: Time,
    /// For how many packets in order there is to be room as soon as there are [`MANY`]: bursts come
    /// again, and the memory for one is had at once instead of bit by bit. A few packets keep to
    /// the little room that is never given back.
    room: u16,
    /// Most links hold none back.
    late: Option<Box<Late<P>>>,
}

/// The packets that are held back, and what decides between one of them and one in order that are
/// due at the same time.
#[derive(Clone, Debug)]
struct Late<P> {
    /// By when they are due and their number: a tree needs no room for more than there are, however
    /// many come at once.
    packets: BTreeMap<(Time, u64), HeldBack<P>>,
    next_seq: u64,
    /// Packets in order that have been delivered.
    delivered: u64,
}

#[derive(Clone, Debug)]
struct HeldBack<P> {
    /// How many packets in order had come before it.
    behind: u64,
    packet: Packet<P>,
}

/// Packets of a burst that is long: for the rest of it room is made at once, for as many as the
/// last one had.
const MANY: usize = 8;
/// A packet that is due before so many of the last is held with those held back, and not put among
/// them.
const FAR: usize = 128;

impl<P> Prefetch for Flight<P> {
    type Part = LinkPart;

    fn prefetch(&self, part: LinkPart) {
        let delivery = |index| self.in_order.get(index);
        match part {
            LinkPart::Whole => prefetch(self),
            // The next packet, and when the one after it is due.
            LinkPart::Front => [0, 1].into_iter().filter_map(delivery).for_each(prefetch),
            // The last packet, behind which the next will stand.
            LinkPart::Back => self.in_order.back().into_iter().for_each(prefetch),
        }
    }
}

impl<P> Flight<P> {
    pub(crate) fn new() -> Self {
        Self {
            in_order: LongQueue::default(),
            moving: 0,
            next_at: Time::MAX,
            last_due: Time::ZERO,
            room: 0,
            late: None,
        }
    }

    /// Takes a packet that is due at `at`, or when the last one before it is. None may be waiting.
    pub(crate) fn push(&mut self, at: Time, packet: Packet<P>) {
        let at = self.due(at);
        self.append(Delivery { packet, at });
        self.moving += 1;
    }

    /// Takes a packet that waits until it [`begins`](Self::begin).
    pub(crate) fn wait(&mut self, packet: Packet<P>) {
        self.append(Delivery { packet, at: Time::MAX });
    }

    /// A packet that waits, with so many others before it.
    pub(crate) fn waiting(&mut self, others: usize) -> Option<&mut Packet<P>> {
        self.in_order.get_mut(self.moving as usize + others).map(|delivery| &mut delivery.packet)
    }

    /// The first packet that waits is due at `at`, or when the last one before it is.
    pub(crate) fn begin(&mut self, at: Time) {
        let at = self.due(at);
        if let Some(first) = self.in_order.get_mut(self.moving as usize) {
            first.at = at;
            self.moving += 1;
        }
    }

    /// When the next packet in order is due that would be at `at` if it were alone.
    fn due(&mut self, at: Time) -> Time {
        self.last_due = self.last_due.max(at);
        self.next_at = self.next_at.min(self.last_due);
        self.last_due
    }

    fn append(&mut self, delivery: Delivery<P>) {
        if self.in_order.len() == MANY && self.in_order.capacity() == MANY {
            self.in_order.reserve(usize::from(self.room));
        }
        self.in_order.push_back(delivery);
    }

    /// Takes a packet that is due at `at`, before those that came earlier and are due later. None
    /// may be waiting.
    #[inline]
    pub(crate) fn insert(&mut self, at: Time, packet: Packet<P>) {
        match at >= self.last_due {
            true => self.push(at, packet),
            false => self.insert_before_others(at, packet),
        }
    }

    fn insert_before_others(&mut self, at: Time, packet: Packet<P>) {
        let len = self.in_order.len();
        let last = (0..len).rev().take(FAR).map_while(|index| self.in_order.get(index));
        let later = last.take_while(|other| other.at > at).count();
        if later == FAR {
            return self.hold_back(at, packet);
        }
        self.next_at = self.next_at.min(at);
        self.in_order.insert(len - later, Delivery { packet, at });
        self.moving += 1;
    }

    /// Takes a packet that is due `by` later than [`push`](Self::push) would have it, and lets
    /// others overtake it.
    pub(crate) fn push_held_back(&mut self, at: Time, by: Duration, packet: Packet<P>) {
        self.hold_back(self.last_due.max(at) + by, packet);
    }

    fn hold_back(&mut self, at: Time, packet: Packet<P>) {
        let late = self.late.get_or_insert_with(|| {
            Box::new(Late { packets: BTreeMap::new(), next_seq: 0, delivered: 0 })
        });
        let behind = late.delivered + u64::from(self.moving);
        self.next_at = self.next_at.min(at);
        late.packets.insert((at, late.next_seq), HeldBack { behind, packet });
        late.next_seq += 1;
    }

    /// How many packets are on their way.
    pub(crate) fn len(&self) -> usize {
        self.moving as usize + self.late.as_ref().map_or(0, |late| late.packets.len())
    }

    /// The packet in order before which so many others are, on their way or waiting.
    pub(crate) fn get(&self, index: usize) -> Option<&Packet<P>> {
        self.in_order.get(index).map(|delivery| &delivery.packet)
    }

    /// When the next delivery is due; [`Time::MAX`] if nothing is on its way.
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    /// Whether a packet in order is on its way: then none that is sent later is due before it.
    pub(crate) fn has_in_order(&self) -> bool {
        self.moving > 0
    }

    /// The next packet due at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<Delivery<P>> {
        if self.next_at > now {
            return None;
        }
        match &mut self.late {
            None => self.pop_in_order(),
            Some(_) => self.pop_either(),
        }
    }

    #[inline]
    fn pop_in_order(&mut self) -> Option<Delivery<P>> {
        self.moving = self.moving.checked_sub(1)?;
        let delivery = self.in_order.pop_front();
        match self.in_order.front() {
            Some(next) => self.next_at = next.at,
            None => self.relax(),
        }
        delivery
    }

    fn relax(&mut self) {
        self.next_at = Time::MAX;
        if let Some(room) = self.in_order.relax() {
            self.room = room as u16;
        }
    }

    #[cold]
    fn pop_either(&mut self) -> Option<Delivery<P>> {
        let late = self.late.as_mut()?;
        let held_back_first = match (self.in_order.front(), late.packets.first_key_value()) {
            (Some(a), Some((&(at, _), b))) => (at, b.behind) <= (a.at, late.delivered),
            (a, _) => a.is_none(),
        };
        let delivery = if held_back_first {
            late.packets
                .pop_first()
                .map(|((at, _), HeldBack { packet, .. })| Delivery { packet, at })
        } else {
            late.delivered += 1;
            self.pop_in_order()
        };
        let in_order = self.in_order.front().map_or(Time::MAX, |next| next.at);
        match self.late.as_ref().and_then(|late| late.packets.first_key_value()) {
            Some(((at, _), _)) => self.next_at = in_order.min(*at),
            None => {
                self.next_at = in_order;
                self.late = None;
            }
        }
        delivery
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    #[test]
    fn a_burst_that_comes_again_finds_its_room() {
        let mut flight = Flight::new();
        (0..40).for_each(|id| flight.push(Time::ZERO, packet(id, 0, 1500)));
        while flight.pop(Time::ZERO).is_some() {}
        assert_eq!(flight.in_order.capacity(), 0, "what is empty takes no memory");
        flight.push(Time::ZERO, packet(100, 0, 1500));
        assert!(flight.in_order.capacity() <= MANY, "what is short takes little");
        (101..110).for_each(|id| flight.push(Time::ZERO, packet(id, 0, 1500)));
        let room = flight.in_order.capacity();
        assert!(room >= 40);
        (110..140).for_each(|id| flight.push(Time::ZERO, packet(id, 0, 1500)));
        assert_eq!(flight.in_order.capacity(), room);
    }

    /// What is due: its number, and when it was.
    fn due(flight: &mut Flight<()>, now: Time) -> Vec<(u64, Time)> {
        let due = core::iter::from_fn(|| flight.pop(now));
        due.map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
    }

    #[test]
    fn what_waits_travels_behind_what_is_on_its_way_once_it_begins() {
        let at = Time::from_nanos;
        let mut flight = Flight::new();
        flight.push(at(10), packet(0, 0, 1500));
        flight.wait(packet(1, 0, 1500));
        flight.wait(packet(2, 0, 1500));
        assert_eq!((flight.len(), flight.next_at()), (1, at(10)));
        assert_eq!(
            due(&mut flight, Time::MAX),
            [(0, at(10))],
            "what waits is not due, whatever the time"
        );
        assert_eq!(flight.next_at(), Time::MAX);
        assert_eq!(flight.waiting(1).map(|packet| packet.id.0), Some(2));
        // The second would overtake the first.
        flight.begin(at(30));
        flight.begin(at(20));
        assert!(flight.waiting(0).is_none() && flight.has_in_order());
        assert_eq!(due(&mut flight, at(29)), []);
        assert_eq!(due(&mut flight, at(30)), [(1, at(30)), (2, at(30))]);
    }
}
