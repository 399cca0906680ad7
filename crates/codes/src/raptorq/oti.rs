use core::fmt;
use core::ops::Range;

use thiserror::Error;

use super::parameters::MAX_SOURCE_SYMBOLS;
use super::systematic_table::TABLE;

/// The longest object: F (RFC 6330, section 3.3.2).
pub const MAX_TRANSFER_LENGTH: u64 = 946_270_874_880;

/// FEC Object Transmission Information: how an object is cut into source blocks, sub-blocks and
/// symbols (RFC 6330, section 3.3). One that exists is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Oti {
    transfer_length: u64,
    symbol_size: u16,
    source_blocks: u8,
    sub_blocks: u16,
    alignment: u8,
}

/// A cut of an object that the RFC does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OtiError {
    /// The transfer length does not fit.
    #[error("an object of {0} bytes is longer than the {MAX_TRANSFER_LENGTH} that RaptorQ allows")]
    TransferLength(u64),
    /// Symbols must be whole multiples of the alignment, and not empty.
    #[error("a symbol of {symbol_size} bytes is no positive multiple of the alignment {alignment}")]
    Alignment {
        /// T, in bytes.
        symbol_size: u16,
        /// Al, in bytes.
        alignment: u8,
    },
    /// Each source block needs a symbol, and must have no more than the code can number.
    #[error(
        "{symbols} symbols cannot be cut into {source_blocks} source blocks of 1 to {MAX_SOURCE_SYMBOLS}"
    )]
    SourceBlocks {
        /// ⌈F / T⌉.
        symbols: u64,
        /// Z.
        source_blocks: u8,
    },
    /// Each sub-symbol needs a unit of alignment.
    #[error("a symbol of {units} units of alignment cannot be cut into {sub_blocks} sub-symbols")]
    SubBlocks {
        /// T / Al.
        units: u16,
        /// N.
        sub_blocks: u16,
    },
    /// A reserved octet is not zero, or the bytes are not twelve.
    #[error("{0} bytes are no object transmission information, which has 12")]
    Length(usize),
    /// No cut satisfies the limits.
    #[error("no cut of {transfer_length} bytes fits a working memory of {memory} bytes")]
    Memory {
        /// F, in bytes.
        transfer_length: u64,
        /// WS, in bytes.
        memory: u64,
    },
}

/// One source block of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBlock {
    /// The source block number.
    pub number: u8,
    /// K, its source symbols.
    pub symbols: u32,
    /// Its bytes in the object, without padding.
    pub range: Range<u64>,
}

/// Partition\[I, J\] (section 4.4.1.2): `large` blocks of `size + 1`, then blocks of `size`.
fn partition(total: u64, blocks: u64) -> (u64, u64) {
    (total / blocks, total % blocks)
}

impl Oti {
    /// The cut of an object of `transfer_length` bytes (F) into `source_blocks` (Z) of `sub_blocks`
    /// (N) each, with symbols of `symbol_size` bytes (T) aligned to `alignment` bytes (Al).
    pub fn new(
        transfer_length: u64,
        symbol_size: u16,
        source_blocks: u8,
        sub_blocks: u16,
        alignment: u8,
    ) -> Result<Self, OtiError> {
        if transfer_length > MAX_TRANSFER_LENGTH {
            return Err(OtiError::TransferLength(transfer_length));
        }
        if symbol_size == 0 || alignment == 0 || !symbol_size.is_multiple_of(u16::from(alignment)) {
            return Err(OtiError::Alignment { symbol_size, alignment });
        }
        let oti = Self { transfer_length, symbol_size, source_blocks, sub_blocks, alignment };
        let symbols = oti.symbols();
        // An empty object has no symbol, and one block that is empty, too.
        let most = symbols.max(1);
        let blocks = u64::from(source_blocks);
        if blocks == 0 || blocks > most || symbols.div_ceil(blocks) > u64::from(MAX_SOURCE_SYMBOLS)
        {
            return Err(OtiError::SourceBlocks { symbols, source_blocks });
        }
        let units = symbol_size / u16::from(alignment);
        if sub_blocks == 0 || sub_blocks > units {
            return Err(OtiError::SubBlocks { units, sub_blocks });
        }
        Ok(oti)
    }

