use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::counting;

/// An erasure code, by the identifier that handshakes and descriptors carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// RaptorQ, RFC 6330: k + 0 / 1 / 2 symbols fail with probability below 10⁻² / 10⁻⁴ / 10⁻⁶.
    RaptorQ,
    /// Counts symbols and fails as often as RaptorQ would, but carries no bytes: for long simulations.
    Counting,
}

/// An identifier or name that no code has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no code called {0:?}; the codes are raptorq and counting")]
pub struct UnknownCode(pub String);

impl Code {
    /// Every code there is.
    pub const ALL: [Self; 2] = [Self::RaptorQ, Self::Counting];

    /// The identifier on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::RaptorQ => 1,
            Self::Counting => 0xff,
        }
    }

    /// The code with this identifier.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.id() == id)
    }

    /// The name that people write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RaptorQ => "raptorq",
            Self::Counting => "counting",
        }
    }

    /// The most source symbols that a block may have.
    pub const fn max_source_symbols(self) -> u32 {
        match self {
            Self::RaptorQ => crate::raptorq::MAX_SOURCE_SYMBOLS,
            Self::Counting => 1 << 20,
        }
    }

    /// Encoding symbol identifiers lie below this.
    pub const fn esi_limit(self) -> u32 {
        match self {
            // RFC 6330, section 3.2: the ESI is a 24-bit unsigned integer.
            Self::RaptorQ | Self::Counting => 1 << 24,
        }
    }

    /// The probability that any k + `extra` symbols do not suffice, as measured (`docs/codes.md`).
    pub fn failure_probability(self, extra: u32) -> f64 {
        match self {
            Self::RaptorQ | Self::Counting => {
                counting::RAPTORQ.get(extra as usize).copied().unwrap_or(0.0)
            }
        }
    }

    /// Whether symbols carry bytes.
    pub const fn carries_bytes(self) -> bool {
        matches!(self, Self::RaptorQ)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL
            .into_iter()
            .find(|code| code.name() == text)
            .ok_or_else(|| UnknownCode(text.to_owned()))
    }
}
