use core::fmt;

use fontis_base::{Duration, Time};

/// A path as a scheduler sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathView {
    /// From here to the peer. Only differences between paths matter to most schedulers, so a
    /// constant error of the clocks does no harm.
    pub delay: Duration,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The mean deviation of the round-trip time.
    pub deviation: Duration,
    /// The least round-trip time seen: that of a path without a queue.
    pub least: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Whether it may carry data at all.
    pub is_usable: bool,
}

impl PathView {
    /// Whether a packet may leave on it at present.
    pub const fn has_room(&self) -> bool {
        self.is_usable && self.in_flight < self.window
    }
}

/// What there is to send. Units are numbered in the order of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataView {
    /// The first unit that the peer may still lack.
    pub lowest: u64,
    /// The first unit that has not been sent on any path.
    pub first: u64,
    /// Behind the last unit that the sender holds.
    pub end: u64,
    /// Bytes in a unit.
    pub unit: u64,
    /// Bytes that the sender holds and has not sent.
    pub pending: u64,
    /// Bytes beyond those in flight that the peer has room for.
    pub credit: u64,
    /// Bytes that the peer has room for, or the sender's buffer if that is less.
    pub buffer: u64,
}

/// A unit to be sent on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The path.
    pub path: usize,
    /// The unit.
    pub unit: u64,
}

/// A scheduler at work.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// The unit that leaves next, and its path: one that [has room](PathView::has_room). `None`
    /// waits for an acknowledgement. The transport sends what this answers.
    fn next(&mut self, now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment>;

    /// A copy in the same state.
    fn copy(&self) -> Box<dyn Scheduler>;
}

impl Clone for Box<dyn Scheduler> {
    fn clone(&self) -> Self {
        self.copy()
    }
}
