//! DCCP over UDP (RFC 6773): datagrams under congestion control, which are not sent again.
//!
//! Start here: a [`DccpEndpoint`] is a UDP socket, or on Linux one of DCCP's own protocol over
//! IPv4, as kernels with DCCP speak it. [`DccpEndpoint::connect`] makes a connection
//! from it, and [`DccpEndpoint::listen`] accepts those of others. A [`DccpStream`] is a connection:
//! [`DccpStream::send`] and [`DccpStream::recv`] pass datagrams, and [`DccpStream::path`] tells the
//! rate that congestion control allows and the loss that it sees. Futures run on the tokio runtime
//! that an endpoint was bound in.
//!
//! Nothing here is encrypted, and nothing proves who the peer is.

mod endpoint;
mod lobby;
mod socket;
mod stream;

use std::io;

use fontis_proto::dccp::{DccpTooLarge, ResetCode};
use thiserror::Error;

pub use endpoint::{DccpEndpoint, DccpListener};
pub use stream::DccpStream;

/// The reason why a connection of DCCP failed.
#[derive(Debug, Error)]
pub enum DccpError {
    /// The socket failed.
    #[error("the socket of DCCP failed: {0}")]
    Io(#[from] io::Error),
    /// The peer broke the connection off, or did not answer.
    #[error("the DCCP connection was broken off: {0:?}")]
    Aborted(ResetCode),
    /// The connection is closed.
    #[error("the DCCP connection is closed")]
    Closed,
    /// The datagram is longer than the path carries.
    #[error("{0}")]
    TooLarge(#[from] DccpTooLarge),
    /// Another connection has the same ports and the same peer.
    #[error(
        "this socket has a DCCP connection from port {port} to port {peer_port} of that peer already: use another port"
    )]
    Taken {
        /// The port of this end.
        port: u16,
        /// The port of the other end.
        peer_port: u16,
    },
}
