//! Traces: every packet's life, wherever it was seen.
//!
//! Start here: `fontis view` shows a [`Trace`]. A [`Builder`] makes a trace from sightings of
//! packets in the order of time. The simulator feeds one while it runs; [`capture`], [`qlog`] and
//! [`ns2`] feed one from files; [`swarm`] makes one of blocks between nodes, and
//! [`events`] reads such blocks. The builder concludes
//! the facts that no packet states: retransmissions, useless and late packets; rates, round trips
//! and windows as [`Series`]; and [`Finding`]s in plain words. [`stream`] is the form of a trace in
//! files and on its way to the browser. [`figure`] draws a part.
//!
//! The size of a trace is bounded: every packet is analysed, but a very long trace keeps a sample
//! of the ordinary packets, and series keep their extremes only.

mod blocks;
mod builder;
pub mod capture;
mod clear;
mod counts;
mod direction;
pub mod events;
pub mod figure;
mod finding;
mod findings;
mod flow;
mod handle;
mod header;
mod kept;
mod lane;
pub mod ns2;
mod packet;
pub mod qlog;
pub mod read;
mod series;
mod spans;
pub mod stream;
pub mod swarm;
mod trace;

pub use blocks::Block;
pub use builder::Builder;
pub use clear::Clear;
pub use counts::Counts;
pub use finding::Finding;
pub use handle::Handle;
pub use header::{BlockReport, ChannelStatus, PacketHeader, SymbolRange};
pub use kept::Detail;
pub use lane::{Lane, LaneKind};
pub use packet::{Fate, Kind, Marks, NOWHERE, TracePacket};
pub use series::{Group, Series};
pub use trace::{Hop, Trace, TraceFlow};
