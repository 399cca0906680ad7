//! The contents of simulated packets.

use fontis_base::Rate;
use fontis_proto::tcp::Segment;
use fontis_proto::{dfcp, published};

/// What simulated packets carry: typed protocol packets, no bytes. What is large and rare is boxed:
/// packets move from queue to queue, and one takes a line of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet.
    Dfcp(Box<dfcp::Packet>),
    /// A TCP segment.
    Tcp(Segment),
    /// A packet of the DFCP of 2015.
    Published(Box<published::Packet>),
    /// What a controller tells a sender: how fast to send.
    Rate(Rate),
    /// What a sender tells a controller: whether it has something to send.
    Active(bool),
    /// A datagram without a transport, and its number.
    Datagram(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_a_line_of_the_cache() {
        assert!(size_of::<fontis_base::Packet<Payload>>() <= 64);
    }
}
