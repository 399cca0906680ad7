use std::collections::VecDeque;

use fontis_base::distance::QUEUED_PACKET;
use fontis_base::{Duration, Ecn, Observer, Packet, Time};

use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};

/// Controlled delay (RFC 8289) over one FIFO: when packets have waited more than a target (5 ms)
/// for an interval (100 ms), it drops from the head at a rate that grows with the square root of
/// the number of drops, until the standing queue is gone.
///
/// With ECN it marks those packets whose transport understands marks, and keeps them.
#[derive(Clone, Debug)]
pub struct CoDel<P> {
    packets: VecDeque<(Time, Packet<P>)>,
    bytes: u64,
    limit: Limit,
    ecn: bool,
    /// The standing queue that is accepted ("TARGET", RFC 8289 section 4.4).
    target: Duration,
    /// The order of a worst-case round-trip time ("INTERVAL", section 4.3).
    interval: Duration,
    /// When the sojourn time, if it stays above the target, will have done so for an interval.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// A queue of this many bytes is never too long ("MAXPACKET", section 5.5).
const MAX_PACKET: u64 = 1500;
/// Why a packet was dropped: the queue has been standing for too long.
const STANDING: &str = "standing queue";

impl<P> CoDel<P> {
    /// An empty queue that drops.
    pub fn new(limit: Limit) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
            ecn: false,
            target: QueueOptions::default().target,
            interval: QueueOptions::default().interval,
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The same queue with another target and interval.
    pub fn with_options(self, options: &QueueOptions) -> Self {
        Self { target: options.target, interval: options.interval, ..self }
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
        let bytes = self.bytes.saturating_add(u64::from(packet.size));
        if self.limit.holds(self.packets.len() + 1, bytes) {
            self.bytes = bytes;
            self.packets.push_back((now, packet));
        } else {
            observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
    }

    /// The routine "deque" of RFC 8289 section 5.5.
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        let mut ok_to_drop = self.judge(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked = self.signal(now, observer);
                if !marked {
                    ok_to_drop = self.judge(now);
                }
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
                if marked {
                    break;
                }
            }
        } else if ok_to_drop {
            if !self.signal(now, observer) {
                self.judge(now);
            }
            self.dropping = true;
            // "If min went above TARGET close to when it last went below, assume that the drop rate
            // that controlled the queue on the last cycle is a good starting point to control it
            // now."
            let delta = self.count - self.last_count;
            let recent = now.since(self.drop_next) < self.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        self.take(observer)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the routine "dodequeue" finds out of the head: whether it may be dropped.
    fn judge(&mut self, now: Time) -> bool {
        let Some((entered, head)) = self.packets.front() else {
            self.first_above = None;
            return false;
        };
        let others = self.bytes - u64::from(head.size);
        if now.since(*entered) < self.target || others <= MAX_PACKET {
            self.first_above = None;
            false
        } else {
            now >= *self.first_above.get_or_insert(now + self.interval)
        }
    }

    /// Tells the sender of the standing queue: marks the head, or drops it; whether it was marked.
    fn signal(&mut self, now: Time, observer: &mut impl Observer<P>) -> bool {
        match self.packets.front_mut() {
            Some((_, head)) if self.ecn && head.ecn != Ecn::NotEct => {
                head.ecn = Ecn::Ce;
                observer.marked(now, ELEMENT, head);
                true
            }
            _ => {
                if let Some(head) = self.take(observer) {
                    observer.dropped(now, ELEMENT, &head, STANDING);
                }
                false
            }
        }
    }

    /// Takes the head, whatever may be said of it.
    pub(super) fn take(&mut self, observer: &mut impl Observer<P>) -> Option<Packet<P>> {
        if let Some((_, packet)) = self.packets.get(QUEUED_PACKET + 1) {
            observer.nears(packet);
        }
        let (_, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// "the next drop time in inverse proportion to the square root of the number of drops"
    /// (section 3).
    fn control_law(&self, from: Time) -> Time {
        // The square root is exactly rounded by IEEE 754, so this is the same on every machine.
        from + Duration::from_secs_f64(self.interval.as_secs_f64() / f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};

    const SERVICE: Duration = Duration::from_millis(1);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Serves one packet a millisecond and keeps `standing` packets in the queue for `millis`.
    fn serve(queue: &mut CoDel<()>, log: &mut Log, standing: usize, millis: u64) {
        for ms in 0..millis {
            while queue.len() < standing {
                queue.enqueue(at(ms), packet(ms, 0, 1500), log);
            }
            queue.dequeue(at(ms), log);
        }
    }

    #[test]
    fn a_queue_below_the_target_is_left_alone() {
        let mut queue = CoDel::new(Limit::UNLIMITED);
        let mut log = Log::default();
        serve(&mut queue, &mut log, 4, 5_000);
        assert_eq!(log.dropped, []);
    }

    #[test]
    fn a_short_burst_is_left_alone() {
        let mut queue = CoDel::new(Limit::UNLIMITED);
        let mut log = Log::default();
        serve(&mut queue, &mut log, 90, 1);
        for ms in 1..200 {
            queue.dequeue(at(ms), &mut log);
        }
        assert_eq!(log.dropped, []);
    }

    #[test]
    fn a_standing_queue_is_dropped_from_by_the_control_law() {
        let mut queue = CoDel::new(Limit::UNLIMITED);
        let mut log = Log::default();
        serve(&mut queue, &mut log, 50, 2_000);
        // The first drop comes at 105 ms, and n drops after it take the sum of 100 ms/sqrt(i),
        // which is 100 ms · (2·sqrt(n) + ζ(1/2)), in the 1895 ms that are left.
        let want = ((18.95 + 1.4604f64) / 2.0).powi(2);
        let drops = log.dropped.len() as f64;
        assert!((drops / want - 1.0).abs() < 0.02, "{drops}, not {want}");
        assert!(log.dropped.iter().all(|(_, why)| *why == STANDING));
    }

    #[test]
    fn a_sender_that_backs_off_is_held_near_the_target() {
        // Increases its window by a packet a round trip (20 ms and the queue), halves it at each
        // drop.
        let mut queue = CoDel::new(Limit::UNLIMITED);
        let mut log = Log::default();
        let mut window = 20.0f64;
        let mut in_flight: VecDeque<Time> = VecDeque::new();
        let (mut sojourn, mut samples, mut drops, mut sent) = (0.0, 0u32, 0, 0u64);
        for ms in 0..200_000 {
            while in_flight.front().is_some_and(|back| *back <= at(ms)) {
                in_flight.pop_front();
                window += 1.0 / window;
            }
            while (queue.len() + in_flight.len()) < window as usize {
                sent += 1;
                queue.enqueue(at(ms), packet(sent, 0, 1500), &mut log);
            }
            let waited = queue.packets.front().map(|(entered, _)| at(ms).since(*entered));
            if queue.dequeue(at(ms), &mut log).is_some() {
                in_flight.push_back(at(ms) + SERVICE * 20);
            }
            if log.dropped.len() > drops {
                drops = log.dropped.len();
                window = (window / 2.0).max(2.0);
            }
            if let (Some(waited), true) = (waited, ms > 10_000) {
                sojourn += waited.as_secs_f64();
                samples += 1;
            }
        }
        let mean = sojourn / f64::from(samples);
        assert!(drops > 100, "{drops} drops");
        assert!((0.0005..0.0075).contains(&mean), "mean sojourn {mean} s");
    }

    #[test]
    fn with_ecn_it_marks_what_can_be_marked_and_drops_the_rest() {
        for (ecn, drops, marks) in [(Ecn::Ect0, false, true), (Ecn::NotEct, true, false)] {
            let mut queue = CoDel::new(Limit::UNLIMITED).with_ecn();
            let mut log = Log::default();
            for ms in 0..1_000 {
                while queue.len() < 50 {
                    queue.enqueue(at(ms), Packet { ecn, ..packet(ms, 0, 1500) }, &mut log);
                }
                assert!(queue.dequeue(at(ms), &mut log).is_some());
            }
            assert_eq!(
                (!log.dropped.is_empty(), !log.marked.is_empty()),
                (drops, marks),
                "{ecn:?}"
            );
        }
    }
}
