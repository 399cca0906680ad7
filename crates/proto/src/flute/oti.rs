use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use fontis_codes::Code;
use fontis_codes::raptorq::{self, RAPTOR10_SOURCE_SYMBOLS};

use super::error::FecOtiError;

/// A scheme of forward error correction, by its FEC encoding ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FecScheme {
    /// 0: source symbols alone (RFC 5445, section 3).
    NoCode,
    /// 1: R10 (RFC 5053).
    Raptor,
    /// 5: Reed-Solomon over GF(2⁸) (RFC 5510, section 5).
    ReedSolomon,
    /// 6: RaptorQ (RFC 6330).
    RaptorQ,
}

impl FecScheme {
    /// Every scheme there is.
    pub const ALL: [Self; 4] = [Self::NoCode, Self::Raptor, Self::ReedSolomon, Self::RaptorQ];

    /// The FEC encoding ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::NoCode => 0,
            Self::Raptor => 1,
            Self::ReedSolomon => 5,
            Self::RaptorQ => 6,
        }
    }

    /// The scheme with this FEC encoding ID.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.id() == id)
    }

    /// The name that people write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCode => "none",
            Self::Raptor => "r10",
            Self::ReedSolomon => "rs",
            Self::RaptorQ => "raptorq",
        }
    }

    /// The fountain code behind it, if there is one.
    pub(super) const fn fountain(self) -> Option<Code> {
        match self {
            Self::Raptor => Some(Code::Raptor10),
            Self::RaptorQ => Some(Code::RaptorQ),
            Self::NoCode | Self::ReedSolomon => None,
        }
    }
}

impl fmt::Display for FecScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FecScheme {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or("write none, raptorq, rs or r10")
    }
}

/// FEC object transmission information: how an object is cut into blocks and symbols, and with
/// which scheme (RFC 5052, section 6). One that exists is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FecOti {
    pub(super) scheme: FecScheme,
    pub(super) transfer_length: u64,
    pub(super) symbol_size: u16,
    /// B, the most source symbols in a block; with the Raptor codes it follows from the blocks.
    pub(super) max_source: u32,
    /// The most encoding symbols in a block; that of the code with the Raptor codes.
    pub(super) max_symbols: u32,
    pub(super) blocks: u32,
    /// Al, with the Raptor codes.
    pub(super) alignment: u8,
}

/// Blocks of more symbols than so many must have symbols of so many bytes.
const FEW: u32 = 64;
const LEAST_SIZE: u16 = 64;

/// One source block of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FecBlock {
    /// Its source symbols.
    pub symbols: u32,
    /// Its bytes in the object.
    pub range: Range<u64>,
}

impl FecBlock {
    /// The bytes that source symbol `esi` has: the last one of an object may have fewer than the
    /// others. All repair symbols are of full size.
    pub fn symbol_len(&self, symbol_size: u16, esi: u32) -> usize {
        let size = u64::from(symbol_size);
        let start = u64::from(esi) * size;
        match esi < self.symbols {
            true => size.min((self.range.end - self.range.start).saturating_sub(start)) as usize,
            false => usize::from(symbol_size),
        }
    }
}

impl FecOti {
    /// Source symbols alone, in blocks of at most `max_source`.
    ///
    /// # Errors
    /// [`FecOtiError`], if the scheme cannot number them.
    pub fn no_code(length: u64, symbol_size: u16, max_source: u32) -> Result<Self, FecOtiError> {
        let oti = Self {
            scheme: FecScheme::NoCode,
            transfer_length: length,
            symbol_size,
            max_source,
            max_symbols: max_source,
            blocks: 0,
            alignment: 1,
        };
        // RFC 5445, section 3.2: 16 bits for the block, 16 for the symbol.
        oti.cut_by_length(1 << 48, 1 << 16, 1 << 16)
    }

    /// Reed-Solomon, in blocks of at most `max_source` source symbols and `max_symbols` symbols.
    ///
    /// # Errors
    /// [`FecOtiError`], if the scheme cannot number them.
    pub fn reed_solomon(
        length: u64,
        symbol_size: u16,
        max_source: u32,
        max_symbols: u32,
    ) -> Result<Self, FecOtiError> {
        if max_source > max_symbols || max_symbols > 255 {
            return Err(FecOtiError::BlockLength { k: max_source, all: max_symbols });
        }
        let oti = Self {
            scheme: FecScheme::ReedSolomon,
            transfer_length: length,
            symbol_size,
            max_source,
            max_symbols,
            blocks: 0,
            alignment: 1,
        };
        // RFC 5510, section 5.1: 24 bits for the block, 8 for the symbol.
        oti.cut_by_length(1 << 48, 1 << 24, 1 << 8)
    }

