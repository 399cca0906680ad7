//! Erasure codes: symbols in, symbols out.
//!
//! Start here: a *block* of `len` bytes is cut into k source symbols of `symbol_size` bytes
//! ([`BlockShape`]). A [`BlockEncoder`] makes symbol `esi` of the block for any `esi` below the
//! code's limit; the first k are the source symbols themselves (the codes are systematic), so as
//! long as nothing is lost nothing is encoded and nothing is decoded. A [`BlockDecoder`] takes
//! symbols in any order, says how many more it needs and yields the block.
//!
//! What costs time (solving for the repair symbols, decoding) is handed out as a job
//! ([`RepairJob`], [`DecodeJob`]) that the caller runs where it likes and hands back.
//!
//! [`raptorq`] has what RFC 6330 says of whole objects, and encoding plans; [`window`] the codes
//! for streams that cannot wait for a block; [`SparseCode`] LT codes and the 2015 prototype's with
//! parameters of one's own; [`SmallReedSolomon`] the code of RFC 5510. `docs/codes.md` says which
//! code to choose when.
//!
//! A symbol is identified by (object, block, esi) and never by a connection: that is what lets
//! paths, sources and receivers be many.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod block;
mod code;
mod counting;
mod decoder;
mod degrees;
mod encoder;
mod esi_set;
mod gf256;
mod huge_pages;
mod lines;
mod lists;
mod lt;
mod matrix;
mod multiples;
mod peeler;
mod precode;
pub mod raptorq;
mod reed_solomon;
mod simd;
mod small_reed_solomon;
mod sparse;
#[cfg(test)]
mod sparse_oracle;
mod taus88;
mod tinymt32;
pub mod window;

pub use block::{BlockShape, ShapeError};
pub use code::{Code, UnknownCode};
pub use counting::prototype_overhead;
pub use decoder::{BlockDecoder, DecodeJob, Decoded, Runs, SymbolError};
pub use degrees::Distribution;
pub use encoder::{BlockEncoder, RepairJob, RepairSymbols};
pub use small_reed_solomon::{ReedSolomonPoints, SmallReedSolomon};
pub use sparse::{SparseCode, SparseDecoder, SparseEncoder};
pub use taus88::Taus88;

/// FNV-1a, for checksums of tables.
#[cfg(test)]
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
