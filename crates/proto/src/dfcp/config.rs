use bytes::Bytes;
use fontis_base::{Duration, Rate};

use super::budget::MemoryBudget;
use super::params::Params;
use crate::rate::kind::RateKind;

/// Which retransmission timers a connection uses while it has no round-trip time to go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// SYN copies at 0, 30, 90 and 270 ms, then after 1 s, doubling, five times.
    #[default]
    Fast,
    /// As published: first timeout 1 s, doubling, five retries.
    Published,
}

/// How many symbols of a block are sent before waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redundancy {
    /// As many as the measured loss asks for, then more only as feedback shows a shortfall.
    #[default]
    Measured,
    /// Until the block is acknowledged, as published.
    UntilAcknowledged,
}

/// What an earlier connection found out about a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownPath {
    /// The rate that it carried, if that was found out: a first flight is no faster.
    pub rate: Option<Rate>,
    /// The least round-trip time, if one was measured.
    pub rtt: Option<Duration>,
}

/// How a connection behaves.
#[derive(Clone, Debug)]
pub struct DfcpConfig {
    /// The rate controller of each path.
    pub rate: RateKind,
    /// Retransmission timers of the handshake.
    pub timers: Timers,
    /// How many symbols are sent.
    pub redundancy: Redundancy,
    /// The parameters announced to the peer.
    pub params: Params,
    /// Bytes in a block of a stream or long message.
    pub live_block: u32,
    /// Bytes of IP and UDP headers on the path: 28 for IPv4, 48 for IPv6.
    pub overhead: u32,
    /// Bytes of a packet with its IP header: the size that every path carries.
    pub packet_size: u32,
    /// The largest packet that path MTU discovery tries; no more than `packet_size`: none.
    pub max_packet_size: u32,
    /// How often the symbols of an object's block that is not complete are handed out, and a third
    /// as often where they are many; none: never.
    pub checkpoint: Option<Duration>,
    /// Of an initiator: the token to show. Of a responder: the one to give with its answer. At most
    /// [`MAX_TOKEN`] bytes.
    ///
    /// [`MAX_TOKEN`]: super::wire::MAX_TOKEN
    pub token: Option<Bytes>,
    /// Of a responder: what it knows from an earlier connection to this peer, which is proved to be
    /// at its address.
    pub known: Option<KnownPath>,
    /// Whether to keep a trace of what happens, for qlog.
    pub trace: bool,
    /// Whether paths that share a bottleneck take one flow's share of it together (RFC 6356).
    pub coupled: bool,
    /// An unguessable seed by which packet numbers are left out now and then, so that a peer that
    /// reports the arrival of what it did not get is found out (RFC 9000 section 21.4). None: no
    /// number is.
    pub left_out: Option<u64>,
    /// The longest message that the peer may send, in bytes.
    pub longest_message: u32,
    /// Whether a message counts as held until
    /// [`message_taken`](super::DfcpConnection::message_taken), or only until its event is taken.
    pub holds_messages: bool,
    /// Ordered messages wait at most so long for those before them, in a buffer of what arrives in
    /// that time (Sarwar 2014, chapter 5); what comes after its turn is dropped. None: they wait
    /// until those before them have come or are given up.
    pub order_within: Option<Duration>,
    /// The memory that the connection shares with others; none: only its own limit counts.
    pub budget: Option<MemoryBudget>,
}

impl Default for DfcpConfig {
    fn default() -> Self {
        Self {
            rate: RateKind::default(),
            timers: Timers::default(),
            redundancy: Redundancy::default(),
            params: Params::default(),
            live_block: 256 << 10,
            overhead: 28,
            packet_size: 1280,
            max_packet_size: 9000,
            checkpoint: None,
            token: None,
            known: None,
            trace: false,
            coupled: true,
            left_out: None,
            longest_message: 128 << 20,
            holds_messages: false,
            order_within: None,
            budget: None,
        }
    }
}