    /// RaptorQ, in `blocks` (Z) of one sub-block each.
    ///
    /// # Errors
    /// [`FecOtiError`], if the scheme cannot number them.
    pub fn raptorq(
        length: u64,
        symbol_size: u16,
        blocks: u8,
        alignment: u8,
    ) -> Result<Self, FecOtiError> {
        let blocks = u32::from(blocks);
        let oti = Self::of_fountain(FecScheme::RaptorQ, length, symbol_size, blocks, alignment)?;
        match length > raptorq::MAX_TRANSFER_LENGTH {
            true => Err(FecOtiError::TransferLength(length)),
            false => Ok(oti),
        }
    }

    /// R10, in `blocks` (Z) of one sub-block each.
    ///
    /// # Errors
    /// [`FecOtiError`], if the scheme cannot number them.
    pub fn raptor(
        length: u64,
        symbol_size: u16,
        blocks: u16,
        alignment: u8,
    ) -> Result<Self, FecOtiError> {
        let blocks = u32::from(blocks);
        let oti = Self::of_fountain(FecScheme::Raptor, length, symbol_size, blocks, alignment)?;
        let least = oti.block(oti.blocks.saturating_sub(1)).map_or(4, |block| block.symbols);
        match length >= 1 << 48 || least < *RAPTOR10_SOURCE_SYMBOLS.start() {
            true => Err(FecOtiError::Blocks { symbols: oti.symbols(), blocks: blocks.into() }),
            false => Ok(oti),
        }
    }

    fn of_fountain(
        scheme: FecScheme,
        length: u64,
        symbol_size: u16,
        blocks: u32,
        alignment: u8,
    ) -> Result<Self, FecOtiError> {
        if symbol_size == 0 || alignment == 0 || !symbol_size.is_multiple_of(u16::from(alignment)) {
            return Err(FecOtiError::SymbolSize { size: symbol_size, alignment });
        }
        let symbols = length.div_ceil(u64::from(symbol_size));
        let code = scheme.fountain().unwrap_or(Code::RaptorQ);
        let largest = symbols.div_ceil(u64::from(blocks.max(1)));
        // Of nothing there is no block, whatever is written.
        let blocks = if length == 0 { 0 } else { blocks };
        if symbols > 0 && blocks == 0
            || u64::from(blocks) > symbols
            || largest > u64::from(code.max_source_symbols())
        {
            return Err(FecOtiError::Blocks { symbols, blocks: blocks.into() });
        }
        Ok(Self {
            scheme,
            transfer_length: length,
            symbol_size,
            max_source: largest as u32,
            max_symbols: code.esi_limit(),
            blocks,
            alignment,
        })
    }

    /// The number of blocks from their length (RFC 5052, section 9.1).
    fn cut_by_length(self, length: u64, blocks: u64, symbols: u32) -> Result<Self, FecOtiError> {
        if self.symbol_size == 0 {
            return Err(FecOtiError::SymbolSize { size: 0, alignment: 1 });
        }
        if self.transfer_length >= length {
            return Err(FecOtiError::TransferLength(self.transfer_length));
        }
        let all = self.symbols();
        let count = match self.max_source {
            0 => u64::from(all > 0) * u64::MAX,
            most => all.div_ceil(u64::from(most)),
        };
        let largest = all.div_ceil(count.max(1));
        if count > blocks || largest > u64::from(symbols) {
            return Err(FecOtiError::Blocks { symbols: all, blocks: count });
        }
        Ok(Self { blocks: count as u32, ..self })
    }

    /// Whether a receiver should decode it: a stranger chose the symbols.
    ///
    /// # Errors
    /// [`FecOtiError::TinySymbols`], if that costs far more than to send them.
    pub(super) const fn bearable(&self) -> Result<(), FecOtiError> {
        let (symbols, size) = (self.max_source, self.symbol_size);
        match self.scheme.fountain().is_some() && symbols > FEW && size < LEAST_SIZE {
            true => Err(FecOtiError::TinySymbols { symbols, size }),
            false => Ok(()),
        }
    }

    /// The scheme.
    pub const fn scheme(&self) -> FecScheme {
        self.scheme
    }

    /// The bytes of the object as it is sent.
    pub const fn transfer_length(&self) -> u64 {
        self.transfer_length
    }

    /// The bytes of a symbol.
    pub const fn symbol_size(&self) -> u16 {
        self.symbol_size
    }

