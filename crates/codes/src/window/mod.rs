//! Window codes: source symbols without end, and repair symbols over the most recent of them.
//!
//! Start here: [`WindowEncoder`] takes source symbols and makes repair symbols; [`WindowDecoder`]
//! takes both and gives back the source symbols in order. All sums are over GF(2⁸), with
//! coefficients that follow from identifiers ([`WindowCode`]), so that a repair symbol carries but
//! its window and a number. A protocol with packets of its own, of any lengths, takes
//! [`sum_factors`], [`add_to_sum`] and [`solve_sums`] instead.

mod code;
mod decoder;
mod encoder;
mod sums;
mod symbol;

pub use code::{UnknownWindowCode, WindowCode};
pub use decoder::WindowDecoder;
pub use encoder::WindowEncoder;
pub use sums::{SolvedSummand, add_to_sum, solve_sums, sum_factors};
pub use symbol::{RepairSymbol, WindowError};
