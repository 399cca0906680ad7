use fontis_base::Rate;
use fontis_proto::{dfcp, published, tcp};

/// What simulated packets carry: typed protocol packets, no bytes. What is large is boxed: packets move from queue to
/// queue, and with the time of its arrival one takes a line of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet.
    Dfcp(Box<dfcp::Packet>),
    /// A TCP segment.
    Tcp(Box<tcp::Segment>),
    /// A packet of the DFCP of 2015.
    Published(Box<published::Packet>),
    /// What a controller tells a sender: how fast to send.
    Rate(Rate),
    /// What a sender tells a controller: whether it has something to send.
    Active(bool),
    /// A datagram without a transport, and its number.
    Datagram(u64),
}
