use core::str::FromStr;

use fontis_base::{Duration, Rate, Size, Time};

use crate::error::SpecError;

/// What a policer lets pass: a long-run rate and a burst above it.
///
/// Reads `"RATE"` and `"RATE:BURST"`, as in `"10mbit:64kB"`; the burst is 10 ms of the rate, at
/// least 15 kB, if not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// How many bytes of tokens the bucket holds.
    pub burst: Size,
}

impl FromStr for Policer {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (rate, burst) = match text.split_once(':') {
            Some((rate, burst)) => (rate, Some(burst.parse()?)),
            None => (text, None),
        };
        let rate: Rate = rate.parse()?;
        let default = rate.bdp(Duration::from_millis(10)).max(Size::from_bytes(15_000));
        Ok(Self { rate, burst: burst.unwrap_or(default) })
    }
}

/// A policer at work: a bucket that begins full, gains tokens at the rate up to the burst, and pays
/// for each packet that passes. It counts in bit-nanoseconds, so nothing is ever rounded.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: u128,
    full: u128,
    level: u128,
    filled_at: Time,
}

/// Bit-nanoseconds in a byte-second.
const BYTE: u128 = 8 * 1_000_000_000;

impl TokenBucket {
    /// A full bucket at time zero.
    pub fn new(policer: Policer) -> Self {
        let full = u128::from(policer.burst.as_bytes()) * BYTE;
        Self { rate: u128::from(policer.rate.as_bps()), full, level: full, filled_at: Time::ZERO }
    }

    /// Whether `bytes` may pass at `now`; takes their tokens if they may.
    pub fn admit(&mut self, now: Time, bytes: u64) -> bool {
        let gained = self.rate * u128::from(now.since(self.filled_at).as_nanos());
        self.level = (self.level + gained).min(self.full);
        self.filled_at = self.filled_at.max(now);
        let price = u128::from(bytes) * BYTE;
        let admitted = price <= self.level;
        if admitted {
            self.level -= price;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_not_a_byte_more() {
        let mut bucket = TokenBucket::new("1mbit:3000B".parse().unwrap());
        assert!(bucket.admit(Time::ZERO, 1500));
        assert!(bucket.admit(Time::ZERO, 1500));
        assert!(!bucket.admit(Time::ZERO, 1));
    }

    #[test]
    fn a_packet_passes_in_the_nanosecond_in_which_its_tokens_are_there() {
        let mut bucket = TokenBucket::new("1mbit:1500B".parse().unwrap());
        assert!(bucket.admit(Time::ZERO, 1500));
        // 1500 B at 1 Mbit/s are 12 ms.
        let ready = Time::ZERO + Duration::from_millis(12);
        assert!(!bucket.admit(ready - Duration::from_nanos(1), 1500));
        assert!(bucket.admit(ready, 1500));
    }

    #[test]
    fn an_overloaded_policer_passes_burst_plus_rate_times_time() {
        let mut bucket = TokenBucket::new("7mbit:10kB".parse().unwrap());
        let mut passed = 0u64;
        // 100 Mbit/s of 1250-byte packets for 10 s.
        for i in 0..100_000u64 {
            if bucket.admit(Time::ZERO + Duration::from_micros(100) * i, 1250) {
                passed += 1250;
            }
        }
        let want = 10_000.0 + 7e6 / 8.0 * 10.0;
        assert!((passed as f64 / want - 1.0).abs() < 0.001, "{passed}, not {want}");
    }

    #[test]
    fn an_idle_bucket_holds_no_more_than_the_burst() {
        let mut bucket = TokenBucket::new("1gbit:1500B".parse().unwrap());
        let late = Time::ZERO + Duration::from_secs(3600);
        assert!(bucket.admit(late, 1500));
        assert!(!bucket.admit(late, 1500));
    }
}
