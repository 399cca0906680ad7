use core::fmt;
use core::str::FromStr;

use crate::notation::{self, NotationError};
use crate::size::Size;
use crate::time::{Duration, Time};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// Faster than anything: packets take no time.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate in bits per second.
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// A rate in units of 10⁶ bits per second.
    pub const fn from_mbps(megabits_per_second: u64) -> Self {
        Self(megabits_per_second.saturating_mul(1_000_000))
    }

    /// The rate that carries `bytes` in `span`; [`Rate::MAX`] if the span is zero.
    pub const fn from_bytes_over(bytes: u64, span: Duration) -> Self {
        if span.as_nanos() == 0 {
            return Self::MAX;
        }
        Self(mul_div(bytes, 8 * NANOS_PER_SEC, span.as_nanos()))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Units of 10⁶ bits per second, for reports.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// The two rates together; no more than [`Rate::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// How long `bytes` take at this rate, rounded up to a nanosecond; [`Duration::MAX`] at rate
    /// zero. Where roundings must not add up, use a [`Serializer`].
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let work = bytes as u128 * (8 * NANOS_PER_SEC) as u128;
        if work <= u64::MAX as u128 {
            return Duration::from_nanos((work as u64).div_ceil(self.0));
        }
        let nanos = work.div_ceil(self.0 as u128);
        Duration::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
    }

    /// How many whole bytes pass in `span` at this rate.
    pub const fn bytes_in(self, span: Duration) -> u64 {
        mul_div(self.0, span.as_nanos(), 8 * NANOS_PER_SEC)
    }

    /// The bandwidth-delay product of this rate and a round-trip time.
    pub const fn bdp(self, rtt: Duration) -> Size {
        Size::from_bytes(self.bytes_in(rtt))
    }

    /// `self · numerator / denominator`, saturating; a zero denominator gives [`Rate::MAX`].
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::MAX;
        }
        Self(mul_div(self.0, numerator, denominator))
    }

    /// The rate scaled by a factor that is not negative.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

/// `a · b / c`, saturating. Packets ask for this often, and a division of 128 bits takes several
/// times as long as one of 64, which they hardly ever need.
const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let wide = a as u128 * b as u128;
    if wide <= u64::MAX as u128 {
        return wide as u64 / c;
    }
    let quotient = wide / c as u128;
    if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        let (unit, name) = UNITS.into_iter().find(|(unit, _)| self.0 >= *unit).unwrap_or(UNITS[3]);
        write!(f, "{} {name}", self.0 as f64 / unit as f64)
    }
}

impl FromStr for Rate {
    type Err = NotationError;

    /// Reads `"100 Mbit/s"`, `"100mbit"`, `"1.5Gbps"`, `"64 kbit/s"`. Rates count bits; prefixes
    /// are decimal.
    fn from_str(text: &str) -> Result<Self, NotationError> {
        const UNITS: [(&str, u64); 12] = [
            ("bit/s", 1),
            ("bit", 1),
            ("bps", 1),
            ("kbit/s", 1_000),
            ("kbit", 1_000),
            ("kbps", 1_000),
            ("Mbit/s", 1_000_000),
            ("Mbit", 1_000_000),
            ("Mbps", 1_000_000),
            ("Gbit/s", 1_000_000_000),
            ("Gbit", 1_000_000_000),
            ("Gbps", 1_000_000_000),
        ];
        notation::parse(text, "a rate", "100 Mbit/s", &UNITS).map(Self)
    }
}

/// A line that sends one packet after another at a given rate, to the bit: what one packet's time
/// leaves of a nanosecond is carried to the next, so a run of any length drifts by less than a
/// nanosecond.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Time,
    /// Bit-nanoseconds already sent beyond `free_at`, always less than one nanosecond's worth.
    remainder: u64,
}

impl Serializer {
    /// A line at rest.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, free_at: Time::ZERO, remainder: 0 }
    }

    /// The line's rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate from the next packet on.
    pub const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.remainder = 0;
    }

    /// When the line has sent all that it was given.
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Puts `bytes` on the line, at `now` or when it is free, and says when the last bit has left.
    pub fn send(&mut self, now: Time, bytes: u64) -> Time {
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        if self.rate == Rate::MAX {
            return self.free_at;
        }
        if self.rate == Rate::ZERO {
            self.free_at = Time::MAX;
            return self.free_at;
        }
        let rate = self.rate.0;
        let work = u128::from(bytes) * u128::from(8 * NANOS_PER_SEC) + u128::from(self.remainder);
        // A division of 128 bits takes several times as long as one of 64, and packets never need
        // it.
        let nanos = if let Ok(work) = u64::try_from(work) {
            self.remainder = work % rate;
            work / rate
        } else {
            self.remainder = (work % u128::from(rate)) as u64;
            u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX)
        };
        self.free_at += Duration::from_nanos(nanos);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_what_people_write() {
        for (text, bps) in [
            ("100 Mbit/s", 100_000_000),
            ("100mbit", 100_000_000),
            ("1.5Gbps", 1_500_000_000),
            ("64 kbit/s", 64_000),
            ("1.2345678 Mbit/s", 1_234_568),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().as_bps(), bps, "{text}");
        }
        assert!("100 MB".parse::<Rate>().is_err());
        assert!("fast".parse::<Rate>().is_err());
    }

    #[test]
    fn a_serializer_carries_the_remainder() {
        // 1500 B at 7 bit/s take 12000/7 s, which is not a whole number of nanoseconds; seven of
        // them are.
        let mut line = Serializer::new(Rate::from_bps(7));
        let mut end = Time::ZERO;
        for _ in 0..7 {
            end = line.send(Time::ZERO, 1500);
        }
        assert_eq!(end.as_nanos(), 12_000 * 1_000_000_000);
    }

    #[test]
    fn rate_and_time_agree() {
        let rate = Rate::from_mbps(100);
        assert_eq!(rate.time_for(1250), Duration::from_micros(100));
        assert_eq!(rate.bytes_in(Duration::from_millis(100)), 1_250_000);
        assert_eq!(Rate::from_bytes_over(1_250_000, Duration::from_millis(100)), rate);
    }
}
