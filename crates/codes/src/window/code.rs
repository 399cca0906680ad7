use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::tinymt32::TinyMt32;

/// A window code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowCode {
    /// A systematic convolutional code (n, k, m): after every k source symbols n − k repair
    /// symbols, each over these and the m groups of k before them. Written `conv:n,k,m`.
    Convolutional {
        /// Symbols sent for each group.
        n: u8,
        /// Source symbols in a group.
        k: u8,
        /// Groups that the code remembers.
        m: u8,
    },
    /// On-the-fly coding in the manner of Tetrys (RFC 9407), with coefficients of RFC 8681 and
    /// packets of our own: repair symbols whenever wanted, over all source symbols that nobody has
    /// acknowledged, up to a limit. Written `tetrys:limit`.
    Tetrys {
        /// The most source symbols in a window.
        limit: u16,
    },
}

/// What is no window code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no window code: write conv:n,k,m with 0 < k < n, or tetrys:limit with a limit from 1 to 4096, \
     as in conv:5,4,3 or tetrys:64"
)]
pub struct UnknownWindowCode(pub String);

/// Identifiers on the wire.
const CONVOLUTIONAL: u8 = 0x40;
const TETRYS: u8 = 0x41;

/// The largest window: what a decoder solves costs its square.
const MAX_WINDOW: u16 = 4096;

impl WindowCode {
    /// What two ends must agree on, as four bytes for a handshake: the identifier, then n, k and m,
    /// or the limit and a zero.
    pub const fn to_bytes(self) -> [u8; 4] {
        match self {
            Self::Convolutional { n, k, m } => [self.id(), n, k, m],
            Self::Tetrys { limit } => {
                let [high, low] = limit.to_be_bytes();
                [self.id(), high, low, 0]
            }
        }
    }

    /// The code that these bytes name; `None` if there is none with this identifier or these
    /// parameters.
    pub const fn from_bytes([id, a, b, c]: [u8; 4]) -> Option<Self> {
        match (id, c) {
            (CONVOLUTIONAL, _) => Self::convolutional(a, b, c),
            (TETRYS, 0) => Self::tetrys(u16::from_be_bytes([a, b])),
            _ => None,
        }
    }

    /// The identifier on the wire; parameters are negotiated beside it.
    pub const fn id(self) -> u8 {
        match self {
            Self::Convolutional { .. } => CONVOLUTIONAL,
            Self::Tetrys { .. } => TETRYS,
        }
    }

    /// A convolutional code, if there is one with these parameters.
    pub const fn convolutional(n: u8, k: u8, m: u8) -> Option<Self> {
        if k > 0 && n > k && (k as u32) * (m as u32 + 1) <= MAX_WINDOW as u32 {
            Some(Self::Convolutional { n, k, m })
        } else {
            None
        }
    }

    /// On-the-fly coding over at most `limit` symbols (1 to 4096).
    pub const fn tetrys(limit: u16) -> Option<Self> {
        if limit > 0 && limit <= MAX_WINDOW { Some(Self::Tetrys { limit }) } else { None }
    }

    /// The most source symbols that a repair symbol is the sum of.
    pub const fn window(self) -> u32 {
        match self {
            Self::Convolutional { k, m, .. } => k as u32 * (m as u32 + 1),
            Self::Tetrys { limit } => limit as u32,
        }
    }

    /// The factors of the `count` source symbols of a window, first to last, in repair symbol
    /// `repair`: those of RFC 8681 (section 3.6) in GF(2⁸) with a density of 15, so none is zero.
    /// An on-the-fly code's key is the repair symbol's number. A convolutional code's is that of
    /// the repair symbol in its group, and its factors are drawn from the last source symbol
    /// backwards, so that they depend on the distance from it alone and are the same at any time.
    pub(crate) fn coefficients(self, repair: u32, count: usize) -> Vec<u8> {
        let draw = |key| {
            let mut generator = TinyMt32::new(key);
            let bytes = core::iter::repeat_with(move || generator.next_u32() as u8);
            bytes.filter(|byte| *byte != 0).take(count).collect::<Vec<_>>()
        };
        match self {
            Self::Convolutional { n, k, .. } => {
                let mut factors = draw(repair % u32::from(n - k));
                factors.reverse();
                factors
            }
            Self::Tetrys { .. } => draw(repair),
        }
    }
}

impl fmt::Display for WindowCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Convolutional { n, k, m } => write!(f, "conv:{n},{k},{m}"),
            Self::Tetrys { limit } => write!(f, "tetrys:{limit}"),
        }
    }
}

impl FromStr for WindowCode {
    type Err = UnknownWindowCode;

    fn from_str(text: &str) -> Result<Self, UnknownWindowCode> {
        let parsed = match text.split_once(':') {
            Some(("conv", numbers)) => {
                let mut numbers = numbers.split(',').map(|number| number.trim().parse().ok());
                let mut next = || numbers.next().flatten();
                match (next(), next(), next(), next()) {
                    (Some(n), Some(k), Some(m), None) => Self::convolutional(n, k, m),
                    _ => None,
                }
            }
            Some(("tetrys", limit)) => limit.trim().parse().ok().and_then(Self::tetrys),
            _ => None,
        };
        parsed.ok_or_else(|| UnknownWindowCode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn factors_are_those_of_rfc_8681() {
        // The low bytes of the generator's outputs for key 1 (RFC 8682).
        let factors = WindowCode::Tetrys { limit: 64 }.coefficients(1, 10);
        assert_eq!(factors, [37, 225, 177, 176, 21, 246, 54, 139, 168, 237]);
        let code = WindowCode::Convolutional { n: 6, k: 3, m: 1 };
        let backwards: Vec<u8> = factors[..6].iter().rev().copied().collect();
        assert_eq!(code.coefficients(4, 6), backwards);
        assert_eq!(code.coefficients(4, 3), backwards[3..], "the distance decides");
    }

    #[test]
    fn window_codes_read_what_they_write() {
        for text in ["conv:5,4,3", "conv:3,1,0", "tetrys:64", "tetrys:4096"] {
            let code: WindowCode = text.parse().unwrap();
            assert_eq!(code.to_string(), text);
            assert_eq!(WindowCode::from_bytes(code.to_bytes()), Some(code), "{text}");
        }
        for text in
            ["conv:4,4,3", "conv:4,0,3", "conv:5,4", "conv:5,4,3,2", "tetrys:0", "tetrys:4097", "x"]
        {
            assert!(text.parse::<WindowCode>().is_err(), "{text}");
        }
        for bytes in [[0x40, 4, 4, 3], [0x41, 0, 0, 0], [0x41, 0, 64, 1], [0x42, 5, 4, 3], [0; 4]] {
            assert_eq!(WindowCode::from_bytes(bytes), None, "{bytes:?}");
        }
    }
}
