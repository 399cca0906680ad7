use fontis_codes::{BlockShape, Code};

use super::params::Params;

/// The shape of a block whose symbol size somebody else has chosen; none if the code cannot serve
/// it, or if it has more than one symbol and they are smaller than a side may announce. Blocks of
/// many tiny symbols cost far more to decode than to send.
pub(super) fn foreign_shape(code: Code, len: u32, symbol_size: u16) -> Option<BlockShape> {
    let shape = BlockShape::new(code, len, symbol_size).ok()?;
    let least = *Params::SYMBOL_SIZE.start();
    (shape.source_symbols() == 1 || u32::from(symbol_size) >= least).then_some(shape)
}

/// How a block of a message or stream is cut: a short block has a short symbol, so that its repair
/// is short too.
pub(super) fn live_shape(code: Code, block_len: u32, symbol_size: u16) -> Option<BlockShape> {
    let short = block_len.next_multiple_of(8).clamp(8, u32::from(symbol_size)) as u16;
    BlockShape::new(code, block_len, short).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_more_than_one_symbol_has_symbols_of_64_bytes_or_more() {
        let is = |len, symbol_size| foreign_shape(Code::RaptorQ, len, symbol_size).is_some();
        assert!(is(100, 64) && is(8, 8) && is(1, 1) && is(0, 1));
        assert!(!is(100, 63) && !is(9, 8) && !is(56_403, 1) && !is(100, 0));
    }
}
