use core::str::FromStr;

use fontis_base::{Duration, Time};

use crate::error::SpecError;

/// A time during which a link loses all that enters it: once, or again and again.
///
/// Reads `"AT:FOR"` and `"AT:FOR:EVERY"`, as in `"10s:2s:30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    at: Time,
    length: Duration,
    every: Option<Duration>,
}

impl Outage {
    /// A single outage during [at, at + length).
    pub const fn once(at: Time, length: Duration) -> Self {
        Self { at, length, every: None }
    }

    /// An outage that begins at `at` and comes back with period `every`; it never ends if its
    /// length reaches the period.
    pub const fn repeated(at: Time, length: Duration, every: Duration) -> Self {
        Self { at, length, every: Some(every) }
    }

    /// When it begins and ends, if it comes once.
    pub fn only(&self) -> Option<(Time, Time)> {
        self.every.is_none().then(|| (self.at, self.at + self.length))
    }

    /// Whether the link is down at `now`.
    pub fn is_down(&self, now: Time) -> bool {
        if now < self.at {
            return false;
        }
        let since = now.since(self.at);
        let phase = match self.every {
            Some(every) if every > Duration::ZERO => {
                Duration::from_nanos(since.as_nanos() % every.as_nanos())
            }
            _ => since,
        };
        phase < self.length
    }
}

impl FromStr for Outage {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        const KIND: &str = "an outage";
        let parts: Vec<&str> = text.split(':').collect();
        let (at, length, every) = match parts[..] {
            [at, length] => (at, length, None),
            [at, length, every] => (at, length, Some(every.parse::<Duration>()?)),
            _ => {
                return Err(SpecError::Form {
                    text: text.to_owned(),
                    kind: KIND,
                    form: "AT:FOR or AT:FOR:EVERY",
                    example: "10s:2s:30s",
                });
            }
        };
        let outage = Self { at: Time::ZERO + at.parse()?, length: length.parse()?, every };
        if every.is_some_and(|every| every <= outage.length) {
            return Err(SpecError::Senseless {
                text: text.to_owned(),
                kind: KIND,
                reason: "EVERY must be longer than FOR, or the link never comes back",
            });
        }
        Ok(outage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn an_outage_lasts_from_its_first_nanosecond_to_before_its_last() {
        let outage: Outage = "10ms:2ms".parse().unwrap();
        assert!(!outage.is_down(at(10) - Duration::from_nanos(1)));
        assert!(outage.is_down(at(10)));
        assert!(outage.is_down(at(12) - Duration::from_nanos(1)));
        assert!(!outage.is_down(at(12)));
        assert!(!outage.is_down(at(10_000)));
    }

    #[test]
    fn a_repeated_outage_comes_back() {
        let outage: Outage = "10ms:2ms:5ms".parse().unwrap();
        for (millis, down) in
            [(9, false), (11, true), (13, false), (15, true), (17, false), (511, true)]
        {
            assert_eq!(outage.is_down(at(millis)), down, "{millis} ms");
        }
    }

    #[test]
    fn an_outage_without_end_is_refused() {
        assert!("0:2s:2s".parse::<Outage>().unwrap_err().to_string().contains("EVERY"));
        assert!("2s".parse::<Outage>().unwrap_err().to_string().contains("AT:FOR"));
    }
}
