use bytes::Bytes;
use fontis_base::{Duration, Rate};
use fontis_codes::Code;

use super::packet::ResetToken;
use super::params::Params;
use crate::rate;

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
pub struct Config {
    /// The rate controller of each path.
    pub rate: rate::Kind,
    /// Retransmission timers of the handshake.
    pub timers: Timers,
    /// How many symbols are sent.
    pub redundancy: Redundancy,
    /// Codes that this side decodes, best first.
    pub codes: Vec<Code>,
    /// Bytes of blocks held for each channel that is received.
    pub window: u32,
    /// The largest block accepted, in bytes.
    pub max_block: u32,
    /// Bytes in a symbol of messages and streams. It is not negotiated: both sides must have the
    /// same.
    pub symbol_size: u16,
    /// Bytes in a block of a stream or long message.
    pub live_block: u32,
    /// How long a silent connection is kept.
    pub idle_timeout: Duration,
    /// Bytes of IP and UDP headers on the path: 28 for IPv4, 48 for IPv6.
    pub overhead: u32,
    /// Bytes of a packet with its IP header: the size that every path carries.
    pub packet_size: u32,
    /// The largest packet that path MTU discovery tries; no more than `packet_size`: none.
    pub max_packet_size: u32,
    /// How often the symbols of an object's block that is not complete are handed out; none: never.
    pub checkpoint: Option<Duration>,
    /// Of an initiator: the token to show. Of a responder: the one to give with its answer. At most
    /// [`MAX_TOKEN`] bytes.
    ///
    /// [`MAX_TOKEN`]: super::wire::MAX_TOKEN
    pub token: Option<Bytes>,
    /// Of a responder: what it knows from an earlier connection to this peer, which is proved to be
    /// at its address.
    pub known: Option<KnownPath>,
    /// What a reset by this side carries.
    pub reset_token: ResetToken,
    /// Whether to keep a trace of what happens, for qlog.
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rate: rate::Kind::default(),
            timers: Timers::default(),
            redundancy: Redundancy::default(),
            codes: vec![Code::RaptorQ],
            window: 64 << 20,
            max_block: 4 << 20,
            symbol_size: SYMBOL_SIZE,
            live_block: 256 << 10,
            idle_timeout: Duration::from_secs(60),
            overhead: 28,
            packet_size: 1280,
            max_packet_size: 9000,
            checkpoint: None,
            token: None,
            known: None,
            reset_token: [0; 16],
            trace: false,
        }
    }
}

/// Bytes in a symbol: with its frame and packet headers it fills a packet of 1280 bytes over IPv6.
pub const SYMBOL_SIZE: u16 = 1192;

impl Config {
    /// What this side tells of itself when it connects.
    pub fn params(&self) -> Params {
        Params {
            codes: self.codes.iter().map(|code| code.id()).collect(),
            window: self.window,
            max_block: self.max_block,
            symbol_size: self.symbol_size,
            idle_timeout_ms: u32::try_from(self.idle_timeout.as_millis()).unwrap_or(u32::MAX),
            reset_token: self.reset_token,
        }
    }
}
