use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// A notion of fairness: the sum of utilities p·x^(1−α)/(1−α) that an allocation maximises (Mo and
/// Walrand, 2000; equation 4.1 of the thesis).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notion {
    /// α = 0: the largest weights first, whatever is left for others.
    Throughput,
    /// Weighted α-fairness, α above zero: 1 is proportional fairness, 2 minimum potential delay.
    Alpha(f64),
    /// α → ∞: the least share as large as possible, then the next. Weights have no effect.
    MaxMin,
}

/// A notion that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a notion of fairness: write throughput, proportional, delay, max-min, or a \
     number α of at least 0, as in \"0.5\""
)]
pub struct NotionError(String);

/// Below this α the exponent 1/α of weights leaves nothing finite to compute with, above its
/// inverse it makes no difference.
const LEAST: f64 = 1e-3;

impl Notion {
    /// The notion with this α.
    pub fn of(alpha: f64) -> Option<Self> {
        match alpha {
            0.0 => Some(Self::Throughput),
            f64::INFINITY => Some(Self::MaxMin),
            alpha if (LEAST..=1.0 / LEAST).contains(&alpha) => Some(Self::Alpha(alpha)),
            _ => None,
        }
    }

    /// Its α.
    pub const fn alpha(self) -> f64 {
        match self {
            Self::Throughput => 0.0,
            Self::Alpha(alpha) => alpha,
            Self::MaxMin => f64::INFINITY,
        }
    }

    /// The share of a weight beside that of weight 1: p^(1/α).
    pub fn ratio(self, weight: f64) -> f64 {
        match self {
            Self::Throughput => f64::INFINITY,
            Self::Alpha(alpha) => root(weight, alpha),
            Self::MaxMin => 1.0,
        }
    }
}

/// The root x^(1/α).
pub(super) fn root(x: f64, alpha: f64) -> f64 {
    if alpha == 1.0 {
        x
    } else if alpha == 2.0 {
        libm::sqrt(x)
    } else {
        libm::pow(x, 1.0 / alpha)
    }
}

impl FromStr for Notion {
    type Err = NotionError;

    fn from_str(text: &str) -> Result<Self, NotionError> {
        match text {
            "throughput" => Ok(Self::Throughput),
            "proportional" => Ok(Self::Alpha(1.0)),
            "delay" => Ok(Self::Alpha(2.0)),
            "max-min" => Ok(Self::MaxMin),
            _ => text.parse().ok().and_then(Self::of).ok_or_else(|| NotionError(text.to_owned())),
        }
    }
}

impl fmt::Display for Notion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput => f.write_str("throughput"),
            Self::Alpha(alpha) => write!(f, "{alpha}"),
            Self::MaxMin => f.write_str("max-min"),
        }
    }
}
