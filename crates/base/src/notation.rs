//! Numbers with units, as people write them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

/// A text that is not a quantity of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotationError {
    /// The text does not begin with a decimal number.
    #[error("{text:?} is not {kind}: it must begin with a number, as in {example:?}")]
    NoNumber {
        /// What was read.
        text: String,
        /// The kind of quantity, with its article.
        kind: &'static str,
        /// A text that would have been right.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("{text:?} is not {kind}: the unit must be one of {allowed}, as in {example:?}")]
    UnknownUnit {
        /// What was read.
        text: String,
        /// The kind of quantity, with its article.
        kind: &'static str,
        /// The units there are.
        allowed: String,
        /// A text that would have been right.
        example: &'static str,
    },
    /// The value does not fit.
    #[error("{text:?} is too large for {kind}")]
    TooLarge {
        /// What was read.
        text: String,
        /// The kind of quantity, with its article.
        kind: &'static str,
    },
    /// The value lies outside the range that makes sense.
    #[error("{text:?} is not {kind}: it must lie between {low} and {high}")]
    OutOfRange {
        /// What was read.
        text: String,
        /// The kind of quantity, with its article.
        kind: &'static str,
        /// The least value.
        low: &'static str,
        /// The greatest value.
        high: &'static str,
    },
}

/// Splits `text` into its decimal number and its unit, both without surrounding spaces.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Reads a decimal number and a unit (any letter case), exactly: no float lies between text and
/// integer.
///
/// `units` maps a unit's name to its size in base units. Zero may stand without a unit.
pub(crate) fn parse(
    text: &str,
    kind: &'static str,
    example: &'static str,
    units: &[(&str, u64)],
) -> Result<u64, NotationError> {
    let (number, unit) = split(text);
    let no_number = || NotationError::NoNumber { text: text.to_owned(), kind, example };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(no_number());
    }
    let too_large = || NotationError::TooLarge { text: text.to_owned(), kind };
    // Digits beyond the eighteenth place are below any base unit; leaving them out keeps the sum in
    // 128 bits.
    let fraction = &fraction[..fraction.len().min(18)];
    let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| too_large())?;
    if digits == 0 && unit.is_empty() {
        return Ok(0);
    }
    let Some((_, scale)) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        let allowed = units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
        return Err(NotationError::UnknownUnit {
            text: text.to_owned(),
            kind,
            allowed: allowed.collect::<Vec<_>>().join(", "),
            example,
        });
    };
    let divisor = 10u128.pow(fraction.len() as u32);
    let value = digits.checked_mul(u128::from(*scale)).ok_or_else(too_large)?;
    u64::try_from((value + divisor / 2) / divisor).map_err(|_| too_large())
}
