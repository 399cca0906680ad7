use std::io;
use std::net::SocketAddr;

use fontis_proto::dfcp::CloseReason;
use thiserror::Error;

/// The reason why an endpoint could not be made.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another process has the address.
    #[error(
        "{0} is in use by another process: choose another port, or port 0 for any that is free"
    )]
    InUse(SocketAddr),
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// The system has no more descriptors or threads.
    #[error("cannot start the network thread: {0}")]
    System(#[source] io::Error),
}

/// The reason why a connection was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No answer came.
    #[error(
        "no answer from {0}: is it running, and does a firewall let UDP to this port through in both directions?"
    )]
    NoAnswer(SocketAddr),
    /// Something answered that does not have the key.
    #[error(
        "{0} answered, but holds another key (or another pre-shared key) than the one given: get its present URL"
    )]
    WrongKey(SocketAddr),
    /// The other side does not accept this side's key.
    #[error(
        "{0} does not allow this client's key: ask its operator to add it to the list given with --allow, and name its file with --identity"
    )]
    RefusedKey(SocketAddr),
    /// The connection ended during the handshake.
    #[error("the connection to {0} failed: {1}")]
    Closed(SocketAddr, CloseReason),
    /// The endpoint is gone.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// The code of a connection that was closed because the client's key is not allowed.
pub const CODE_REFUSED_KEY: u32 = 1;
/// The code of a connection that was closed because the endpoint has as many as it takes.
pub const CODE_TOO_MANY: u32 = 4;
/// The code of a connection that was closed because the peer refused a message.
pub(crate) const CODE_REFUSED_MESSAGE: u32 = 5;
