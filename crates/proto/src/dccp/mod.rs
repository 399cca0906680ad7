//! DCCP, the Datagram Congestion Control Protocol (RFC 4340).
//!
//! Start here: a [`DccpConnection`] is one end: datagrams go in and come out, packets come in and
//! go out, at times that a driver passes in. Three congestion controls ([`Ccid`]) decide when a
//! packet may leave: a window (RFC 4341), a rate (RFC 4342), and a rate for small packets (RFC
//! 5622). A [`DccpPacket`] is a typed packet; [`DccpPacket::encode`] and [`DccpPacket::decode`] are
//! its wire format, over IP or over UDP ([`Carrier`], RFC 6773).

mod ack_vector;
mod ccid;
mod config;
mod connection;
mod cookie;
mod feature;
mod number;
mod numbers;
mod option;
mod packet;
mod packet_size;
mod queue;
mod wire;

pub use ccid::DccpPath;
pub use config::{Ccid, DccpConfig, QueueDrop};
pub use connection::{DccpConnection, DccpEvent, DccpStats, DccpTooLarge, no_connection};
pub use cookie::{COOKIE_CODE, CookieCode, accept_with_cookie, respond_without_state};
pub use number::DccpSeq;
pub use option::{DccpOption, FeatureOption, FeatureStep, IntervalReport};
pub use packet::{DccpBody, DccpData, DccpPacket, ResetCode};
pub use wire::{Carrier, DccpWireError, PROTOCOL, UDP_PORT};
