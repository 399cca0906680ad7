use core::str::FromStr;

use fontis_base::{Rate, Time};

use crate::error::SpecError;

/// From a time on, a link has another rate. Reads `"TIME:RATE"`, as in `"10s:10mbit"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// When it happens. A packet that is on the line then is finished at the old rate.
    pub at: Time,
    /// The rate from then on; at rate zero the line stands still until the next change.
    pub rate: Rate,
}

impl FromStr for RateChange {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let Some((at, rate)) = text.split_once(':') else {
            return Err(SpecError::Form {
                text: text.to_owned(),
                kind: "a change of rate",
                form: "TIME:RATE",
                example: "10s:10mbit",
            });
        };
        Ok(Self { at: Time::ZERO + at.parse()?, rate: rate.parse()? })
    }
}

/// The changes of a link's rate, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Latest first, so that the next one is taken from the end.
    changes: Vec<RateChange>,
}

impl Schedule {
    /// A schedule of these changes, in any order; of two at the same time, the later given one
    /// holds.
    pub fn new(changes: impl IntoIterator<Item = RateChange>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|change| change.at);
        changes.reverse();
        Self { changes }
    }

    /// Whether nothing will change any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// When a line that could send at `from` and has the rate `rate` can really begin, and at which
    /// rate; `None` if it stands still forever.
    pub(crate) fn begin(&self, from: Time, mut rate: Rate) -> Option<(Time, Rate)> {
        let mut begin = from;
        for change in self.changes.iter().rev() {
            if change.at > begin {
                if rate != Rate::ZERO {
                    break;
                }
                begin = change.at;
            }
            rate = change.rate;
        }
        (rate != Rate::ZERO).then_some((begin, rate))
    }

    /// The mean rate in bit/s between two times of a line that begins at `rate`.
    pub fn mean(&self, from: Time, to: Time, rate: Rate) -> f64 {
        let (mut at, mut rate, mut bits) = (Time::ZERO, rate, 0.0);
        let end = RateChange { at: to, rate };
        for change in self.changes.iter().rev().chain([&end]) {
            let (begin, until) = (at.max(from), change.at.min(to));
            bits += rate.as_bps() as f64 * until.since(begin).as_secs_f64();
            (at, rate) = (change.at, change.rate);
        }
        let span = to.since(from).as_secs_f64();
        if span > 0.0 { bits / span } else { rate.as_bps() as f64 }
    }

    /// Forgets the changes up to `now`.
    pub(crate) fn forget_until(&mut self, now: Time) {
        while self.changes.last().is_some_and(|change| change.at <= now) {
            self.changes.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontis_base::Duration;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_line_begins_at_the_rate_of_that_time() {
        let [fast, slow] = [Rate::from_mbps(100), Rate::from_mbps(10)];
        let schedule =
            Schedule::new(["20s:100mbit", "10s:10mbit"].map(|text| text.parse().unwrap()));
        assert_eq!(schedule.begin(at(9), fast), Some((at(9), fast)));
        assert_eq!(schedule.begin(at(10), fast), Some((at(10), slow)));
        assert_eq!(schedule.begin(at(30), fast), Some((at(30), fast)));
    }

    #[test]
    fn the_mean_rate_weighs_each_by_its_time() {
        let schedule = Schedule::new(["10s:10mbit", "20s:0"].map(|text| text.parse().unwrap()));
        let mean = |from, to| schedule.mean(at(from), at(to), Rate::from_mbps(100));
        assert_eq!([mean(0, 10), mean(5, 15), mean(0, 30)], [100e6, 55e6, 1.1e9 / 30.0]);
    }

    #[test]
    fn a_line_at_rate_zero_waits_for_the_next_change() {
        let schedule =
            Schedule::new(["10s:0", "20s:1mbit", "30s:0"].map(|text| text.parse().unwrap()));
        let rate = Rate::from_mbps(1);
        assert_eq!(schedule.begin(at(12), rate), Some((at(20), rate)));
        assert_eq!(schedule.begin(at(31), rate), None);
    }
}
