use fontis_base::Time;

use super::feedback::FeedbackSummary;

/// The queueing delay aimed at, in seconds, for a flow that delivers 100 Mbit/s. It falls with this
/// power of the rate, so that of two flows in one queue the slower aims higher: they meet at equal
/// rates, the faster the higher the power.
const AT_100_MBPS: f64 = 4e-3;
const EXPONENT: f64 = 0.7;
const RANGE: (f64, f64) = (1e-3, 300e-3);
/// No flow aims at a longer queue than this share of its round trip, in seconds within these
/// bounds. Where that rules, faster flows still aim lower, by this power.
const SHARE: f64 = 0.6;
const CAP_RANGE: (f64, f64) = (3e-3, 300e-3);
const CAP_EXPONENT: f64 = 0.4;
/// The share of a queue that overflowed, and of one that did not, that is aimed at.
const OF_OVERFLOW: f64 = 0.5;
const OF_ROOM: f64 = 0.8;
/// The least cap, and the seconds in which one doubles that an overflow set.
const LEAST_CAP: f64 = 0.5e-3;
const CAP_MEMORY: f64 = 20.0;
/// The same while a longer queue stands and does not overflow.
const ROOM_MEMORY: f64 = 2.0;
/// No rate is less, in bits per second.
const LEAST_RATE: f64 = 12e3;

/// The queueing delay that a flow aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueTarget {
    /// The most, in seconds: what the path or its buffer allows.
    cap: f64,
    capped_at: Time,
}

impl QueueTarget {
    pub(super) const fn new() -> Self {
        Self { cap: RANGE.1, capped_at: Time::ZERO }
    }

    /// The delay to aim at with a rate in bits per second if nothing bounds it, in seconds.
    pub(super) fn unbounded(rate: f64) -> f64 {
        let target = AT_100_MBPS * libm::pow(100e6 / rate.max(LEAST_RATE), EXPONENT);
        target.clamp(RANGE.0, RANGE.1)
    }

    /// The delay to aim at with a rate in bits per second, in seconds.
    pub(super) fn at(&self, rate: f64) -> f64 {
        let target = Self::unbounded(rate);
        target.min(self.cap * libm::pow(target / RANGE.1, CAP_EXPONENT))
    }

    /// A round has ended whose least queueing delay was `queue` seconds, and which did not overflow
    /// a buffer if it is `clear`.
    pub(super) fn on_round(&mut self, sample: &FeedbackSummary, queue: f64, clear: bool) {
        let passed = sample.now.since(core::mem::replace(&mut self.capped_at, sample.now));
        let most = (SHARE * sample.min_rtt.as_secs_f64()).clamp(CAP_RANGE.0, CAP_RANGE.1);
        let grown = |seconds: f64| self.cap * (1.0 + passed.as_secs_f64() / seconds);
        // Active queue management lets a queue stand for a while: what does not overflow at once
        // may yet.
        let room = if clear { (OF_ROOM * queue).min(grown(ROOM_MEMORY)) } else { 0.0 };
        self.cap = grown(CAP_MEMORY).max(room).min(most);
    }

    /// A queue of so many seconds overflowed.
    pub(super) fn on_overflow(&mut self, queue: f64) {
        self.cap = self.cap.min(OF_OVERFLOW * queue).max(LEAST_CAP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_flows_aim_higher_whatever_bounds_them() {
        let mut target = QueueTarget::new();
        for cap in [300e-3, 30e-3, 1e-3] {
            target.cap = cap;
            let rates = [1e5, 1e6, 1e7, 1e8, 1e9].map(|rate| target.at(rate));
            assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]), "{cap}: {rates:?}");
            assert!(rates[0] <= cap);
        }
    }

    #[test]
    fn a_buffer_that_overflows_is_not_filled_by_more_than_half() {
        let mut target = QueueTarget::new();
        target.on_overflow(20e-3);
        assert!(target.at(1e6) <= 10e-3);
    }
}
