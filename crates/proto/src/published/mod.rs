//! DFCP as the dissertation of 2015 published it, without I/O: for experiments, not for networks.
//!
//! Start here: [`PublishedEndpoint`] is one side of a connection, with the three-way handshake, the
//! close, and data in both directions. A message is cut into blocks, each block encoded with the
//! [2015 code](fontis_codes::SparseCode::PROTOTYPE) into an endless row of bytes; [`Sending`]
//! decides of which block the next packet carries some. The receiver acknowledges each block, and
//! again when more of it comes. There is no congestion control: a sender is told its rate.
//!
//! What the text leaves open is a field of [`PublishedConfig`], with the name of the decision.

mod config;
mod endpoint;
mod header;
mod packet;
mod receiver;
mod retry;
mod round_trip;
mod sender;

pub use config::{Coding, Control, LastPacket, Need, Plan, PublishedConfig, Sending};
pub use endpoint::{PublishedEndpoint, PublishedEvent, PublishedState, PublishedStats};
pub use header::{HeaderError, PublishedFlags, PublishedHeader};
pub use packet::{Body, Parameters, PublishedPacket, PublishedSymbols};
