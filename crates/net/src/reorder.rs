use core::str::FromStr;

use fontis_base::{Duration, Probability};

use crate::error::SpecError;

/// Reordering: some packets are held back, so that later ones overtake them.
///
/// Reads `"P"` and `"P:BY"`, as in `"1%:10ms"`; BY is 10 ms if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// How many packets are held back.
    pub probability: Probability,
    /// By how much.
    pub by: Duration,
}

impl FromStr for Reorder {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (probability, by) = match text.split_once(':') {
            Some((probability, by)) => (probability, by.parse()?),
            None => (text, Duration::from_millis(10)),
        };
        Ok(Self { probability: probability.parse()?, by })
    }
}
