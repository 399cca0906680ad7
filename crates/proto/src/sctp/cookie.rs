//! The cookie: all that a server would have to remember of a stranger (RFC 9260 section 5.1.3).

use core::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::config::{SECRET_CODE, SctpSecret};
use super::features::Features;

/// The content of a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub(super) made: Time,
    /// The ports of the client and of the server.
    pub(super) ports: [u16; 2],
    /// The tags that this end and the peer have chosen.
    pub(super) tags: [u32; 2],
    /// The first TSNs of this end and of the peer.
    pub(super) tsns: [u32; 2],
    /// The tags of an association that was there when the cookie was made; zeros if none was.
    pub(super) ties: [u32; 2],
    pub(super) window: u32,
    /// Streams to the peer and from it.
    pub(super) streams: [u16; 2],
    pub(super) features: Features,
    /// The peer's addresses, the one that asked first.
    pub(super) addresses: SmallVec<[IpAddr; 2]>,
}

/// Why a cookie is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadCookie {
    /// It is forged, damaged or of another server.
    Forged,
    /// It is older than it may be by this.
    Stale(Duration),
}

/// Bytes before the addresses.
const FIXED: usize = 8 + 4 + 8 + 8 + 8 + 4 + 4 + 1;

impl Cookie {
    pub(super) fn seal(&self, secret: &SctpSecret) -> Bytes {
        let mut bytes = Vec::with_capacity(FIXED + SECRET_CODE + 34);
        bytes.extend_from_slice(&self.made.as_nanos().to_be_bytes());
        self.ports.iter().for_each(|port| bytes.extend_from_slice(&port.to_be_bytes()));
        let words = self.tags.iter().chain(&self.tsns).chain(&self.ties).chain([&self.window]);
        words.for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        self.streams.iter().for_each(|streams| bytes.extend_from_slice(&streams.to_be_bytes()));
        bytes.push(self.features.bits());
        for address in &self.addresses {
            match address {
                IpAddr::V4(address) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&address.octets());
                }
                IpAddr::V6(address) => {
                    bytes.push(16);
                    bytes.extend_from_slice(&address.octets());
                }
            }
        }
        let code = secret.code(&bytes);
        bytes.extend_from_slice(&code);
        bytes.into()
    }

    /// The cookie that these bytes are, if this end has sealed them no longer than `life` ago.
    pub(super) fn open(
        bytes: &[u8],
        secret: &SctpSecret,
        now: Time,
        life: Duration,
    ) -> Result<Self, BadCookie> {
        let content = bytes.len().checked_sub(SECRET_CODE).ok_or(BadCookie::Forged)?;
        let (content, code) = bytes.split_at(content);
        if !secret.is_code(content, code) {
            return Err(BadCookie::Forged);
        }
        let cookie = Self::read(content).ok_or(BadCookie::Forged)?;
        if cookie.made > now {
            return Err(BadCookie::Forged);
        }
        let age = now.since(cookie.made);
        if age > life {
            return Err(BadCookie::Stale(age - life));
        }
        Ok(cookie)
    }

    fn read(content: &[u8]) -> Option<Self> {
        let (fixed, mut rest) = content.split_at_checked(FIXED)?;
        let word = |at: usize| {
            let bytes = fixed[at..at + 4].iter();
            bytes.fold(0, |word: u32, byte| word << 8 | u32::from(*byte))
        };
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let made = u64::from(word(0)) << 32 | u64::from(word(4));
        let mut addresses = SmallVec::new();
        while let Some((len, after)) = rest.split_first() {
            let (address, after) = after.split_at_checked((*len).into())?;
            addresses.push(match address.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
            });
            rest = after;
        }
        Some(Self {
            made: Time::from_nanos(made),
            ports: [half(8), half(10)],
            tags: [word(12), word(16)],
            tsns: [word(20), word(24)],
            ties: [word(28), word(32)],
            window: word(36),
            streams: [half(40), half(42)],
            features: Features::of_bits(fixed[44]),
            addresses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_opens_as_it_was_and_not_if_a_bit_is_changed_or_it_is_old() {
        let secret = SctpSecret::new(|bytes| {
            let sum = bytes
                .iter()
                .fold(7u64, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte));
            (u128::from(sum) << 64 | u128::from(!sum)).to_be_bytes()
        });
        let cookie = Cookie {
            made: Time::from_nanos(1 << 40),
            ports: [5, 6],
            tags: [1, 2],
            tsns: [3, 4],
            ties: [7, 8],
            window: 99,
            streams: [10, 11],
            features: Features::of_bits(3),
            addresses: SmallVec::from_iter([IpAddr::from([1, 2, 3, 4]), IpAddr::from([9; 16])]),
        };
        let life = Duration::from_secs(60);
        let sealed = cookie.seal(&secret);
        let now = cookie.made + life;
        assert_eq!(Cookie::open(&sealed, &secret, now, life), Ok(cookie));
        let late = now + Duration::from_secs(1);
        let stale = BadCookie::Stale(Duration::from_secs(1));
        assert_eq!(Cookie::open(&sealed, &secret, late, life), Err(stale));
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Cookie::open(&forged, &secret, now, life), Err(BadCookie::Forged));
        }
        assert_eq!(Cookie::open(&[], &secret, now, life), Err(BadCookie::Forged));
    }
}
