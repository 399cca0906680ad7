//! Where the packets of a path go, and from where.

use std::net::{IpAddr, SocketAddr};

/// One end of a path: a socket of this side, and the peer's address.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Which of the endpoint's sockets.
    pub(super) socket: usize,
    pub(super) remote: SocketAddr,
    /// The local address that the peer uses; answers leave from there.
    pub(super) local_ip: Option<IpAddr>,
    /// The address that the peer may have moved to.
    pub(super) candidate: Option<Candidate>,
}

impl Way {
    pub(super) const fn new(socket: usize, remote: SocketAddr, local_ip: Option<IpAddr>) -> Self {
        Self { socket, remote, local_ip, candidate: None }
    }
}

/// An address from which packets of the peer come, and the question whether it is there.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) address: SocketAddr,
    pub(super) local_ip: Option<IpAddr>,
    pub(super) token: [u8; 8],
}

/// Bytes of IP and UDP headers towards an address.
pub(super) fn overhead(to: SocketAddr) -> u32 {
    if to.ip().to_canonical().is_ipv4() { 28 } else { 48 }
}
