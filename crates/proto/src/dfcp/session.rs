use bytes::BytesMut;
use thiserror::Error;

use super::packet::DfcpPacket;

/// Packet protection: turns typed packets into datagrams and back. It owns the handshake's keys;
/// the connection never sees a byte of cryptography.
pub trait Session {
    /// Appends the datagram of `packet` to `out`.
    fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError>;

    /// Opens a datagram. What it returns is authentic, but may be a replay.
    fn open(&mut self, datagram: BytesMut) -> Result<DfcpPacket, OpenError>;
}

/// A packet cannot be sealed: the keys for it are not there (yet, or any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there are no keys to seal this packet")]
pub struct SealError;

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// It is too short, or a field is impossible.
    #[error("malformed datagram")]
    Malformed,
    /// It was not made by the peer, or was changed on the way.
    #[error("authentication failed")]
    Forged,
    /// The keys for it are not there (yet, or any more).
    #[error("no keys for this datagram")]
    NoKeys,
}
