use core::fmt;
use core::str::FromStr;

use fontis_base::{Duration, Rate, Size};

use crate::error::SpecError;

/// How much a queue holds. Reads a size (`"1.25MB"`) or a number of packets (`"100 packets"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes at the IP layer.
    Bytes(Size),
    /// So many packets of any size.
    Packets(u64),
}

impl Limit {
    /// No limit.
    pub const UNLIMITED: Self = Self::Bytes(Size::from_bytes(u64::MAX));

    /// One bandwidth-delay product, and at least twenty packets of 1500 bytes; no limit on a line
    /// of infinite rate.
    pub fn one_bdp(rate: Rate, rtt: Duration) -> Self {
        if rate == Rate::MAX {
            return Self::UNLIMITED;
        }
        Self::Bytes(rate.bdp(rtt).max(Size::from_bytes(20 * 1500)))
    }

    /// Whether this many fit.
    pub fn holds(self, packets: usize, bytes: u64) -> bool {
        match self {
            Self::Bytes(limit) => bytes <= limit.as_bytes(),
            Self::Packets(limit) => packets as u64 <= limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => write!(f, "{size}"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl FromStr for Limit {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let Some(number) = text.trim().strip_suffix("packets") else {
            return Ok(Self::Bytes(text.parse()?));
        };
        let number = number.trim().parse().map_err(|_| SpecError::Form {
            text: text.to_owned(),
            kind: "a limit of a queue",
            form: "a size, or a number followed by \"packets\"",
            example: "100 packets",
        })?;
        Ok(Self::Packets(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_sizes_and_packets() {
        assert_eq!("1.25MB".parse(), Ok(Limit::Bytes(Size::from_bytes(1_250_000))));
        assert_eq!("100 packets".parse(), Ok(Limit::Packets(100)));
        assert_eq!("100packets".parse(), Ok(Limit::Packets(100)));
        assert!("some packets".parse::<Limit>().is_err());
    }

    #[test]
    fn one_bdp_is_rate_times_round_trip_and_never_below_twenty_packets() {
        let rtt = Duration::from_millis(100);
        let bdp = Limit::one_bdp(Rate::from_mbps(100), rtt);
        assert_eq!(bdp, Limit::Bytes(Size::from_bytes(1_250_000)));
        let least = Limit::one_bdp(Rate::from_mbps(100), Duration::ZERO);
        assert_eq!(least, Limit::Bytes(Size::from_bytes(30_000)));
        assert_eq!(Limit::one_bdp(Rate::MAX, rtt), Limit::UNLIMITED);
    }
}
