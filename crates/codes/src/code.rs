use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use thiserror::Error;

use crate::degrees::Distribution;
use crate::raptorq::parameters::Family;
use crate::sparse::SparseCode;
use crate::{counting, raptorq, reed_solomon};

/// A block code, by the identifier that handshakes and descriptors carry.
///
/// All are systematic here: the first k symbols are those of the source. One who wants to send as
/// the published LT codes do begins with symbol k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// RaptorQ, RFC 6330: k + 0 / 1 / 2 symbols fail with probability below 10⁻² / 10⁻⁴ / 10⁻⁶.
    RaptorQ,
    /// R10, RFC 5053: k + h symbols fail with probability 0.85 · 0.567ʰ.
    Raptor10,
    /// An LT code with robust soliton (c = 0.03, δ = 0.5), decoded by peeling.
    Lt,
    /// An LT code with ideal soliton, decoded by peeling: what theory begins with, and no practice
    /// ends with.
    LtIdeal,
    /// The code of the 2015 prototype of DFCP, made for symbols of one byte and blocks of 63,536
    /// ([`SparseCode::PROTOTYPE`]).
    LegacyByte,
    /// Reed-Solomon over GF(2¹⁶): any k symbols suffice, but there are only about 2 k to 3 k.
    ReedSolomon,
    /// Counts symbols and fails as often as RaptorQ would, but carries no bytes: for long
    /// simulations.
    Counting,
    /// The same for R10.
    CountingRaptor10,
    /// The same for LT codes with robust soliton, if nothing but encoded symbols comes.
    CountingLt,
    /// The same for LT codes with ideal soliton, if nothing but encoded symbols comes.
    CountingLtIdeal,
    /// The same for the code of the 2015 prototype, if nothing but encoded symbols comes.
    CountingLegacyByte,
    /// The same for Reed-Solomon, which never fails.
    CountingReedSolomon,
}

/// An identifier or name that no code has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no code called {0:?}; the codes are raptorq, r10, lt, lt-ideal, legacy-byte, reed-solomon, counting, \
     counting-r10, counting-lt, counting-lt-ideal, counting-legacy-byte and counting-reed-solomon"
)]
pub struct UnknownCode(pub String);

impl Code {
    /// Every code there is.
    pub const ALL: [Self; 12] = [
        Self::RaptorQ,
        Self::Raptor10,
        Self::Lt,
        Self::LtIdeal,
        Self::LegacyByte,
        Self::ReedSolomon,
        Self::Counting,
        Self::CountingRaptor10,
        Self::CountingLt,
        Self::CountingLtIdeal,
        Self::CountingLegacyByte,
        Self::CountingReedSolomon,
    ];

