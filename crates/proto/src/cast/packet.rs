use bytes::Bytes;

use super::config::CastLaw;
use crate::rate::PathDeparture;

/// A symbol for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastSymbol {
    /// The visit of the block that it leaves in. A sender visits one block after another, and
    /// numbers the visits.
    pub visit: u32,
    /// The block.
    pub block: u32,
    /// The symbol.
    pub esi: u32,
    /// When it left, for receivers that find out what their paths carry.
    pub timing: Option<PathDeparture>,
    /// Its bytes.
    pub data: Bytes,
}

/// What the sender tells the group about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CastState {
    /// The visit that goes on; if none does, the next one's number.
    pub visit: u32,
    /// Every block below this one has been visited at least once.
    pub pass: u32,
    /// Whether nothing is left to send.
    pub idle: bool,
    /// The law by which the rate follows what receivers say, if it does.
    pub law: Option<CastLaw>,
    /// Bytes of symbols a second.
    pub rate: u64,
    /// Receivers that are not done.
    pub members: u32,
    /// The longest round trip to one of them, in microseconds.
    pub round_trip: u32,
    /// The time between two reports about what a receiver lacks, in milliseconds.
    pub report_every: u32,
    /// The time between two reports about how it fares, in milliseconds.
    pub status_every: u32,
    /// The receiver whose path bounds the rate: it reports every round trip.
    pub limiting: Option<u32>,
    /// By [`CastLaw::Auto`] whether that receiver keeps up with flows that fill its queue.
    pub friendly: bool,
    /// How many of the planned repairs come before anything else. The others are for stragglers
    /// and come last.
    pub soon: u32,
    /// Repairs to come, in their order; there may be more than stand here.
    pub planned: Vec<Planned>,
    /// The round trips to receivers that reported lately.
    pub round_trips: Vec<MemberRoundTrip>,
}

/// Symbols of a block that will be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The block.
    pub block: u32,
    /// How many.
    pub count: u32,
}

/// The round trip to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRoundTrip {
    /// The receiver.
    pub member: u32,
    /// In microseconds.
    pub round_trip: u32,
}

/// What a receiver tells the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CastReport {
    /// The number of this report.
    pub sequence: u32,
    /// The newest visit that a packet came of.
    pub visit: u32,
    /// The share of packets that are lost, in millionths.
    pub loss: u32,
    /// The loss event rate of RFC 5348, in millionths.
    pub loss_events: u32,
    /// Bytes that it receives a second, with headers.
    pub received: u64,
    /// By [`CastLaw::Auto`] bytes with headers that may be sent in a second; 0 if it cannot tell.
    pub allowed: u64,
    /// Whether it keeps up with flows that fill the queue.
    pub friendly: bool,
    /// The number of the newest packet that came.
    pub newest: u64,
    /// The microseconds since it came.
    pub held: u32,
    /// Whether it has everything.
    pub is_done: bool,
    /// Symbols that it lacks of all blocks, those to come included.
    pub lacking: u64,
    /// What it lacks of blocks that have been visited.
    pub needs: Vec<CastNeed>,
}

/// A run of blocks of each of which a receiver lacks as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastNeed {
    /// The first block.
    pub first: u32,
    /// How many blocks.
    pub blocks: u32,
    /// Symbols that are lacking of each.
    pub symbols: u32,
}

/// What the sender has sent: the digests of packets with numbers in a row. It is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CastReceipt {
    /// The number of the first packet.
    pub first: u64,
    /// The digest of each.
    pub digests: Vec<u64>,
}

/// What a sender that gets no answers says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastAnnouncement {
    /// The round that goes on, or the number of all.
    pub round: u32,
    /// Whether nothing else follows.
    pub is_end: bool,
    /// Bytes of symbols a second.
    pub rate: u64,
    /// The first of the blocks that are being sent.
    pub next: u32,
}
