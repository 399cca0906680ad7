//! DCCP, the Datagram Congestion Control Protocol (RFC 4340).
//!
//! Start here: a [`DccpPacket`] is a typed packet; [`DccpPacket::encode`] and
//! [`DccpPacket::decode`] are its wire format, over IP or over UDP ([`Carrier`], RFC 6773).

mod number;
mod option;
mod packet;
mod wire;

pub use number::DccpSeq;
pub use option::{DccpOption, FeatureOption, FeatureStep, IntervalReport};
pub use packet::{DccpBody, DccpData, DccpPacket, ResetCode};
pub use wire::{Carrier, DccpWireError, PROTOCOL, UDP_PORT};
