use fontis_proto::dfcp::{ConnectionId, ResetToken};

use super::cookie::Cookie;

pub(super) const SYN: u8 = 0x01;
/// The first byte of the second handshake message.
pub const SYNACK: u8 = 0x02;
const VERSION_NEGOTIATION: u8 = 0x03;
const RESET: u8 = 0x04;
/// The first byte of the answer to a SYN that was encrypted for another key.
pub const UNKNOWN_KEY: u8 = 0x05;
const COOKIE: u8 = 0x06;
const PROVED_SYN: u8 = 0x07;
pub(super) const SEALED: u8 = 0x40;

/// The bytes before a SYN with a cookie: the type and the cookie.
pub const PROVED_SYN_HEADER: usize = 1 + 16;

/// The cleartext fields of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// A connection request.
    Syn {
        /// The proof that the initiator receives at its address, if there is one.
        cookie: Option<Cookie>,
        /// The version asked for.
        version: u32,
        /// The initiator's identifier.
        source: ConnectionId,
    },
    /// A packet for a connection of this side.
    For(ConnectionId),
    /// The versions that the other side speaks.
    VersionNegotiation {
        /// The initiator's identifier.
        destination: ConnectionId,
        /// The versions.
        versions: Vec<u32>,
    },
    /// The other side knows nothing of the connection.
    Reset {
        /// The identifier in the packet that caused it, as the other side knew it.
        destination: ConnectionId,
        /// The proof.
        token: ResetToken,
    },
    /// The other side could not read the SYN. Anybody could have sent this: it is a hint, not a
    /// fact.
    UnknownKey {
        /// The initiator's identifier.
        destination: ConnectionId,
    },
    /// The other side opens the SYN when it comes with this cookie.
    Cookie {
        /// The initiator's identifier.
        destination: ConnectionId,
        /// The cookie to show.
        cookie: Cookie,
    },
}

fn id(bytes: &[u8]) -> Option<ConnectionId> {
    Some(ConnectionId(bytes.get(..8)?.try_into().ok()?))
}

/// The connection that a datagram is for, if it is one of those that follow the handshake.
pub fn sealed_for(datagram: &[u8]) -> Option<ConnectionId> {
    let (&kind, rest) = datagram.split_first()?;
    (kind & 0xc0 == SEALED).then(|| id(rest)).flatten()
}

/// Reads the cleartext fields; `None` if it is no datagram of Fontis.
pub fn header(datagram: &[u8]) -> Option<Header> {
    let (&kind, rest) = datagram.split_first()?;
    Some(match kind {
        SYN => {
            let version = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
            Header::Syn { cookie: None, version, source: id(&rest[4..])? }
        }
        PROVED_SYN => {
            let (cookie, syn) = rest.split_at_checked(PROVED_SYN_HEADER - 1)?;
            match header(syn)? {
                Header::Syn { cookie: None, version, source } => {
                    Header::Syn { cookie: Some(cookie.try_into().ok()?), version, source }
                }
                _ => return None,
            }
        }
        COOKIE => {
            let cookie = rest.get(8..24)?.try_into().ok()?;
            Header::Cookie { destination: id(rest)?, cookie }
        }
        SYNACK => Header::For(id(rest)?),
        VERSION_NEGOTIATION => {
            let destination = id(rest)?;
            let count = usize::from(*rest.get(8)?);
            let versions = rest.get(9..9 + 4 * count)?;
            let versions = versions
                .chunks_exact(4)
                .filter_map(|v| Some(u32::from_be_bytes(v.try_into().ok()?)));
            Header::VersionNegotiation { destination, versions: versions.collect() }
        }
        RESET => Header::Reset { destination: id(rest)?, token: rest.get(8..24)?.try_into().ok()? },
        UNKNOWN_KEY => Header::UnknownKey { destination: id(rest)? },
        _ => Header::For(sealed_for(datagram)?),
    })
}

/// The datagram of a reset: smaller than any sealed packet, so that two sides cannot reset each
/// other for ever.
pub fn reset(destination: ConnectionId, token: &ResetToken) -> Vec<u8> {
    [&[RESET], &destination.0[..], &token[..]].concat()
}

/// The datagram that tells the versions spoken here.
pub fn version_negotiation(destination: ConnectionId, versions: &[u32]) -> Vec<u8> {
    let mut out = [&[VERSION_NEGOTIATION], &destination.0[..], &[versions.len() as u8]].concat();
    out.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    out
}

/// The datagram that tells that a SYN could not be read with the key used here.
pub fn unknown_key(destination: ConnectionId) -> Vec<u8> {
    [&[UNKNOWN_KEY], &destination.0[..]].concat()
}

/// The datagram that asks for a SYN with this cookie.
pub fn cookie(destination: ConnectionId, cookie: &Cookie) -> Vec<u8> {
    [&[COOKIE], &destination.0[..], &cookie[..]].concat()
}

/// A SYN with a cookie.
pub(super) fn proved_syn(cookie: &Cookie, syn: &[u8]) -> Vec<u8> {
    [&[PROVED_SYN], &cookie[..], syn].concat()
}

/// The token that resets the connection `id`: only who holds `secret` can make it, and it survives
/// a restart.
pub fn reset_token(secret: &[u8; 32], id: ConnectionId) -> ResetToken {
    let mut token = [0; 16];
    token.copy_from_slice(&blake3::keyed_hash(secret, &id.0).as_bytes()[..16]);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_what_was_written() {
        let id = ConnectionId([7; 8]);
        let token = reset_token(&[1; 32], id);
        assert_eq!(header(&reset(id, &token)), Some(Header::Reset { destination: id, token }));
        let negotiation = Header::VersionNegotiation { destination: id, versions: vec![1, 2] };
        assert_eq!(header(&version_negotiation(id, &[1, 2])), Some(negotiation));
        assert_eq!(header(&unknown_key(id)), Some(Header::UnknownKey { destination: id }));
        let asked = Header::Cookie { destination: id, cookie: [5; 16] };
        assert_eq!(header(&cookie(id, &[5; 16])), Some(asked));
        let syn = [&[SYN, 0, 0, 0, 1][..], &id.0, &[0; 1187]].concat();
        let proved = proved_syn(&[5; 16], &syn);
        let read = Header::Syn { cookie: Some([5; 16]), version: 1, source: id };
        assert_eq!(header(&proved), Some(read));
        assert_eq!(&proved[PROVED_SYN_HEADER..], syn);
        // One within the other is none.
        assert_eq!(header(&proved_syn(&[5; 16], &proved)), None);
    }

    #[test]
    fn short_and_foreign_datagrams_have_no_header() {
        for kind in 0..=255u8 {
            for length in 0..30 {
                let _ = header(&vec![kind; length]);
            }
        }
        assert_eq!(header(&[]), None);
        assert_eq!(header(&[0x40, 1, 2]), None);
        assert_eq!(header(b"GET / HTTP/1.1\r\n"), Some(Header::For(ConnectionId(*b"ET / HTT"))));
        assert_eq!(header(&[0xff; 40]), None);
    }
}
