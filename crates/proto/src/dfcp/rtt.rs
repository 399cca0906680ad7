use fontis_base::Duration;

use crate::rate::feedback::feedback_interval;

/// The round-trip time as RFC 6298 smooths it, and its minimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    least: Option<Duration>,
    latest: Option<Duration>,
}

impl Rtt {
    pub(super) const fn new() -> Self {
        Self { smoothed: None, variation: Duration::ZERO, least: None, latest: None }
    }

    /// Takes a first guess that the first real sample replaces.
    pub(super) fn guess(&mut self, rtt: Duration) {
        if self.latest.is_none() {
            self.smoothed = Some(rtt);
            self.variation = rtt / 4;
        }
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, rtt: Duration) {
        let smoothed = match (self.smoothed, self.latest) {
            (Some(smoothed), Some(_)) => {
                let error = if smoothed > rtt { smoothed - rtt } else { rtt - smoothed };
                self.variation = self.variation.mul_ratio(3, 4) + error / 4;
                smoothed.mul_ratio(7, 8) + rtt / 8
            }
            _ => {
                self.variation = rtt / 4;
                rtt
            }
        };
        self.smoothed = Some(smoothed);
        self.latest = Some(rtt);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    /// Smoothed; a guess of 100 ms before anything is known.
    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(Duration::from_millis(100))
    }

    pub(super) fn least(&self) -> Duration {
        self.least.unwrap_or_else(|| self.smoothed())
    }

    pub(super) const fn is_known(&self) -> bool {
        self.smoothed.is_some()
    }

    /// How long an answer may take before something is taken to be wrong.
    pub(super) fn timeout(&self) -> Duration {
        if !self.is_known() {
            return Duration::from_millis(300);
        }
        let smoothed = self.smoothed();
        smoothed
            + (self.variation * 4).max(Duration::from_millis(2))
            + feedback_interval(smoothed) * 2
    }
}
