use alloc::borrow::ToOwned;
use core::fmt;
use core::str::FromStr;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::notation::{self, NotationError};

/// A stream of random numbers that belongs to one element of a run.
///
/// It is made from the run's seed and the element's name, so that adding or changing one element
/// leaves the randomness of every other element as it was.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of the element called `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name; seed_from_u64 (SplitMix64) spreads the sum over the whole state.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(32)))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound` (by multiplication; the bias is below 2⁻⁶⁴·bound); zero if `bound` is
    /// zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: Probability) -> bool {
        // An impossible event draws nothing, so that switching it off costs nothing.
        probability.0 > 0.0 && self.unit() < probability.0
    }

    /// Fills `buffer` with random bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.0.fill_bytes(buffer);
    }
}

/// A probability, between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// It never happens.
    pub const ZERO: Self = Self(0.0);
    /// It always happens.
    pub const ONE: Self = Self(1.0);

    /// The probability `value`, clamped to [0, 1]; NaN gives 0.
    pub fn new(value: f64) -> Self {
        Self(if value > 0.0 { value.min(1.0) } else { 0.0 })
    }

    /// As a number between 0 and 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

impl FromStr for Probability {
    type Err = NotationError;

    /// Reads `"1%"`, `"0.5 %"`, `"0.01"`.
    fn from_str(text: &str) -> Result<Self, NotationError> {
        const KIND: &str = "a probability";
        let (number, unit) = notation::split(text);
        let value: f64 = number.parse().map_err(|_| NotationError::NoNumber {
            text: text.to_owned(),
            kind: KIND,
            example: "1%",
        })?;
        let value = match unit {
            "" => value,
            "%" => value / 100.0,
            _ => {
                return Err(NotationError::UnknownUnit {
                    text: text.to_owned(),
                    kind: KIND,
                    allowed: "% (or none, for a number from 0 to 1)".to_owned(),
                    example: "1%",
                });
            }
        };
        if value > 1.0 {
            return Err(NotationError::OutOfRange {
                text: text.to_owned(),
                kind: KIND,
                low: "0",
                high: "1 (100%)",
            });
        }
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let draw = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(draw(1, "loss"), draw(1, "loss"));
        assert_ne!(draw(1, "loss"), draw(2, "loss"));
        assert_ne!(draw(1, "loss"), draw(1, "jitter"));
    }

    #[test]
    fn a_chance_comes_as_often_as_it_says() {
        let mut stream = Stream::new(7, "test");
        let p = Probability::new(0.1);
        let hits = (0..100_000).filter(|_| stream.chance(p)).count() as f64;
        // Four standard deviations of a binomial with n = 100 000, p = 0.1.
        assert!((hits - 10_000.0).abs() < 4.0 * (100_000.0f64 * 0.1 * 0.9).sqrt(), "{hits}");
    }

    #[test]
    fn probabilities_read_what_people_write() {
        assert_eq!("1%".parse::<Probability>().unwrap().get(), 0.01);
        assert_eq!("0.25".parse::<Probability>().unwrap().get(), 0.25);
        assert!("2".parse::<Probability>().is_err());
        assert!("-1%".parse::<Probability>().is_err());
        assert!("1 percent".parse::<Probability>().is_err());
    }
}
