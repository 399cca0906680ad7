use core::fmt;
use core::str::FromStr;

use fontis_base::{NotationError, Rate};

/// Which controller to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateKind {
    /// Finds the path's rate from delivery rate and queueing delay, and leaves nearly no queue.
    #[default]
    Auto,
    /// Takes what a CUBIC flow would take.
    Friendly,
    /// Takes what a flow of FLD_TCP would take: more while it is short, less when it is long.
    Fld,
    /// Holds a rate, counted in bytes at the IP layer, whatever happens.
    Fixed(Rate),
    /// As fast as the host can. It overloads every network on purpose: only for networks of one's
    /// own.
    Greedy,
}

impl FromStr for RateKind {
    type Err = NotationError;

    /// Reads `auto`, `friendly`, `fld`, `greedy` or a rate.
    fn from_str(text: &str) -> Result<Self, NotationError> {
        match text {
            "auto" => Ok(Self::Auto),
            "friendly" => Ok(Self::Friendly),
            "fld" => Ok(Self::Fld),
            "greedy" => Ok(Self::Greedy),
            _ => text.parse().map(Self::Fixed),
        }
    }
}

impl fmt::Display for RateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Friendly => f.write_str("friendly"),
            Self::Fld => f.write_str("fld"),
            Self::Fixed(rate) => rate.fmt(f),
            Self::Greedy => f.write_str("greedy"),
        }
    }
}
