use bytes::Bytes;
use thiserror::Error;

/// A repair symbol over source symbols `first..first + count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairSymbol {
    /// The first source symbol in it.
    pub first: u32,
    /// How many follow each other in it.
    pub count: u16,
    /// Its number, from which its coefficients follow.
    pub id: u32,
    /// Its value.
    pub data: Bytes,
}

/// What is wrong with a symbol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    /// The symbol has the wrong number of bytes.
    #[error("a symbol has {got} bytes instead of {expected}")]
    Length {
        /// The bytes that it has.
        got: usize,
        /// The bytes that it should have.
        expected: usize,
    },
    /// The window of a repair symbol is empty, larger than the code's, or beyond the last number.
    #[error("a repair symbol over {count} source symbols from {first} is not of this code")]
    Window {
        /// The first source symbol.
        first: u32,
        /// The number of source symbols.
        count: u16,
    },
    /// The symbol is too far ahead of what has been received.
    #[error("source symbol {0} is too far ahead")]
    Ahead(u32),
    /// There are no numbers left.
    #[error("there are no more numbers for source symbols")]
    Exhausted,
}
