use fontis_proto::{dfcp, tcp};

/// What simulated packets carry: typed protocol packets, no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet; boxed, so that it does not make all others larger.
    Dfcp(Box<dfcp::Packet>),
    /// A TCP segment.
    Tcp(tcp::Segment),
    /// A datagram without a transport, and its number.
    Datagram(u64),
}
