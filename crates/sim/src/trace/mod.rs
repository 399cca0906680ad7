//! Traces: every packet's life, wherever it was seen.
//!
//! Start here: a [`Trace`] is what `fontis view` shows. A [`Builder`] makes one of what is seen of
//! packets in the order of time: the [`Recorder`] watches the simulator, [`capture`], [`qlog`] and
//! [`ns2`] read files. On the way it concludes what no packet says: what was retransmitted, useless
//! or held back; rates, round trips and windows as [`Series`]; and [`Finding`]s in plain words.
//! [`stream`] is the form in which a trace travels to the browser and lies in files, [`figure`]
//! draws a part of it.
//!
//! A trace stays small however large its source: everything is analysed, but of very many packets
//! the ordinary ones are thinned out, and series keep their extremes only.

mod blocks;
mod builder;
pub mod capture;
pub mod figure;
mod findings;
mod flow;
mod half;
mod header;
mod kept;
pub mod ns2;
mod packet;
pub mod qlog;
pub mod read;
mod recorder;
mod series;
mod spans;
pub mod stream;

use fontis_base::Time;

pub use blocks::Block;
pub use builder::{Builder, Handle};
pub use findings::Finding;
pub use half::Counts;
pub use header::{Blocks, Header, Status, Symbols};
pub use kept::Detail;
pub use packet::{Fate, Kind, Marks, NOWHERE, Packet};
pub use recorder::Recorder;
pub use series::{Group, Series};

/// What was seen of a network: packets, what they passed, and what was concluded.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What it is of.
    pub title: String,
    /// The time from which all others are counted, on the clock of its source.
    pub origin: Time,
    /// When the last thing happened.
    pub end: Time,
    /// Hosts and queues, from left to right.
    pub lanes: Vec<Lane>,
    /// Connections.
    pub flows: Vec<Flow>,
    /// Packets in the order in which they left.
    pub packets: Vec<Packet>,
    /// The queues that they passed, in the order of packets.
    pub hops: Vec<Hop>,
    /// Blocks of symbols.
    pub blocks: Vec<Block>,
    /// Quantities over time.
    pub series: Vec<Series>,
    /// What stands out.
    pub findings: Vec<Finding>,
    /// What its reader should know of how it was made.
    pub notes: Vec<String>,
    /// How many packets there were; [`packets`](Self::packets) may hold fewer.
    pub total: u64,
    /// Of ordinary packets, and of remarkable ones, one in so many was kept.
    pub kept: [u64; 2],
}

/// A vertical line of the exchange view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: LaneKind,
}

/// What a lane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// Where packets begin and end.
    Host,
    /// A queue and the line behind it.
    Queue,
}

/// A connection, or packets between the same ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its transport.
    pub protocol: String,
    /// What its sequence numbers count.
    pub unit: String,
    /// The names of its paths, if it has several.
    pub paths: Vec<String>,
    /// What was counted of what the first speaker sent, and of what the other one did.
    pub counts: [Counts; 2],
}

/// A packet's stay in a queue and on the line behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The packet, by its place in the trace.
    pub packet: u32,
    /// The lane.
    pub lane: u8,
    /// When it came there.
    pub enter: Time,
    /// When it left the queue for the line; of lines of which that is not known, when it left the
    /// line.
    pub leave: Time,
}
