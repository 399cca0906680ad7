//! A stream that is cast while it is made: blocks are closed by time, repaired until their latency
//! is over, and given up then.

mod receiver;
mod sender;

pub use receiver::{LiveEvent, LiveReceiver};
pub use sender::{LiveConfig, LiveSender, LiveTransmit};

use bytes::Bytes;
use fontis_base::Duration;
use fontis_codes::{BlockShape, Code};

/// Bytes in a symbol of a stream: with all headers it fits into the least packet of IPv6.
pub const LIVE_SYMBOL: u16 = 1180;
/// Bytes in a block at most.
pub const LIVE_BLOCK: u32 = 1 << 20;

/// A symbol of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSymbol {
    /// The block.
    pub block: u32,
    /// The symbol.
    pub esi: u32,
    /// Bytes of the block.
    pub len: u32,
    /// When the block's first byte was read, in milliseconds of the sender's clock.
    pub at: u32,
    /// The milliseconds from then until the symbol left.
    pub age: u16,
    /// Its bytes.
    pub data: Bytes,
}

/// The shape of a block of so many bytes; none if there can be no such block.
pub fn live_shape(len: u32) -> Option<BlockShape> {
    let is_sound = (1..=LIVE_BLOCK).contains(&len);
    is_sound.then(|| BlockShape::new(Code::RaptorQ, len, LIVE_SYMBOL).ok()).flatten()
}

/// How long bytes are gathered for a block: four blocks fill the latency, so that most of it is
/// left for repairs.
pub fn live_block_time(latency: Duration) -> Duration {
    (latency / 4).clamp(Duration::from_millis(5), Duration::from_millis(500))
}
