use core::str::FromStr;

use fontis_base::{Duration, Time};

use crate::error::SpecError;

/// From a time on, a link has another delay. Reads `"TIME:DELAY"`, as in `"10s:50ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayChange {
    /// When it happens. What has left the line before keeps its delay.
    pub at: Time,
    /// The one-way delay from then on.
    pub delay: Duration,
}

impl FromStr for DelayChange {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let Some((at, delay)) = text.split_once(':') else {
            return Err(SpecError::Form {
                text: text.to_owned(),
                kind: "a change of delay",
                form: "TIME:DELAY",
                example: "10s:50ms",
            });
        };
        Ok(Self { at: Time::ZERO + at.parse()?, delay: delay.parse()? })
    }
}

/// The changes of a link's delay. A packet never overtakes another by them: after a shorter delay
/// begins, packets arrive together with the last that had the longer one, as on a path whose queue
/// is emptied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelaySchedule {
    changes: Vec<DelayChange>,
}

impl DelaySchedule {
    /// A schedule of these changes, in any order; of two at the same time, the later given one
    /// holds.
    pub fn new(changes: impl IntoIterator<Item = DelayChange>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|change| change.at);
        Self { changes }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The delay at a time of a link that begins with `first`.
    pub fn at(&self, time: Time, first: Duration) -> Duration {
        let passed = self.changes.partition_point(|change| change.at <= time);
        passed.checked_sub(1).map_or(first, |last| self.changes[last].delay)
    }

    /// The least delay of a link that begins with `first`.
    pub(crate) fn least(&self, first: Duration) -> Duration {
        self.changes.iter().fold(first, |least, change| least.min(change.delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_holds_until_the_next() {
        let millis = Duration::from_millis;
        let changes = ["20ms:5ms", "10ms:50ms"].map(|text| text.parse().expect("a change"));
        let schedule = DelaySchedule::new(changes);
        let at = |time| schedule.at(Time::ZERO + millis(time), millis(7));
        assert_eq!([0, 9, 10, 19, 20, 99].map(at), [7, 7, 50, 50, 5, 5].map(millis));
        assert_eq!(schedule.least(millis(7)), millis(5));
        assert!("10ms".parse::<DelayChange>().unwrap_err().to_string().contains("TIME:DELAY"));
    }
}