    /// The cut that the RFC's example algorithm derives (section 4.3): symbols of `symbol_size`
    /// bytes, blocks that can be decoded in `memory` bytes (WS), sub-symbols of at least
    /// `min_sub_symbol` units of alignment (SS).
    pub fn derive(
        transfer_length: u64,
        symbol_size: u16,
        alignment: u8,
        min_sub_symbol: u16,
        memory: u64,
    ) -> Result<Self, OtiError> {
        // What cannot be said better there is refused there.
        Self::new(transfer_length.min(1), symbol_size, 1, 1, alignment)?;
        let failure = OtiError::Memory { transfer_length, memory };
        let symbols = transfer_length.div_ceil(u64::from(symbol_size));
        let units = symbol_size / u16::from(alignment);
        let most = (units / min_sub_symbol.max(1)).max(1);
        // KL(n): the largest K' whose sub-block fits the memory.
        let largest = |n: u16| {
            let limit = memory / (u64::from(alignment) * u64::from(units.div_ceil(n)));
            let index = TABLE.partition_point(|row| u64::from(row.0) <= limit);
            index.checked_sub(1).map(|index| u64::from(TABLE[index].0))
        };
        let largest_block = largest(most).ok_or(failure.clone())?;
        let blocks = symbols.div_ceil(largest_block).max(1);
        let source_blocks = u8::try_from(blocks).map_err(|_| failure.clone())?;
        let per_block = symbols.div_ceil(blocks);
        let sub_blocks = (1..=most)
            .find(|n| largest(*n).is_some_and(|largest| per_block <= largest))
            .ok_or(failure)?;
        Self::new(transfer_length, symbol_size, source_blocks, sub_blocks, alignment)
    }

    /// Reads the encoded form: common, then scheme-specific information (sections 3.3.2 and 3.3.3).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OtiError> {
        let bytes: &[u8; 12] = bytes.try_into().map_err(|_| OtiError::Length(bytes.len()))?;
        let [f0, f1, f2, f3, f4, _reserved, t0, t1, z, n0, n1, al] = *bytes;
        Self::new(
            u64::from_be_bytes([0, 0, 0, f0, f1, f2, f3, f4]),
            u16::from_be_bytes([t0, t1]),
            z,
            u16::from_be_bytes([n0, n1]),
            al,
        )
    }

    /// The encoded form.
    pub fn to_bytes(self) -> [u8; 12] {
        let [_, _, _, f0, f1, f2, f3, f4] = self.transfer_length.to_be_bytes();
        let [t0, t1] = self.symbol_size.to_be_bytes();
        let [n0, n1] = self.sub_blocks.to_be_bytes();
        [f0, f1, f2, f3, f4, 0, t0, t1, self.source_blocks, n0, n1, self.alignment]
    }

    /// F, the length of the object in bytes.
    pub const fn transfer_length(self) -> u64 {
        self.transfer_length
    }

    /// T, in bytes.
    pub const fn symbol_size(self) -> u16 {
        self.symbol_size
    }

    /// Z.
    pub const fn source_blocks(self) -> u8 {
        self.source_blocks
    }

    /// N.
    pub const fn sub_blocks(self) -> u16 {
        self.sub_blocks
    }

    /// Kt, the source symbols of the object.
    fn symbols(self) -> u64 {
        self.transfer_length.div_ceil(u64::from(self.symbol_size))
    }

    /// A source block by its number.
    pub fn block(self, number: u8) -> Option<SourceBlock> {
        if number >= self.source_blocks {
            return None;
        }
        let (small, large) = partition(self.symbols(), u64::from(self.source_blocks));
        let n = u64::from(number);
        let first = n * small + n.min(large);
        let symbols = small + u64::from(n < large);
        let at = |symbol: u64| (symbol * u64::from(self.symbol_size)).min(self.transfer_length);
        Some(SourceBlock { number, symbols: symbols as u32, range: at(first)..at(first + symbols) })
    }

    /// The sizes in bytes of the sub-symbols that a symbol consists of.
    pub fn sub_symbols(self) -> impl Iterator<Item = usize> {
        let units = u64::from(self.symbol_size) / u64::from(self.alignment);
        let (small, large) = partition(units, u64::from(self.sub_blocks));
        let alignment = usize::from(self.alignment);
        (0..u64::from(self.sub_blocks))
            .map(move |n| (small + u64::from(n < large)) as usize * alignment)
    }
}

