//! TCP as a state machine: no socket, no clock, no thread, no randomness, and no bytes.
//!
//! Start here: a [`TcpEndpoint`] takes [`Segment`]s and the time, and gives segments and the time
//! of its next deadline. Its sending half keeps a scoreboard of what is outstanding and decides
//! what is lost (RFC 6675 or RACK-TLP, RFC 8985; RFC 6582 without SACK) and when (RFC 6298); a
//! [congestion control](crate::congestion) algorithm answers how much may be outstanding. Its
//! receiving half reassembles, delays acknowledgements and offers a window. A stream's bytes are
//! only counted, so that a simulated gigabyte costs nothing.

mod config;
mod endpoint;
mod pacer;
mod receiver;
mod record;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sending;
mod stats;
mod timers;
pub mod wire;

pub use config::{Recovery, TcpConfig};
pub use endpoint::{Departure, TcpEndpoint, TcpEvent, TcpState, Transmit};
pub use segment::{
    IP_HEADER, Options, SackBlocks, Segment, SynOptions, TCP_HEADER, TcpFlags, Timestamps,
};
pub use stats::{ReceiverStats, SenderStats};
