use fontis_base::Time;

use crate::blocks::Block;
use crate::counts::Counts;
use crate::finding::Finding;
use crate::lane::Lane;
use crate::packet::TracePacket;
use crate::series::Series;

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
    pub flows: Vec<TraceFlow>,
    /// Packets in the order in which they left.
    pub packets: Vec<TracePacket>,
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

/// A connection, or packets between the same ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFlow {
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
    pub lane: u16,
    /// When it came there.
    pub enter: Time,
    /// When it left the queue for the line; of lines of which that is not known, when it left the
    /// line.
    pub leave: Time,
}