impl fmt::Display for Oti {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes in {} blocks of {} sub-blocks, symbols of {} bytes",
            self.transfer_length, self.source_blocks, self.sub_blocks, self.symbol_size
        )
    }
}

/// Which symbol a packet carries first (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadId {
    /// The source block number.
    pub block: u8,
    /// The encoding symbol identifier, below 2²⁴.
    pub esi: u32,
}

impl PayloadId {
    /// Reads the encoded form.
    pub const fn from_bytes([block, a, b, c]: [u8; 4]) -> Self {
        Self { block, esi: u32::from_be_bytes([0, a, b, c]) }
    }

    /// The encoded form; `None` for an identifier of more than 24 bits.
    pub const fn to_bytes(self) -> Option<[u8; 4]> {
        match self.esi.to_be_bytes() {
            [0, a, b, c] => Some([self.block, a, b, c]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_an_object_in_order() {
        for (length, size, blocks) in [(1, 1, 1), (1000, 10, 7), (1001, 10, 7), (999_999, 1280, 31)]
        {
            let oti = Oti::new(length, size, blocks, 1, 1).unwrap();
            let mut end = 0;
            let mut symbols = 0;
            for number in 0..blocks {
                let block = oti.block(number).unwrap();
                assert_eq!(block.range.start, end);
                end = block.range.end;
                symbols += u64::from(block.symbols);
            }
            assert_eq!((end, symbols), (length, length.div_ceil(u64::from(size))));
            assert_eq!(oti.block(blocks), None);
            assert_eq!(Oti::from_bytes(&oti.to_bytes()), Ok(oti));
        }
    }

    #[test]
    fn cuts_that_the_rfc_forbids_are_refused() {
        assert!(matches!(Oti::new(1, 0, 1, 1, 1), Err(OtiError::Alignment { .. })));
        assert!(matches!(Oti::new(1, 10, 1, 1, 4), Err(OtiError::Alignment { .. })));
        assert!(matches!(Oti::new(1, 10, 0, 1, 1), Err(OtiError::SourceBlocks { .. })));
        assert!(matches!(Oti::new(1, 10, 2, 1, 1), Err(OtiError::SourceBlocks { .. })));
        assert!(matches!(Oti::new(56_404, 1, 1, 1, 1), Err(OtiError::SourceBlocks { .. })));
        assert!(matches!(Oti::new(1, 8, 1, 3, 4), Err(OtiError::SubBlocks { .. })));
        assert!(matches!(Oti::new(1, 8, 1, 0, 4), Err(OtiError::SubBlocks { .. })));
        assert!(matches!(Oti::new(u64::MAX, 8, 1, 1, 4), Err(OtiError::TransferLength(_))));
        assert!(Oti::from_bytes(&[0; 12]).is_err() && Oti::from_bytes(&[0; 11]).is_err());
        assert!(Oti::new(0, 8, 1, 1, 4).is_ok_and(|oti| oti.block(0).unwrap().symbols == 0));
    }

    #[test]
    fn derived_cuts_fit_the_memory() {
        for length in [1, 10_000, 5_000_000, 100_000_000] {
            for memory in [64_000, 1_000_000, 16_000_000] {
                let Ok(oti) = Oti::derive(length, 1280, 4, 8, memory) else {
                    assert!(length > 255 * memory, "{length} bytes in {memory}");
                    continue;
                };
                let block = oti.block(0).unwrap();
                let sub_symbol = oti.sub_symbols().max().unwrap() as u64;
                assert!(u64::from(block.symbols) * sub_symbol <= memory, "{oti}");
                assert_eq!(oti.sub_symbols().sum::<usize>(), 1280);
            }
        }
        assert!(Oti::derive(1000, 1280, 4, 8, 100).is_err());
    }

    #[test]
    fn payload_identifiers_have_24_bits() {
        let id = PayloadId { block: 7, esi: 0x0012_3456 };
        assert_eq!(PayloadId::from_bytes(id.to_bytes().unwrap()), id);
        assert_eq!(PayloadId { block: 0, esi: 1 << 24 }.to_bytes(), None);
    }
}
