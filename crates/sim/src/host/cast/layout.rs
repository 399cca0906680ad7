//! The blocks of an object.

use fontis_codes::Code;
use fontis_proto::cast::{CastShape, CastShapeError};
use fontis_proto::dfcp::SYMBOL_SIZE;

/// How an object is cut for a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastLayout {
    /// Head and body.
    pub shape: CastShape,
    /// Bytes of the body.
    pub size: u64,
}

/// Bytes in a block: one block of the next power of two, and of larger objects 1 MiB.
const LEAST_BLOCK: u64 = 1 << 10;
const MOST_BLOCK: u64 = 1 << 20;
/// Bytes of a head beside the hashes of blocks: what a file with a name of some twenty bytes has.
const HEAD: u64 = 160;
/// Bytes of the hash of a block. An object of one block has none.
const HASH: u64 = 32;

/// The layout of an object of `size` bytes as a transfer of one file has it. Symbols are counted.
///
/// # Errors
/// If there are more blocks than can be numbered.
pub fn layout(size: u64) -> Result<CastLayout, CastShapeError> {
    let block = size.next_power_of_two().clamp(LEAST_BLOCK, MOST_BLOCK);
    let hashes = match size.div_ceil(block) {
        0 | 1 => 0,
        blocks => blocks * HASH,
    };
    of(HEAD + hashes, size, block)
}

/// The layout of a bulk of `size` bytes, of which nobody gets the end: it has no head.
///
/// # Errors
/// If there are more blocks than can be numbered.
pub fn bulk_layout(size: u64) -> Result<CastLayout, CastShapeError> {
    of(0, size, MOST_BLOCK)
}

fn of(head: u64, size: u64, block: u64) -> Result<CastLayout, CastShapeError> {
    let shape = CastShape::new(head, size, block as u32, SYMBOL_SIZE, Code::Counting)?;
    Ok(CastLayout { shape, size })
}
