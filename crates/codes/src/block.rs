use core::ops::Range;

use thiserror::Error;

use crate::code::Code;
use crate::reed_solomon;

/// How a block is cut: `len` bytes into k = ⌈len / symbol_size⌉ source symbols (at least one), the
/// last of them padded with zeros that are never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockShape {
    code: Code,
    len: u32,
    symbol_size: u16,
}

/// A shape that the code cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// Symbols must have a byte at least.
    #[error("a symbol size of zero is impossible")]
    EmptySymbol,
    /// The code needs more symbols.
    #[error(
        "a block of {len} bytes in symbols of {symbol_size} has fewer than the {min} source symbols that {code} needs"
    )]
    TooFewSymbols {
        /// The code asked for.
        code: Code,
        /// Bytes in the block.
        len: u32,
        /// Bytes in a symbol.
        symbol_size: u16,
        /// Source symbols needed.
        min: u32,
    },
    /// The code works on pairs of bytes.
    #[error("a symbol of {0} bytes is not a multiple of two, as reed-solomon needs")]
    OddSymbol(u16),
    /// The code cannot number so many symbols.
    #[error(
        "a block of {len} bytes in symbols of {symbol_size} has more than the {max} source symbols that {code} allows"
    )]
    TooManySymbols {
        /// The code asked for.
        code: Code,
        /// Bytes in the block.
        len: u32,
        /// Bytes in a symbol.
        symbol_size: u16,
        /// Source symbols allowed.
        max: u32,
    },
}

impl BlockShape {
    /// The shape of a block of `len` bytes, if the code can serve it.
    pub fn new(code: Code, len: u32, symbol_size: u16) -> Result<Self, ShapeError> {
        if symbol_size == 0 {
            return Err(ShapeError::EmptySymbol);
        }
        let shape = Self { code, len, symbol_size };
        let (min, max) = code.source_symbols().into_inner();
        if shape.source_symbols() < min {
            return Err(ShapeError::TooFewSymbols { code, len, symbol_size, min });
        }
        if code == Code::ReedSolomon && !symbol_size.is_multiple_of(2) {
            return Err(ShapeError::OddSymbol(symbol_size));
        }
        if shape.source_symbols() > max {
            return Err(ShapeError::TooManySymbols { code, len, symbol_size, max });
        }
        Ok(shape)
    }

    /// The code.
    pub const fn code(self) -> Code {
        self.code
    }

    /// Bytes in the block.
    pub const fn len(self) -> u32 {
        self.len
    }

    /// Whether the block holds no byte (it still has one source symbol, all padding).
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Bytes in a symbol.
    pub const fn symbol_size(self) -> u16 {
        self.symbol_size
    }

    /// k, the number of source symbols.
    pub const fn source_symbols(self) -> u32 {
        let k = self.len.div_ceil(self.symbol_size as u32);
        if k == 0 { 1 } else { k }
    }

    /// Bytes of the block with its padding.
    pub(crate) const fn padded_len(self) -> usize {
        self.source_symbols() as usize * self.symbol_size as usize
    }

    /// The bytes of the block that source symbol `esi` stands for; shorter than a symbol for the
    /// last.
    pub fn source_range(self, esi: u32) -> Range<usize> {
        let size = usize::from(self.symbol_size);
        let start = (esi as usize * size).min(self.len as usize);
        start..(start + size).min(self.len as usize)
    }

    /// Encoding symbol identifiers of this block lie below this.
    pub fn esi_limit(self) -> u32 {
        match self.code {
            Code::ReedSolomon | Code::CountingReedSolomon => {
                let k = self.source_symbols();
                k + reed_solomon::repair_symbols(k)
            }
            code => code.esi_limit(),
        }
    }

    /// How many bytes a repair symbol has.
    pub(crate) fn repair_len(self) -> usize {
        if self.code.carries_bytes() { usize::from(self.symbol_size) } else { 0 }
    }

    /// How many bytes symbol `esi` has on the wire: the padding of the last source symbol is not
    /// sent.
    pub fn symbol_len(self, esi: u32) -> usize {
        if esi < self.source_symbols() {
            self.source_range(esi).len()
        } else {
            usize::from(self.symbol_size)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_source_symbol_is_sent_without_padding() {
        let shape = BlockShape::new(Code::RaptorQ, 2500, 1000).unwrap();
        assert_eq!(shape.source_symbols(), 3);
        assert_eq!(shape.symbol_len(2), 500);
        assert_eq!(shape.symbol_len(3), 1000);
    }

    #[test]
    fn an_empty_block_has_one_source_symbol() {
        let shape = BlockShape::new(Code::RaptorQ, 0, 1000).unwrap();
        assert_eq!(shape.source_symbols(), 1);
        assert_eq!(shape.symbol_len(0), 0);
    }

    #[test]
    fn shapes_beyond_the_code_are_refused() {
        assert!(BlockShape::new(Code::RaptorQ, 56_403, 1).is_ok());
        assert!(BlockShape::new(Code::RaptorQ, 56_404, 1).is_err());
        assert!(BlockShape::new(Code::RaptorQ, 1, 0).is_err());
        assert!(BlockShape::new(Code::Raptor10, 4, 1).is_ok());
        assert!(BlockShape::new(Code::Raptor10, 3, 1).is_err());
        assert!(BlockShape::new(Code::ReedSolomon, 100, 9).is_err());
    }
}