    /// The identifier on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::RaptorQ => 1,
            Self::Raptor10 => 2,
            Self::Lt => 3,
            Self::LtIdeal => 4,
            Self::LegacyByte => 5,
            Self::ReedSolomon => 6,
            Self::Counting => 0xff,
            Self::CountingRaptor10 => 0xfe,
            Self::CountingLegacyByte => 0xfd,
            Self::CountingReedSolomon => 0xfc,
            Self::CountingLt => 0xfb,
            Self::CountingLtIdeal => 0xfa,
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
            Self::Raptor10 => "r10",
            Self::Lt => "lt",
            Self::LtIdeal => "lt-ideal",
            Self::LegacyByte => "legacy-byte",
            Self::ReedSolomon => "reed-solomon",
            Self::Counting => "counting",
            Self::CountingRaptor10 => "counting-r10",
            Self::CountingLt => "counting-lt",
            Self::CountingLtIdeal => "counting-lt-ideal",
            Self::CountingLegacyByte => "counting-legacy-byte",
            Self::CountingReedSolomon => "counting-reed-solomon",
        }
    }

    /// How many source symbols a block may have. The counting codes count what theirs could not
    /// number.
    pub const fn source_symbols(self) -> RangeInclusive<u32> {
        match self {
            Self::RaptorQ => 1..=raptorq::MAX_SOURCE_SYMBOLS,
            Self::Raptor10 => raptorq::RAPTOR10_SOURCE_SYMBOLS,
            Self::Lt | Self::LtIdeal => 1..=1 << 16,
            Self::LegacyByte => 1..=SparseCode::PROTOTYPE.message as u32,
            Self::ReedSolomon => 1..=reed_solomon::MAX_SOURCE_SYMBOLS,
            Self::Counting
            | Self::CountingRaptor10
            | Self::CountingLt
            | Self::CountingLtIdeal
            | Self::CountingLegacyByte
            | Self::CountingReedSolomon => 1..=1 << 20,
        }
    }

    /// The most source symbols that a block may have.
    pub const fn max_source_symbols(self) -> u32 {
        *self.source_symbols().end()
    }

    /// Encoding symbol identifiers lie below this; some blocks have fewer
    /// ([`BlockShape::esi_limit`](crate::BlockShape::esi_limit)).
    pub const fn esi_limit(self) -> u32 {
        match self {
            // RFC 5053, section 3.1: the ESI is a 16-bit unsigned integer.
            Self::Raptor10 => 1 << 16,
            // Symbols come from one generator after another, so one far ahead is not for free.
            Self::Lt | Self::LtIdeal | Self::LegacyByte => 1 << 20,
            // RFC 6330, section 3.2: the ESI is a 24-bit unsigned integer.
            _ => 1 << 24,
        }
    }

    /// Whether symbols carry bytes.
    pub const fn carries_bytes(self) -> bool {
        !matches!(
            self,
            Self::Counting
                | Self::CountingRaptor10
                | Self::CountingLt
                | Self::CountingLtIdeal
                | Self::CountingLegacyByte
                | Self::CountingReedSolomon
        )
    }

    /// The probability that k + `extra` symbols of a block of `k` do not suffice, as measured
    /// (`docs/codes.md`).
    pub fn failure_probability(self, k: u32, extra: u32) -> f64 {
        match self {
            Self::RaptorQ | Self::Counting => counting::raptorq(extra),
            Self::Raptor10 | Self::CountingRaptor10 => counting::raptor10(extra),
            Self::LegacyByte | Self::CountingLegacyByte => counting::legacy_byte(k, extra),
            Self::ReedSolomon | Self::CountingReedSolomon => 0.0,
            Self::Lt | Self::CountingLt => counting::lt(k, extra),
            Self::LtIdeal | Self::CountingLtIdeal => counting::lt_ideal(k, extra),
        }
    }

    /// Symbols beyond k that it makes no sense to try without.
    pub(crate) const fn least_extra(self, k: u32) -> u32 {
        match self {
            // Of whole blocks one in a thousand is content with so little.
            Self::LegacyByte | Self::CountingLegacyByte
                if k == SparseCode::PROTOTYPE.message as u32 =>
            {
                k / 1000 * 32
            }
            _ => 0,
        }
    }

    /// How many symbols to wait for when those that came did not suffice and nobody knows how many
    /// are lacking.
    pub(crate) const fn step(self, k: u32) -> u32 {
        match self {
            Self::Lt
            | Self::LtIdeal
            | Self::LegacyByte
            | Self::CountingLt
            | Self::CountingLtIdeal
            | Self::CountingLegacyByte => 1 + k / 1000,
            _ => 1,
        }
    }

    /// Symbols beyond k with which any set that nobody chose suffices.
    pub(crate) const fn most_extra(self, k: u32) -> u32 {
        match self {
            Self::Lt
            | Self::LtIdeal
            | Self::LegacyByte
            | Self::CountingLt
            | Self::CountingLtIdeal
            | Self::CountingLegacyByte => self.esi_limit(),
            _ => k / 4 + 64,
        }
    }

    /// The code of sums that this is, for blocks of `k` symbols.
    pub(crate) const fn sparse(self, k: u32) -> Option<SparseCode> {
        match self {
            Self::Lt => {
                let distribution = Distribution::RobustSoliton { c: 0.03, delta: 0.5 };
                Some(SparseCode::lt(k as usize, distribution))
            }
            Self::LtIdeal => Some(SparseCode::lt(k as usize, Distribution::IdealSoliton)),
            Self::LegacyByte => Some(SparseCode::PROTOTYPE),
            _ => None,
        }
    }

    /// Which of the Raptor codes this is.
    pub(crate) const fn family(self) -> Option<Family> {
        match self {
            Self::RaptorQ => Some(Family::RaptorQ),
            Self::Raptor10 => Some(Family::Raptor10),
            _ => None,
        }
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn identifiers_and_names_are_unique_and_found() {
        for code in Code::ALL {
            assert_eq!(Code::from_id(code.id()), Some(code));
            assert_eq!(code.name().parse(), Ok(code));
            let unknown = UnknownCode("none".to_owned()).to_string();
            assert!(unknown.contains(code.name()), "the error names {code}");
        }
        assert_eq!((Code::from_id(0), Code::from_id(7)), (None, None));
    }
}
