//! The block that the measurements of a code use.

use fontis_codes::{BlockShape, Code};

use crate::failure::Failure;

/// The default number of symbols of a block.
pub(super) const fn default_symbols(code: Code, usual: u32) -> u32 {
    match code {
        Code::LegacyByte | Code::CountingLegacyByte => code.max_source_symbols(),
        _ => usual,
    }
}

/// A block of this number of whole symbols.
pub(super) fn shape(code: Code, symbols: u32, symbol_size: u16) -> Result<BlockShape, Failure> {
    let (min, max) = code.source_symbols().into_inner();
    if !(min..=max).contains(&symbols) {
        return Err(Failure::Usage(format!(
            "--symbols {symbols} is not from {min} to {max}, as {code} has in a block"
        )));
    }
    if code == Code::LegacyByte && symbols < max {
        return Err(Failure::Usage(format!(
            "--symbols {symbols}: {code} fills every block up to {max}, and is measured with whole ones: leave --symbols out"
        )));
    }
    let Some(len) = symbols.checked_mul(u32::from(symbol_size)) else {
        return Err(Failure::Usage(format!(
            "{symbols} symbols of {symbol_size} bytes are more than the 4 GiB that a block may have"
        )));
    };
    BlockShape::new(code, len, symbol_size).map_err(|error| Failure::Usage(error.to_string()))
}
