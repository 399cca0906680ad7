use core::fmt;
use core::str::FromStr;

use crate::error::SpecError;

/// The bytes that a flow may send in a turn, by the traffic class of its packets: flows share a
/// line in this proportion. Classes above the last that is named are like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quanta {
    bytes: [u32; CLASSES],
    named: usize,
}

/// The traffic classes that can have a quantum of their own.
const CLASSES: usize = 8;

impl Quanta {
    /// The quantum of a traffic class.
    pub(crate) fn of(&self, class: u8) -> u64 {
        u64::from(self.bytes[usize::from(class).min(self.named - 1)])
    }
}

impl FromStr for Quanta {
    type Err = SpecError;

    /// Reads bytes separated by colons, as in `1500:2121`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let wrong = || SpecError::Form {
            text: text.to_owned(),
            kind: "a list of quanta",
            form: "one to eight numbers of bytes above zero, separated by colons",
            example: "1500:3000",
        };
        let mut quanta = Self { bytes: [0; CLASSES], named: 0 };
        for part in text.split(':') {
            let bytes = part.trim().parse().ok().filter(|bytes| *bytes > 0).ok_or_else(wrong)?;
            *quanta.bytes.get_mut(quanta.named).ok_or_else(wrong)? = bytes;
            quanta.named += 1;
        }
        Ok(quanta)
    }
}

impl fmt::Display for Quanta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.bytes[..self.named].iter().map(u32::to_string).collect();
        f.write_str(&names.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_quantum_and_one_above_the_last_the_last() {
        let quanta: Quanta = "1500:2121:9".parse().unwrap();
        assert_eq!([0, 1, 2, 200].map(|class| quanta.of(class)), [1500, 2121, 9, 9]);
        assert_eq!(quanta.to_string(), "1500:2121:9");
        for wrong in ["", "0", "1500:", "1500:x", "-1", "1:2:3:4:5:6:7:8:9"] {
            assert!(wrong.parse::<Quanta>().is_err(), "{wrong}");
        }
    }
}
