//! The cookie: all that a server would have to remember of a stranger (RFC 9260 section 5.1.3).

use core::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::config::{SECRET_CODE, SctpSecret};
use super::features::Features;
use super::offer::AuthParameters;

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
    /// What the peer says of authentication, if both ends authenticate. What this end says follows
    /// from its tag and its TSN.
    pub(super) auth: Option<Box<AuthParameters>>,
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
/// In the byte of features: another one follows.
const HAS_MORE: u8 = 0x80;

impl Cookie {
    pub(super) fn seal(&self, secret: &SctpSecret) -> Bytes {
        let mut bytes = Vec::with_capacity(FIXED + SECRET_CODE + 34);
        bytes.extend_from_slice(&self.made.as_nanos().to_be_bytes());
        self.ports.iter().for_each(|port| bytes.extend_from_slice(&port.to_be_bytes()));
        let words = self.tags.iter().chain(&self.tsns).chain(&self.ties).chain([&self.window]);
        words.for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        self.streams.iter().for_each(|streams| bytes.extend_from_slice(&streams.to_be_bytes()));
        let [more, bits] = self.features.bits().to_be_bytes();
        bytes.push(bits | if more == 0 { 0 } else { HAS_MORE });
        if more != 0 {
            bytes.push(more);
        }
        if let Some(auth) = &self.auth {
            seal_auth(auth, &mut bytes);
        }
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
        let mut bits = u16::from(fixed[44] & !HAS_MORE);
        if fixed[44] & HAS_MORE != 0 {
            let (more, after) = rest.split_first()?;
            bits |= u16::from(*more) << 8;
            rest = after;
        }
        let features = Features::of_bits(bits);
        let mut auth = None;
        if features.auth {
            let (parameters, after) = read_auth(rest)?;
            (auth, rest) = (Some(Box::new(parameters)), after);
        }
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
            features,
            auth,
            addresses,
        })
    }
}

/// Writes the random number, the number of types and these, and the number of hashes and these.
fn seal_auth(auth: &AuthParameters, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&auth.random);
    // No list is another thing than an empty one.
    let kinds = auth.kinds.as_ref().map_or(0, |kinds| kinds.len() as u16 + 1);
    bytes.extend_from_slice(&kinds.to_be_bytes());
    bytes.extend(auth.kinds.iter().flatten());
    bytes.push(auth.hashes.len() as u8);
    auth.hashes.iter().for_each(|hash| bytes.extend_from_slice(&hash.to_be_bytes()));
}

fn read_auth(bytes: &[u8]) -> Option<(AuthParameters, &[u8])> {
    let (random, bytes) = bytes.split_first_chunk()?;
    let (kinds, bytes) = bytes.split_first_chunk()?;
    let mut rest = bytes;
    let kinds = match u16::from_be_bytes(*kinds).checked_sub(1) {
        None => None,
        Some(count) => {
            let (kinds, after) = rest.split_at_checked(count.into())?;
            rest = after;
            Some(SmallVec::from_slice(kinds))
        }
    };
    let (count, after) = rest.split_first()?;
    let (hashes, rest) = after.split_at_checked(2 * usize::from(*count))?;
    let hashes = hashes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some((AuthParameters { random: *random, kinds, hashes: hashes.collect() }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> SctpSecret {
        SctpSecret::new(|bytes| {
            let sum = bytes
                .iter()
                .fold(7u64, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte));
            (u128::from(sum) << 64 | u128::from(!sum)).to_be_bytes()
        })
    }

    fn cookie() -> Cookie {
        Cookie {
            made: Time::from_nanos(1 << 40),
            ports: [5, 6],
            tags: [1, 2],
            tsns: [3, 4],
            ties: [7, 8],
            window: 99,
            streams: [10, 11],
            features: Features::of_bits(3),
            auth: None,
            addresses: SmallVec::from_iter([IpAddr::from([1, 2, 3, 4]), IpAddr::from([9; 16])]),
        }
    }

    #[test]
    fn a_cookie_opens_as_it_was_and_not_if_a_bit_is_changed_or_it_is_old() {
        let (secret, cookie) = (secret(), cookie());
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

    #[test]
    fn a_cookie_keeps_what_the_peer_says_of_authentication_and_its_size_is_bounded() {
        let secret = secret();
        let longest: Vec<u8> = (0..=254).collect();
        for kinds in [None, Some(&[][..]), Some(&[0, 0xc1][..]), Some(&longest[..])] {
            let hashes = SmallVec::from_elem(3, if kinds.is_some() { 16 } else { 1 });
            let kinds = kinds.map(SmallVec::from_slice);
            let auth = AuthParameters { random: [9; 32], kinds, hashes };
            let features = Features { auth: true, dynamic: true, ..Features::of_bits(5) };
            let cookie = Cookie { features, auth: Some(Box::new(auth)), ..cookie() };
            let sealed = cookie.seal(&secret);
            assert!(sealed.len() < 480, "{}", sealed.len());
            let opened = Cookie::open(&sealed, &secret, cookie.made, Duration::from_secs(1));
            assert_eq!(opened, Ok(cookie));
            // What is cut off is refused, also under a good code.
            let content = &sealed[..sealed.len() - SECRET_CODE];
            let auth_ends = content.len() - 5 - 17;
            for len in 0..auth_ends {
                assert_eq!(Cookie::read(&content[..len]), None, "{len}");
            }
        }
    }
}
