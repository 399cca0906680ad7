//! Packet protection: the Noise IK handshake and AES-128-GCM, as the
//! [`Session`](fontis_proto::dfcp::Session) between typed packets and datagrams. `docs/protocol.md`
//! specifies every byte.
//!
//! Start here: a client has an [`Initiator`]; a server opens a SYN with [`open_syn`], which costs
//! two Diffie–Hellman operations and yields a [`Responder`] for the connection. When the second
//! message has passed, both have the keys of sealed packets, which change every four million
//! packets.

use std::net::IpAddr;

mod cookie;
mod handshake;
mod keys;
mod packets;
mod seal;
mod token;

pub use cookie::{Cookie, Cookies};
pub use handshake::{Initiator, OpenedSyn, Responder, SynError, open_syn};
pub(crate) use handshake::{SynMark, syn_mark};
pub use keys::Opened;
pub use packets::{
    Header, PROVED_SYN_HEADER, SYNACK, UNKNOWN_KEY, cookie, header, reset, reset_token, sealed_for,
    unknown_key, version_negotiation,
};
pub use seal::Seal;
pub(crate) use token::{LIFE as TOKEN_LIFE, Tokens};

/// A secret that both sides hold besides their keys: without it no handshake succeeds.
pub type PresharedKey = [u8; 32];

/// The Noise protocol without and with a pre-shared key.
const PATTERN: &str = "Noise_IK_25519_AESGCM_BLAKE2s";
/// The key stands in the first message, so that its payload cannot be read or made without it.
const PATTERN_PSK: &str = "Noise_IKpsk1_25519_AESGCM_BLAKE2s";

/// An address as sixteen bytes: the same for an IPv4 address and its form in IPv6.
pub(crate) fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// A handshake that is to be built. Tests of the whole library choose its ephemeral keys.
fn handshake(psk: Option<&PresharedKey>) -> snow::Builder<'static> {
    let name = if psk.is_some() { PATTERN_PSK } else { PATTERN };
    let pattern = name.parse().expect("a pattern of our own");
    #[cfg(test)]
    return snow::Builder::with_resolver(pattern, crate::whole::keys::resolver());
    #[cfg(not(test))]
    snow::Builder::new(pattern)
}
