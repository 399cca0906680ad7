use std::collections::VecDeque;

use fontis_base::{Duration, Time};

/// The least that a rate is measured over: some thirty packets.
const LEAST_BYTES: u64 = 12 * 1250;

/// The rate at which bytes arrive, over a sliding window on the receiver's clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    points: VecDeque<(Time, u64)>,
    rate: Option<f64>,
    /// Whether the rate is of this window.
    is_full: bool,
}

impl Delivery {
    /// Takes a total of bytes received at a time, and the window's length.
    pub(super) fn observe(&mut self, at: Time, bytes: u64, window: Duration) {
        if self.points.back().is_some_and(|(last, total)| at <= *last || bytes < *total) {
            return;
        }
        self.points.push_back((at, bytes));
        // On a slow path a window of time holds too few packets to tell a rate from chance.
        while self.points.len() > 2
            && at.since(self.points[1].0) >= window
            && bytes - self.points[1].1 >= LEAST_BYTES
        {
            self.points.pop_front();
        }
        let (since, from) = self.points[0];
        let span = at.since(since);
        // A rate over less than half a window is mostly burst.
        if span * 2 >= window {
            self.rate = Some((bytes - from) as f64 * 8.0 / span.as_secs_f64());
            self.is_full = true;
        }
    }

    /// Bits per second, once a window has been seen.
    pub(super) const fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Whether that is the rate of the present window, and not of one that has been left.
    pub(super) const fn is_current(&self) -> bool {
        self.is_full
    }

    /// Begins a new window, and keeps the rate until it is full.
    pub(super) fn pause(&mut self) {
        self.points.clear();
        self.is_full = false;
    }

    /// Leaves a gap of the sender's own making out. A host that makes one in each window is as fast
    /// as that.
    pub(super) fn skip(&mut self) {
        if self.is_full {
            self.pause();
        }
    }

    /// Forgets the window, after a silence that is no statement about the path's rate.
    pub(super) fn restart(&mut self) {
        self.pause();
        self.rate = None;
    }
}
