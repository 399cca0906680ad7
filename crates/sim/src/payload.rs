use fontis_base::Rate;
use fontis_proto::{dfcp, published, tcp};

/// What simulated packets carry: typed protocol packets, no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet; boxed, so that it does not make all others larger.
    Dfcp(Box<dfcp::Packet>),
    /// A TCP segment.
    Tcp(tcp::Segment),
    /// A packet of the DFCP of 2015.
    Published(published::Packet),
    /// What a controller tells a sender: how fast to send.
    Rate(Rate),
    /// What a sender tells a controller: whether it has something to send.
    Active(bool),
    /// A datagram without a transport, and its number.
    Datagram(u64),
}
