//! Data channels to browsers and other peers of WebRTC: ICE finds a way, DTLS protects it, and this
//! project's SCTP carries messages inside (RFC 8831).
//!
//! Start here: an [`RtcPeer`] is one end of a connection. The applications carry its
//! [`offer`](RtcPeer::offer) to the other end, in whatever way they have, and the
//! [`answer`](RtcPeer::answer) back. Then both open [`RtcChannel`]s, which carry text and bytes.
//!
//! ICE and DTLS are the crates `is` and `dimpl`. Candidates are the addresses of this machine: two
//! peers that both hide behind a NAT do not find each other; one that a browser can reach does not
//! need more.

mod certificate;
mod channel;
mod config;
mod core;
mod description;
mod link;
mod peer;

use std::io;

use fontis_proto::data_channel::DataChannelError;
use fontis_proto::sctp::AbortReason;
use thiserror::Error;

pub use channel::RtcChannel;
pub use config::RtcConfig;
pub use peer::RtcPeer;

/// The reason why peers do not talk.
#[derive(Debug, Error)]
pub enum RtcError {
    /// No socket, no randomness or no list of addresses.
    #[error("the system gives what a data channel needs: no: {0}")]
    System(#[from] io::Error),
    /// There is no address that a peer could reach.
    #[error("this machine has no address to offer: give one")]
    NoAddress,
    /// The description of the peer is none, or asks for what is not there.
    #[error("the description of the peer {0}")]
    Description(String),
    /// The offer or the answer comes when none is awaited.
    #[error("{0}")]
    Order(&'static str),
    /// The peer's certificate is not the one that its description names.
    #[error("the certificate of the peer is not the one that its description names")]
    Stranger,
    /// The protection of the way failed.
    #[error("DTLS failed: {0}")]
    Dtls(String),
    /// The peer does not answer any more.
    #[error("the peer does not answer any more")]
    Silence,
    /// The peer broke the association off, or broke the protocol.
    #[error("the association was broken off: {0:?}")]
    Aborted(AbortReason),
    /// The connection was closed.
    #[error("the connection is closed")]
    Closed,
    /// A channel refuses.
    #[error(transparent)]
    Channel(#[from] DataChannelError),
}
