use std::net::{IpAddr, SocketAddr};

use fontis_proto::dfcp::ConnectionId;

use crate::protection::{Cookie, PROVED_SYN_HEADER};

/// The cleartext fields of a SYN, and its arrival.
pub(super) struct Syn {
    /// Which of the endpoint's sockets it came to.
    pub(super) socket: usize,
    pub(super) from: SocketAddr,
    /// The address that it was sent to.
    pub(super) local: Option<IpAddr>,
    pub(super) cookie: Option<Cookie>,
    pub(super) version: u32,
    pub(super) source: ConnectionId,
}

impl Syn {
    /// The offset of the SYN proper in the datagram.
    pub(super) fn at(&self) -> usize {
        if self.cookie.is_some() { PROVED_SYN_HEADER } else { 0 }
    }
}
