use std::net::IpAddr;

use super::wire::ip_packet::{IpPacket, Protocol};

/// An address and a port.
pub(super) type End = (IpAddr, u16);
/// Both ends, the lower first, and the transport.
pub(super) type FlowKey = (End, End, u8);

pub(super) fn key(seen: &IpPacket) -> FlowKey {
    let protocol = match seen.protocol {
        Protocol::Dfcp | Protocol::Quic | Protocol::Udp => 17,
        Protocol::Tcp => 6,
        Protocol::Sctp => 132,
        Protocol::Dccp => 33,
        Protocol::Other => 0,
    };
    let (low, high) = (seen.source.min(seen.destination), seen.source.max(seen.destination));
    (low, high, protocol)
}
