use std::net::IpAddr;

use super::mptcp::Multipath;
use crate::header::PacketHeader;

/// An IP packet as far as it can be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IpPacket {
    pub(crate) source: (IpAddr, u16),
    pub(crate) destination: (IpAddr, u16),
    pub(crate) protocol: Protocol,
    /// Bytes of the IP packet.
    pub(crate) size: u32,
    /// What tells this packet from others of its flow: both ends see the same.
    pub(crate) identity: u64,
    pub(crate) header: PacketHeader,
    /// Names the connection where ports do not: SCTP's verification tags, the one that is announced
    /// included.
    pub(crate) tags: [Option<u32>; 2],
    /// Of a sealed DFCP packet: its path, and the low 32 bits of its number.
    pub(crate) sealed: Option<(u8, u64)>,
    /// What it says of Multipath TCP.
    pub(crate) multipath: Option<Multipath>,
}

/// What transports a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Sctp,
    Dccp,
    Dfcp,
    Quic,
    Udp,
    Other,
}

impl Protocol {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
            Self::Dccp => "DCCP",
            Self::Dfcp => "DFCP",
            Self::Quic => "QUIC",
            Self::Udp => "UDP",
            Self::Other => "IP",
        }
    }

    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Tcp => "bytes",
            Self::Sctp => "chunks",
            Self::Dfcp => "symbols",
            _ => "packets",
        }
    }
}
