//! SCTP over UDP (RFC 6951): messages in streams, over one path or several, to peers of others too.
//!
//! Start here: an [`SctpEndpoint`] is a UDP socket for each of its addresses.
//! [`SctpEndpoint::connect`] makes an association from it, and [`SctpEndpoint::listen`] accepts
//! those of others. An [`SctpStream`] is an association: [`SctpStream::send`] and
//! [`SctpStream::recv`] pass messages, and [`SctpStream::paths`] tells how each path is. Futures
//! run on the tokio runtime that an endpoint was bound in. [`SctpStream::change_address`] tells the
//! peer of addresses that come and go.
//!
//! Nothing here is encrypted, and nothing proves who the peer is: for that, use the connections of
//! this crate.

mod core;
mod endpoint;
mod socket;
mod stream;
mod table;

use std::io;
use std::net::{IpAddr, SocketAddr};

use fontis_proto::sctp::{AbortReason, SECRET_CODE, SctpAddressError, SctpSecret, SctpSendError};
use thiserror::Error;

pub use endpoint::{SctpEndpoint, SctpListener};
pub use stream::SctpStream;

/// The UDP port of SCTP (RFC 6951 section 5.1).
pub const SCTP_UDP_PORT: u16 = 9899;

/// The reason why an association failed.
#[derive(Debug, Error)]
pub enum SctpError {
    /// A socket failed.
    #[error("the UDP socket of SCTP failed: {0}")]
    Io(#[from] io::Error),
    /// The association was broken off.
    #[error("the SCTP association was broken off: {}", in_words(.0))]
    Aborted(AbortReason),
    /// The association is closed.
    #[error("the SCTP association is closed")]
    Closed,
    /// The message cannot be sent.
    #[error("{0}")]
    Send(#[from] SctpSendError),
    /// The addresses cannot change.
    #[error("{0}")]
    Address(#[from] SctpAddressError),
    /// The peer refuses a change of addresses.
    #[error("the peer refuses that change of addresses, for cause {cause} of RFC 5061 or 9260")]
    Refused {
        /// The code of the cause.
        cause: u16,
    },
    /// No socket has an address.
    #[error("the endpoint has no socket of {address}: add one first")]
    NoSuchSocket {
        /// The address.
        address: IpAddr,
    },
    /// Another association has the same ports and the same peer, or there are as many as may be.
    #[error(
        "this endpoint has an SCTP association from port {} to port {} of {peer}, or 1024 others: \
         use another port, or another endpoint",
        .ports[0], .ports[1]
    )]
    Taken {
        /// The peer.
        peer: SocketAddr,
        /// The port of this end, and that of the other.
        ports: [u16; 2],
    },
    /// No socket of the endpoint reaches such addresses.
    #[error("the endpoint has no socket of the family of {peer}")]
    NoSocket {
        /// The peer.
        peer: SocketAddr,
    },
}

fn in_words(reason: &AbortReason) -> String {
    match reason {
        AbortReason::Peer(causes) if causes.is_empty() => "the peer did".to_owned(),
        AbortReason::Peer(causes) => {
            let codes: Vec<String> = causes.iter().map(|cause| cause.code.to_string()).collect();
            format!("the peer did, for cause {} of RFC 9260", codes.join(" and "))
        }
        AbortReason::Application => "this program did".to_owned(),
        AbortReason::Silence => "the peer does not answer".to_owned(),
        AbortReason::Violation(what) => format!("the peer broke the protocol ({what})"),
    }
}

/// A secret of this process.
///
/// # Errors
/// If the machine has no randomness.
pub fn random_secret() -> io::Result<SctpSecret> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(SctpSecret::new(move |content| {
        let mut code = [0; SECRET_CODE];
        code.copy_from_slice(&blake3::keyed_hash(&key, content).as_bytes()[..SECRET_CODE]);
        code
    }))
}
