//! Data that wait for those before them, so that acknowledgements do not tell of gaps that are only
//! reordering (Sarwar 2014, chapter 5).

use fontis_base::{Duration, Rate, Time};

use super::chunk::{DataChunk, Stamp};
use crate::rate::reorder::{ReorderBuffer, ReorderMode};

/// Packets that the buffer has room for before anything is measured.
const FIRST: u64 = 5;
/// Spans of which the fullest says how much arrives.
const SPANS: usize = 8;

/// A chunk that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) chunk: DataChunk,
    /// The path of its packet, and the stamp, with the time when it came.
    pub(super) path: Option<u8>,
    pub(super) stamp: Option<(Stamp, Time)>,
    /// Whether it is the last of its packet.
    pub(super) is_last: bool,
}

/// The buffer, and what it measures: a peer's rate is known from what arrives.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    pub(super) buffer: ReorderBuffer<Waiting>,
    delay: Duration,
    /// When the present span began, and the bytes that have come in it.
    begin: Time,
    bytes: u64,
    /// Bytes of the last spans in which anything came.
    spans: [u64; SPANS],
    at: usize,
}

impl Reordering {
    /// A buffer for packets of `mtu` bytes that may delay them by so much.
    pub(super) fn new((mode, delay): (ReorderMode, Duration), mtu: u32) -> Self {
        let delay = delay.max(Duration::from_micros(1));
        let first = FIRST * u64::from(mtu);
        let buffer = ReorderBuffer::new(mode, delay, Rate::from_bytes_over(first, delay));
        let mut spans = [0; SPANS];
        spans[0] = first;
        Self { buffer, delay, begin: Time::ZERO, bytes: 0, spans, at: 1 }
    }

    /// Bytes have come: the buffer has the size of what comes in its delay.
    pub(super) fn measure(&mut self, now: Time, bytes: u64) {
        if now.since(self.begin) >= self.delay {
            self.spans[self.at] = self.bytes;
            self.at = (self.at + 1) % SPANS;
            (self.begin, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
        let most = self.spans.iter().fold(self.bytes, |most, bytes| most.max(*bytes));
        self.buffer.resize(Rate::from_bytes_over(most, self.delay));
    }
}
