use thiserror::Error;

/// A datagram that is no packet of FLUTE, or one that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AlcError {
    /// It ends within a field.
    #[error("a datagram of {0} bytes ends within its header")]
    Short(usize),
    /// Its LCT header has another version.
    #[error("LCT version {0} is not understood, only 1 is")]
    Version(u8),
    /// The length of its LCT header contradicts its fields.
    #[error("a header of {0} words has no room for its fields")]
    HeaderLength(u8),
    /// A header extension does not fit.
    #[error("header extension {0} does not fit into its header")]
    Extension(u8),
    /// Its FDT instance has another version of FLUTE.
    #[error("FLUTE version {0} is not understood, only 2 is")]
    FluteVersion(u8),
    /// There is no such FEC scheme here.
    #[error("FEC encoding {0} is not understood: 0, 1, 5 and 6 are")]
    Scheme(u8),
    /// Its FEC transmission information is wrong.
    #[error(transparent)]
    Oti(#[from] FecOtiError),
    /// Its object is announced with other FEC transmission information.
    #[error("object {0} is cut in another way than was announced")]
    Contradiction(u128),
    /// There is no such symbol.
    #[error("the object has no symbol {esi} in block {block}")]
    Symbol {
        /// The source block number.
        block: u32,
        /// The encoding symbol identifier.
        esi: u32,
    },
    /// A symbol has the wrong length.
    #[error("{0} bytes are no whole symbols")]
    SymbolLength(usize),
    /// Its FDT instance cannot be read.
    #[error(transparent)]
    Fdt(#[from] FdtError),
}

/// FEC transmission information that no object can have, or none that is understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FecOtiError {
    /// The encoded form has another length.
    #[error("{0} bytes are no transmission information of this FEC scheme")]
    Length(usize),
    /// There is no such FEC scheme here.
    #[error("FEC encoding {0} is not understood: 0, 1, 5 and 6 are")]
    Scheme(u64),
    /// An attribute is needed and not there.
    #[error("the attribute {0} is missing")]
    Missing(&'static str),
    /// An attribute is no number, or one that is too large.
    #[error("the attribute {0} is {1:?}, which it cannot be")]
    Attribute(&'static str, String),
    /// The object is longer than the scheme can number.
    #[error("an object of {0} bytes is too long for this FEC scheme")]
    TransferLength(u64),
    /// Symbols of this size are impossible.
    #[error("symbols of {size} bytes are impossible with an alignment of {alignment}")]
    SymbolSize {
        /// T, in bytes.
        size: u16,
        /// Al, in bytes.
        alignment: u8,
    },
    /// The blocks do not suit the scheme.
    #[error("{symbols} symbols cannot be cut into {blocks} source blocks with this FEC scheme")]
    Blocks {
        /// Source symbols of the object.
        symbols: u64,
        /// Source blocks.
        blocks: u64,
    },
    /// A block would have more symbols than the scheme numbers.
    #[error("blocks of {source} symbols, and {all} with repair, are too large for this FEC scheme", source = .k)]
    BlockLength {
        /// B, the most source symbols.
        k: u32,
        /// The most encoding symbols.
        all: u32,
    },
    /// Many symbols that are tiny cost far more to decode than to send.
    #[error("a block of {symbols} symbols of {size} bytes is not decoded: 64 bytes are the least")]
    TinySymbols {
        /// The most source symbols of a block.
        symbols: u32,
        /// T, in bytes.
        size: u16,
    },
    /// Sub-blocks are not implemented.
    #[error("the object has {0} sub-blocks in each block, and only 1 is implemented")]
    SubBlocks(u16),
}

/// An FDT instance that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FdtError {
    /// It is compressed.
    #[error("the FDT instance has content encoding {0}, and only 0, none, is implemented")]
    Encoding(u8),
    /// It is no XML.
    #[error("the FDT instance is no XML: {0}")]
    Xml(String),
    /// It does not begin with its element.
    #[error("the FDT instance has no element FDT-Instance")]
    Root,
    /// It lists too much.
    #[error("the FDT instance lists more than {0} files")]
    TooMany(usize),
    /// What came of it takes more memory than it may.
    #[error("an FDT instance in so small symbols takes too much memory")]
    Memory,
    /// It is longer than one may be.
    #[error("an FDT instance of {0} bytes is too long")]
    Length(u64),
}
