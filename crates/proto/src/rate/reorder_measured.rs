//! A reorder buffer that measures the rate of what arrives, where no congestion control knows it.

use core::ops::{Deref, DerefMut};

use fontis_base::{Duration, Rate, Time};

use super::reorder::{ReorderBuffer, ReorderMode};

/// Spans of which the fullest says how much arrives.
const SPANS: usize = 8;

/// A reorder buffer of the size of what has come lately in its delay.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredReorder<T> {
    buffer: ReorderBuffer<T>,
    delay: Duration,
    /// When the present span began, and the bytes that have come in it.
    begin: Time,
    bytes: u64,
    /// Bytes of the last spans in which anything came.
    spans: [u64; SPANS],
    at: usize,
}

impl<T> MeasuredReorder<T> {
    /// A buffer that may delay by so much, and has room for `first` bytes before anything is
    /// measured.
    pub(crate) fn new(mode: ReorderMode, delay: Duration, first: u64) -> Self {
        let delay = delay.max(Duration::from_micros(1));
        let buffer = ReorderBuffer::new(mode, delay, Rate::from_bytes_over(first, delay));
        let mut spans = [0; SPANS];
        spans[0] = first;
        Self { buffer, delay, begin: Time::ZERO, bytes: 0, spans, at: 1 }
    }

    /// So many bytes have come.
    pub(crate) fn measure(&mut self, now: Time, bytes: u64) {
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

impl<T> Deref for MeasuredReorder<T> {
    type Target = ReorderBuffer<T>;

    fn deref(&self) -> &ReorderBuffer<T> {
        &self.buffer
    }
}

impl<T> DerefMut for MeasuredReorder<T> {
    fn deref_mut(&mut self) -> &mut ReorderBuffer<T> {
        &mut self.buffer
    }
}
