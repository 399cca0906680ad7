//! Window codes: source symbols without end, and repair symbols over the most recent of them.
//!
//! Start here: [`WindowEncoder`] takes source symbols and makes repair symbols; [`WindowDecoder`]
//! takes both and gives back the source symbols in order. All sums are over GF(2⁸), with
//! coefficients that follow from identifiers ([`WindowCode`]), so that a repair symbol carries but
//! its window and a number.

mod code;
mod decoder;
mod encoder;
mod symbol;

pub use code::{UnknownWindowCode, WindowCode};
pub use decoder::WindowDecoder;
pub use encoder::WindowEncoder;
pub use symbol::{RepairSymbol, WindowError};