    /// Symbols that a block can have, source and repair.
    pub const fn max_symbols(&self) -> u32 {
        self.max_symbols
    }

    /// The source blocks; none in an empty object.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Source symbols of the object.
    fn symbols(&self) -> u64 {
        self.transfer_length.div_ceil(u64::from(self.symbol_size))
    }

    /// A source block by its number: the first ones have one symbol more than the others, if their
    /// lengths differ (RFC 5052, section 9.1; RFC 6330, section 4.4.1.2).
    pub fn block(&self, number: u32) -> Option<FecBlock> {
        if number >= self.blocks {
            return None;
        }
        let (symbols, blocks, number) = (self.symbols(), u64::from(self.blocks), u64::from(number));
        let (small, large) = (symbols / blocks, symbols % blocks);
        let first = number * small + number.min(large);
        let count = small + u64::from(number < large);
        let at = |symbol: u64| (symbol * u64::from(self.symbol_size)).min(self.transfer_length);
        Some(FecBlock { symbols: count as u32, range: at(first)..at(first + count) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn objects_are_cut_as_in_the_rfc() {
        // RFC 5052, section 9.1: T = 10 symbols, B = 4, so N = 3 blocks of 4, 3 and 3.
        let oti = FecOti::no_code(995, 100, 4).unwrap();
        let blocks: Vec<_> = (0..oti.blocks()).map(|n| oti.block(n).unwrap()).collect();
        assert_eq!(blocks.iter().map(|block| block.symbols).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(blocks[2].range, 700..995);
        let lengths: Vec<_> = (0..4).map(|esi| blocks[2].symbol_len(100, esi)).collect();
        assert_eq!(lengths, [100, 100, 95, 100], "and a repair symbol");
        assert_eq!(oti.block(3), None);
    }

    #[test]
    fn cuts_that_a_scheme_cannot_number_are_refused() {
        use FecOtiError as E;
        assert!(matches!(FecOti::no_code(1, 0, 1), Err(E::SymbolSize { .. })));
        assert!(matches!(FecOti::no_code(1, 1, 0), Err(E::Blocks { .. })));
        assert!(matches!(FecOti::no_code(1 << 17, 1, 1), Err(E::Blocks { .. })));
        assert!(matches!(FecOti::no_code(1 << 17, 1, u32::MAX), Err(E::Blocks { .. })));
        assert!(matches!(FecOti::no_code(1 << 48, 1, 1), Err(E::TransferLength(_))));
        assert!(matches!(FecOti::reed_solomon(1, 1, 2, 1), Err(E::BlockLength { .. })));
        assert!(matches!(FecOti::reed_solomon(1, 1, 2, 256), Err(E::BlockLength { .. })));
        assert!(matches!(FecOti::raptorq(1, 10, 1, 4), Err(E::SymbolSize { .. })));
        assert!(matches!(FecOti::raptorq(1, 8, 0, 4), Err(E::Blocks { .. })));
        assert!(matches!(FecOti::raptorq(8, 8, 2, 4), Err(E::Blocks { .. })));
        assert!(matches!(FecOti::raptor(24, 8, 1, 4), Err(E::Blocks { .. })), "three symbols");
        assert!(matches!(FecOti::raptor(56, 8, 2, 4), Err(E::Blocks { .. })), "four and three");
        for oti in [FecOti::no_code(0, 1, 0), FecOti::raptorq(0, 8, 0, 4)] {
            assert_eq!(oti.unwrap().blocks(), 0);
        }
    }

    proptest! {
        #[test]
        fn blocks_cover_the_object(
            scheme in prop::sample::select(FecScheme::ALL.to_vec()),
            length in 0u64..1 << 40,
            shift in 0u32..40,
            symbol_size: u16,
            cut: u16,
        ) {
            let length = length >> shift;
            let oti = match scheme {
                FecScheme::NoCode => FecOti::no_code(length, symbol_size, cut.into()),
                FecScheme::ReedSolomon => FecOti::reed_solomon(length, symbol_size, cut.into(), 255),
                FecScheme::Raptor => FecOti::raptor(length, symbol_size, cut, 1),
                FecScheme::RaptorQ => FecOti::raptorq(length, symbol_size, cut as u8, 1),
            };
            let Ok(oti) = oti else { return Ok(()) };
            let mut end = 0;
            for number in (0..oti.blocks()).take(1000) {
                let block = oti.block(number).unwrap();
                prop_assert_eq!(block.range.start, end);
                prop_assert!(block.symbols > 0 && block.range.end > end);
                end = block.range.end;
            }
            prop_assert!(end == length || oti.blocks() > 1000);
        }
    }
}
