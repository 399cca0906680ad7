use fontis_base::{Duration, Time};

use super::feedback::FeedbackSummary;

/// How often a queue is emptied on purpose so that every flow sees the path's true delay: in time,
/// and in round trips, at least.
const EVERY: (Duration, u64) = (Duration::from_secs(3), 12);
/// The share of the rate that is sent meanwhile, and for how many times the queue's length.
pub(super) const SHARE: f64 = 0.4;
const SPAN: f64 = 2.5;
/// The share of the expected fall of the delay that a queue falls by at least.
const LEAST_FALL: f64 = 0.3;
/// Delays that a statement takes.
const LEAST_SAMPLES: u32 = 4;
/// The share of the longest time that makes one long.
const LONG: f64 = 0.5;
/// The share that shows that all who fill it sent less.
const FALL: f64 = 0.6;

/// The emptying of a queue: when it is due, and what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Drain {
    /// The least one-way delay since the last one began, and when it was seen. Whoever sees a queue
    /// that others empty waits for as long as they do: so all come to empty it at once.
    least: Option<(i64, Time)>,
    until: Time,
    watch: Option<Box<Watch>>,
    /// The first packet of the last one, and the one behind its last.
    packets: (u64, u64),
}

/// The packets that are sent during one, and the delays that they meet.
#[derive(Clone, Copy, Debug)]
struct Watch {
    first: u64,
    /// The packet behind the last.
    end: Option<u64>,
    /// The queueing delay before, and by how much it should fall if the queue is this flow's; in
    /// seconds.
    queue: f64,
    expected: f64,
    least: Option<i64>,
    /// How many delays are known.
    samples: u32,
    /// Whether it lasts long enough to tell a queue from a longer path.
    is_long: bool,
}

impl Drain {
    /// Takes the delays of a feedback.
    pub(super) fn observe(&mut self, sample: &FeedbackSummary) {
        for (number, delay) in &sample.one_way_ns {
            if self.least.is_none_or(|(least, _)| *delay <= least) {
                self.least = Some((*delay, sample.now));
            }
            if let Some(watch) = &mut self.watch
                && *number >= watch.first
                && watch.end.is_none_or(|end| *number < end)
            {
                watch.least = Some(watch.least.map_or(*delay, |least| least.min(*delay)));
                watch.samples += 1;
            }
        }
    }

    /// Whether one is under way.
    pub(super) fn is_on(&self, now: Time) -> bool {
        now < self.until
    }

    /// How long ago the last one ended.
    pub(super) fn age(&self, now: Time) -> Duration {
        now.since(self.until)
    }

    /// Whether the path has shown no lesser delay for so long that it is time for one; `later` as a
    /// share of the time that others wait, in hundredths.
    pub(super) fn is_due(&self, sample: &FeedbackSummary, later: u64) -> bool {
        let every = sample.at_least(EVERY).mul_ratio(100 + later, 100);
        self.least.is_some_and(|(_, at)| sample.now.since(at) > every)
    }

    /// Whether what comes of the last one is not known yet.
    pub(super) const fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// The queueing delay before the last one, in seconds, while what comes of it is not known.
    pub(super) fn queue(&self) -> f64 {
        self.watch.as_ref().map_or(0.0, |watch| watch.queue)
    }

    /// Whether all packets that tell what comes of the last one have come.
    pub(super) fn is_told(&self, largest: u64) -> bool {
        let end = self.watch.as_ref().and_then(|watch| watch.end);
        end.is_some_and(|end| largest >= end)
    }

    /// What comes of the last one says nothing.
    pub(super) fn forget(&mut self) {
        self.watch = None;
    }

    /// Whether this packet was sent during the last one.
    pub(super) const fn covers(&self, number: u64) -> bool {
        number >= self.packets.0 && number < self.packets.1
    }

