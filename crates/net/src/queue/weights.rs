use core::fmt;
use core::str::FromStr;

use crate::error::SpecError;

/// The weights p of traffic classes, one or more. Classes above the last that is named are like
/// it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassWeights(Vec<f64>);

/// The traffic classes that there are at most.
const CLASSES: usize = 256;

impl ClassWeights {
    /// Those that are named, the lowest class first.
    pub fn named(&self) -> &[f64] {
        &self.0
    }
}

impl FromStr for ClassWeights {
    type Err = SpecError;

    /// Reads numbers separated by colons, as in `1:2.5`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let read = |part: &str| {
            let weight: f64 = part.trim().parse().ok()?;
            (weight > 0.0 && weight.is_finite()).then_some(weight)
        };
        let weights: Option<Vec<f64>> = text.split(':').map(read).collect();
        weights.filter(|weights| weights.len() <= CLASSES).map(Self).ok_or_else(|| {
            SpecError::Form {
                text: text.to_owned(),
                kind: "a list of weights",
                form: "numbers above zero, one for each traffic class, separated by colons",
                example: "1:2.5",
            }
        })
    }
}

impl fmt::Display for ClassWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(f64::to_string).collect();
        f.write_str(&names.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_weights_in_order_and_wrong_ones_are_refused() {
        let weights: ClassWeights = "1:2.5:9".parse().unwrap();
        assert_eq!(weights.named(), [1.0, 2.5, 9.0]);
        assert_eq!(weights.to_string(), "1:2.5:9");
        for wrong in ["", "0", "1:", "1:x", "-1", "inf", "nan"] {
            assert!(wrong.parse::<ClassWeights>().is_err(), "{wrong}");
        }
    }
}
