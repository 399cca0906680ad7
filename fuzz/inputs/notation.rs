//! Times, rates, sizes and probabilities as people write them.

use core::fmt::Display;
use core::str::FromStr;

use fontis_base::{Duration, Probability, Rate, Size};

/// Whatever reads can be printed; whatever does not says why in one line.
fn read<T: FromStr<Err: Display> + Display>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => drop(value.to_string().parse::<T>()),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Reads a text as every kind of quantity.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    read::<Duration>(text);
    read::<Probability>(text);
    read::<Rate>(text);
    read::<Size>(text);
}
