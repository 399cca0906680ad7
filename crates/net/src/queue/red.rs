use std::collections::VecDeque;

use fontis_base::distance::QUEUED_PACKET;
use fontis_base::{Duration, Ecn, Observer, Packet, Stream, Time};

use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};

/// Random early detection (Floyd and Jacobson, 1993) in its gentle form (Floyd, 2000): between two
/// thresholds of the mean queue, arriving packets are dropped or marked with a probability that
/// grows linearly.
///
/// The mean counts packets if the buffer does, else bytes.
#[derive(Clone, Debug)]
pub struct Red<P> {
    packets: VecDeque<Packet<P>>,
    bytes: u64,
    limit: Limit,
    min: f64,
    max: f64,
    max_probability: f64,
    weight: f64,
    ecn: bool,
    /// The mean queue.
    mean: f64,
    /// Packets since the last drop, -1 below the lower threshold ("count").
    since_drop: i64,
    idle_since: Option<Time>,
    /// The time that a packet takes on the line, learnt from busy periods, for the decay while
    /// idle.
    packet_time: Option<Duration>,
    last_dequeue: Option<Time>,
    stream: Stream,
}

/// Why a packet was dropped.
const EARLY: &str = "early detection";

impl<P> Red<P> {
    /// An empty queue that drops.
    pub fn new(limit: Limit, options: &QueueOptions, stream: Stream) -> Self {
        let whole = quantity(limit);
        let set = |threshold: Option<Limit>, share: f64| threshold.map_or(whole * share, quantity);
        let min = set(options.min_threshold, 1.0 / 6.0);
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
            min,
            max: set(options.max_threshold, 0.5).max(min),
            max_probability: options.max_probability.get(),
            weight: options.weight.clamp(0.0, 1.0),
            ecn: false,
            mean: 0.0,
            since_drop: -1,
            idle_since: Some(Time::ZERO),
            packet_time: None,
            last_dequeue: None,
            stream,
        }
    }

    /// The same queue, but it marks where it can.
    pub fn with_ecn(self) -> Self {
        Self { ecn: true, ..self }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        mut packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        self.average(now);
        let bytes = self.bytes.saturating_add(u64::from(packet.size));
        if !self.limit.holds(self.packets.len() + 1, bytes) {
            self.since_drop = 0;
            return observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
        if self.is_chosen() {
            // Above twice the upper threshold even marking is not enough (Floyd, 2000).
            if self.ecn && packet.ecn != Ecn::NotEct && self.mean < 2.0 * self.max {
                packet.ecn = Ecn::Ce;
                observer.marked(now, ELEMENT, &packet);
            } else {
                return observer.dropped(now, ELEMENT, &packet, EARLY);
            }
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
    }

    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        let packet = self.packets.pop_front()?;
        if let Some(packet) = self.packets.get(QUEUED_PACKET) {
            observer.nears(packet);
        }
        self.bytes -= u64::from(packet.size);
        if let Some(last) = self.last_dequeue {
            self.packet_time = Some(now.since(last));
        }
        if self.packets.is_empty() {
            self.idle_since = Some(now);
            self.last_dequeue = None;
        } else {
            self.last_dequeue = Some(now);
        }
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves the mean by one arrival; for a time of idleness, as if as many packets as fit had
    /// found it empty.
    fn average(&mut self, now: Time) {
        if self.packets.is_empty() {
            if let (Some(since), Some(packet)) = (self.idle_since.take(), self.packet_time) {
                let missed = now.since(since).as_secs_f64() / packet.as_secs_f64().max(1e-12);
                self.mean *= libm::pow(1.0 - self.weight, missed);
            }
            self.idle_since = None;
        }
        let queue = match self.limit {
            Limit::Packets(_) => self.packets.len() as f64,
            Limit::Bytes(_) => self.bytes as f64,
        };
        self.mean += self.weight * (queue - self.mean);
    }

    /// Whether the arriving packet is to be dropped or marked.
    fn is_chosen(&mut self) -> bool {
        let base = if self.mean < self.min {
            self.since_drop = -1;
            return false;
        } else if self.mean < self.max {
            self.max_probability * (self.mean - self.min) / (self.max - self.min)
        } else if self.mean < 2.0 * self.max {
            let over = (self.mean - self.max) / self.max;
            self.max_probability + over * (1.0 - self.max_probability)
        } else {
            self.since_drop = 0;
            return true;
        };
        self.since_drop += 1;
        // Makes the gaps between drops uniform instead of geometric.
        let left = 1.0 - self.since_drop as f64 * base;
        let probability = if left > 0.0 { base / left } else { 1.0 };
        if self.stream.unit() < probability {
            self.since_drop = 0;
            return true;
        }
        false
    }
}

fn quantity(limit: Limit) -> f64 {
    match limit {
        Limit::Packets(packets) => packets as f64,
        Limit::Bytes(size) => size.as_bytes() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{Log, packet};

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Holds a queue of 60 packets at `standing`, a packet a millisecond; drops per arrival once
    /// the mean has settled.
    fn drop_rate(standing: usize) -> f64 {
        let options = QueueOptions { weight: 0.02, ..QueueOptions::default() };
        let mut queue = Red::new(Limit::Packets(60), &options, Stream::new(1, "red"));
        let (mut arrivals, mut drops) = (0, 0);
        for ms in 0..60_000 {
            while queue.len() < standing {
                let mut log = Log::default();
                queue.enqueue(at(ms), packet(ms, 0, 1000), &mut log);
                if ms > 2_000 {
                    arrivals += 1;
                    drops += log.dropped.len();
                }
            }
            queue.dequeue(at(ms), &mut ());
        }
        drops as f64 / f64::from(arrivals)
    }

    #[test]
    fn the_probability_grows_linearly_between_the_thresholds() {
        // Thresholds 10 and 30, at most 10 %. Gaps are uniform on 1…1/p - 1, so that the rate is
        // 2p. An arrival finds a packet less than the standing queue.
        assert_eq!(drop_rate(9), 0.0);
        for standing in [16, 21, 26] {
            let p = 0.1 * (standing as f64 - 1.0 - 10.0) / 20.0;
            let (got, want) = (drop_rate(standing), 2.0 * p);
            assert!((got / want - 1.0).abs() < 0.05, "{standing}: {got}, not {want}");
        }
    }

    #[test]
    fn an_idle_time_lets_the_mean_decay() {
        let options = QueueOptions { weight: 0.1, ..QueueOptions::default() };
        let mut queue = Red::new(Limit::Packets(1000), &options, Stream::new(1, "red"));
        for id in 0..100 {
            queue.enqueue(at(0), packet(id, 0, 1000), &mut ());
        }
        let before = queue.mean;
        for ms in 1..=100 {
            queue.dequeue(at(ms), &mut ());
        }
        // Ten packet times.
        queue.enqueue(at(110), packet(100, 0, 1000), &mut ());
        let want = before * 0.9f64.powi(11);
        assert!((queue.mean / want - 1.0).abs() < 1e-9, "{} not {want}", queue.mean);
    }

    #[test]
    fn with_ecn_it_marks_what_can_be_marked() {
        let options = QueueOptions { weight: 1.0, ..QueueOptions::default() };
        let mut queue = Red::new(Limit::Packets(60), &options, Stream::new(1, "red")).with_ecn();
        let mut log = Log::default();
        for id in 0..40 {
            let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(at(0), Packet { ecn, ..packet(id, 0, 1000) }, &mut log);
        }
        assert!(!log.marked.is_empty() && log.marked.iter().all(|id| id % 2 == 0));
        assert!(
            !log.dropped.is_empty()
                && log.dropped.iter().all(|(id, why)| id % 2 == 1 && *why == EARLY)
        );
    }
}
