//! The contents of simulated packets.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use fontis_base::Rate;
use fontis_proto::tcp::Segment;
use fontis_proto::{dccp, dfcp, published, sctp};

use crate::host::cast::packet::CastPacket;

/// What simulated packets carry: typed protocol packets, no bytes. What is large and rare is boxed:
/// packets move from queue to queue, and one takes a line of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A DFCP packet.
    Dfcp(Box<dfcp::DfcpPacket>),
    /// A TCP segment.
    Tcp(Segment),
    /// A DCCP packet.
    Dccp(Box<dccp::DccpPacket>),
    /// An SCTP packet.
    Sctp(Box<sctp::SctpPacket>),
    /// A packet of the DFCP of 2015.
    Published(Box<published::PublishedPacket>),
    /// A packet of a cast, of which the copies for a group's members are one.
    Cast(Arc<CastPacket>),
    /// What a controller tells a sender: how fast to send.
    Rate(Rate),
    /// What a sender tells a controller: whether it has something to send.
    Active(bool),
    /// A datagram without a transport.
    Datagram(Datagram),
    /// A packet of a transport that was added from outside.
    Other(Box<dyn OtherPayload>),
}

/// The header of a datagram without a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Its number in its flow, from one.
    pub number: u64,
    /// The message that it belongs to; [`u64::MAX`] if nobody asks after it.
    pub message: u64,
    /// Its place in the message.
    pub fragment: u16,
    /// The message's datagrams.
    pub fragments: u16,
}

/// A packet of a transport that was added from outside.
pub trait OtherPayload: Any + fmt::Debug + Send {
    /// A copy.
    fn clone_box(&self) -> Box<dyn OtherPayload>;
    /// Itself, for the transport that knows its type.
    fn as_any(&self) -> &dyn Any;
    /// Whether another packet is the same.
    fn is_same(&self, other: &dyn OtherPayload) -> bool;
}

impl Clone for Box<dyn OtherPayload> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl PartialEq for Box<dyn OtherPayload> {
    fn eq(&self, other: &Self) -> bool {
        (**self).is_same(&**other)
    }
}

impl Eq for Box<dyn OtherPayload> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_a_line_of_the_cache() {
        assert!(size_of::<fontis_base::Packet<Payload>>() <= 64);
    }
}
