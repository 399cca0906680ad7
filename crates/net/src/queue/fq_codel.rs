use std::collections::{BTreeMap, VecDeque};

use fontis_base::{Observer, Packet, Time};
use slab::Slab;

use crate::queue::bucket::bucket_of;
use crate::queue::codel::CoDel;
use crate::queue::limit::Limit;
use crate::queue::longest::Longest;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};

/// Flow queue CoDel (RFC 8290): flows are spread over queues that take turns by deficit round
/// robin, new ones first, each kept short by CoDel.
#[derive(Clone, Debug)]
pub struct FqCoDel<P> {
    /// The queues that have packets or wait for their turn to end, and no others.
    queues: Slab<SubQueue<P>>,
    /// Where they stand, by the bucket that each is for.
    places: BTreeMap<u32, usize>,
    /// Places of those that are new, and of the others, in the order of their turns.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Of buckets.
    longest: Longest<u32>,
    packets: usize,
    bytes: u64,
    limit: Limit,
    options: QueueOptions,
    ecn: bool,
    salt: u64,
}

#[derive(Clone, Debug)]
struct SubQueue<P> {
    bucket: u32,
    codel: CoDel<P>,
    deficit: i64,
}

/// How many packets a full queue loses at once, at most half of what it has (RFC 8290 section
/// 4.1.3).
const BATCH: usize = 64;

impl<P> FqCoDel<P> {
    /// An empty queue. Which flows share a queue follows from `salt`.
    pub fn new(limit: Limit, options: &QueueOptions, salt: u64) -> Self {
        Self {
            queues: Slab::new(),
            places: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            longest: Longest::new(0),
            packets: 0,
            bytes: 0,
            limit,
            options: options.clone(),
            ecn: false,
            salt,
        }
    }

    /// The same queue, but it marks where it can.
    pub fn with_ecn(self) -> Self {
        Self { ecn: true, ..self }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let bucket = bucket_of(packet.flow, self.salt, self.options.buckets);
        let place = match self.places.get(&bucket) {
            Some(place) => *place,
            None => self.begin(bucket),
        };
        let queue = &mut self.queues[place];
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        queue.codel.enqueue(now, packet, observer);
        self.longest.grown(queue.codel.bytes());
        if !self.limit.holds(self.packets, self.bytes) {
            self.drop_from_fattest(now, observer);
        }
    }

    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        let quantum = self.quantum();
        loop {
            let from_new = !self.new.is_empty();
            let others_wait = !self.old.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let queue = &mut self.queues[place];
            if queue.deficit <= 0 {
                queue.deficit += quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let (before, bytes) = (queue.codel.len(), queue.codel.bytes());
            let packet = queue.codel.dequeue(now, observer);
            self.packets -= before - queue.codel.len();
            self.bytes -= bytes - queue.codel.bytes();
            match packet {
                Some(packet) => {
                    queue.deficit -= i64::from(packet.size);
                    return Some(packet);
                }
                // A new queue that is empty becomes an old one, or flows could starve the others by
                // pausing.
                None if from_new && others_wait => {
                    self.new.pop_front();
                    self.old.push_back(place);
                }
                None => {
                    list.pop_front();
                    self.places.remove(&queue.bucket);
                    self.queues.remove(place);
                }
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a turn. Without any no turn would ever come.
    fn quantum(&self) -> i64 {
        i64::from(self.options.quantum.max(1))
    }

    /// A new queue for a bucket that had none: its place.
    fn begin(&mut self, bucket: u32) -> usize {
        let codel = CoDel::new(Limit::UNLIMITED).with_options(&self.options);
        let codel = if self.ecn { codel.with_ecn() } else { codel };
        let deficit = self.quantum();
        let place = self.queues.insert(SubQueue { bucket, codel, deficit });
        self.places.insert(bucket, place);
        self.new.push_back(place);
        place
    }

    fn drop_from_fattest(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let bytes = |place: &usize| self.queues[*place].codel.bytes();
        let Some(bucket) = self.longest.choose(&self.places, bytes) else { return };
        let queue = &mut self.queues[self.places[&bucket]];
        for _ in 0..BATCH.min(queue.codel.len().div_ceil(2)) {
            let Some(packet) = queue.codel.take(observer) else { return };
            self.packets -= 1;
            self.bytes -= u64::from(packet.size);
            observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};
    use fontis_base::Duration;

    fn queue(limit: Limit) -> FqCoDel<()> {
        FqCoDel::new(limit, &QueueOptions::default(), 7)
    }

    #[test]
    fn a_sparse_flow_overtakes_a_flood() {
        let mut queue = queue(Limit::UNLIMITED);
        for id in 0..100 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1500), &mut ());
        }
        // The flood's first turn is over.
        queue.dequeue(Time::ZERO, &mut ());
        queue.dequeue(Time::ZERO, &mut ());
        queue.enqueue(Time::ZERO, packet(1000, 2, 100), &mut ());
        assert_eq!(queue.dequeue(Time::ZERO, &mut ()).map(|p| p.id.0), Some(1000));
    }

    #[test]
    fn a_quantum_of_nothing_sends_all_the_same() {
        let options = QueueOptions { quantum: 0, ..QueueOptions::default() };
        let mut queue = FqCoDel::new(Limit::UNLIMITED, &options, 7);
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, id as u32 % 2, 1500), &mut ());
        }
        let sent = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut ()));
        assert_eq!(sent.count(), 4);
    }

    #[test]
    fn only_the_flow_that_stands_is_dropped_from() {
        let mut queue = queue(Limit::UNLIMITED);
        let mut log = Log::default();
        for ms in 0..2_000 {
            let now = Time::ZERO + Duration::from_millis(ms);
            while queue.len() < 50 {
                queue.enqueue(now, packet(1, 1, 1500), &mut log);
            }
            if ms % 10 == 0 {
                queue.enqueue(now, packet(2, 2, 200), &mut log);
            }
            queue.dequeue(now, &mut log);
        }
        assert!(log.dropped.len() > 20 && log.dropped.iter().all(|(flow, _)| *flow == 1));
    }

    #[test]
    fn an_overflow_takes_half_of_the_fattest_queue_from_its_head() {
        let mut queue = queue(Limit::Packets(10));
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(100, 2, 1500), &mut log);
        for id in 0..10 {
            queue.enqueue(Time::ZERO, packet(id, 1, 1500), &mut log);
        }
        assert_eq!(log.dropped.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((queue.len(), queue.bytes()), (6, 9000));
    }
}