    /// Begins one for a queueing delay of `queue` seconds; how long it lasts. `shortest` and
    /// `longest` bound that, in seconds.
    pub(super) fn begin(
        &mut self,
        sample: &FeedbackSummary,
        queue: f64,
        (shortest, longest): (f64, f64),
    ) -> Duration {
        let span = (SPAN * queue).clamp(shortest, longest);
        let expected = queue.min((1.0 - SHARE) * span);
        let first = sample.next_number;
        let is_long = shortest >= LONG * longest;
        let watch = Watch { first, end: None, queue, expected, least: None, samples: 0, is_long };
        let span = Duration::from_secs_f64(span);
        let (until, packets) = (sample.now + span, (first, u64::MAX));
        *self = Self { least: None, until, watch: Some(Box::new(watch)), packets };
        span
    }

    /// The outcome of the last one, once the packets sent during it are reported. `queueing` gives
    /// the queueing delay of a one-way delay; a queue of less than `visible` says nothing. Both are
    /// in seconds.
    pub(super) fn outcome(
        &mut self,
        sample: &FeedbackSummary,
        queueing: impl Fn(i64) -> f64,
        visible: f64,
    ) -> Option<Outcome> {
        let watch = self.watch.as_mut()?;
        if sample.now < self.until {
            return None;
        }
        let end = *watch.end.get_or_insert(sample.next_number);
        self.packets.1 = end;
        if sample.largest < end {
            return None;
        }
        let Watch { queue, expected, least, samples, is_long, .. } = *self.watch.take()?;
        let least = least.filter(|_| samples >= LEAST_SAMPLES && queue > visible)?;
        let fall = queue - queueing(least);
        if fall > FALL * expected {
            Some(Outcome::Fell)
        } else if fall >= LEAST_FALL * expected {
            Some(Outcome::Shared)
        } else if is_long {
            Some(Outcome::Stayed(least))
        } else {
            Some(Outcome::Doubtful)
        }
    }
}

/// What came of sending less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The delay fell as that of a queue does.
    Fell,
    /// The delay fell, but by less than if all had sent less.
    Shared,
    /// The delay stayed, but less was sent for a short time only.
    Doubtful,
    /// The delay stayed: it is no queue of those who sent less. It is this, one way.
    Stayed(i64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empties a queue of 20 ms; its packets meet one of so many milliseconds.
    fn outcome(met: &[i64], shortest: f64) -> Option<Outcome> {
        let mut drain = Drain::default();
        let begin = FeedbackSummary { next_number: 100, ..FeedbackSummary::example(0) };
        let span = drain.begin(&begin, 20e-3, (shortest, 50e-3));
        assert_eq!(span, Duration::from_millis(50));
        let delays = (100..).zip(met).map(|(number, ms)| (number, ms * 1_000_000)).collect();
        let sample = FeedbackSummary {
            one_way_ns: delays,
            largest: 100 + met.len() as u64,
            next_number: 105,
            ..FeedbackSummary::example(100)
        };
        drain.observe(&sample);
        let queueing = |delay: i64| delay as f64 / 1e9;
        assert_eq!(drain.outcome(&sample, queueing, 1e-3), None, "its last packets are under way");
        let sample = FeedbackSummary { largest: 105, ..FeedbackSummary::example(110) };
        drain.outcome(&sample, queueing, 1e-3)
    }

    #[test]
    fn a_queue_falls_and_a_longer_path_does_not() {
        assert_eq!(outcome(&[20, 15, 8, 2], 5e-3), Some(Outcome::Fell));
        assert_eq!(outcome(&[21, 20, 20, 20], 25e-3), Some(Outcome::Stayed(20_000_000)));
        assert_eq!(outcome(&[21, 20, 20, 20], 5e-3), Some(Outcome::Doubtful));
        assert_eq!(outcome(&[20, 17, 14, 11], 25e-3), Some(Outcome::Shared));
        assert_eq!(outcome(&[20, 20], 25e-3), None, "two delays say nothing");
    }
}
