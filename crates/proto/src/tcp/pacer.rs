use fontis_base::{Rate, Time};

/// Spreads segments in time: a few of them at once, and then none until all of them would have left
/// at the rate.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// When all that was sent would have left.
    at: Time,
    /// Bytes that may still leave before.
    burst: u32,
}

impl Pacer {
    pub(super) const fn new() -> Self {
        Self { at: Time::ZERO, burst: 0 }
    }

    /// Whether a segment of `mss` bytes must wait.
    pub(super) fn holds_back(&self, now: Time, mss: u32) -> bool {
        now < self.at && self.burst < mss
    }

    /// When what waits may leave.
    pub(super) const fn at(&self) -> Time {
        self.at
    }

    /// A segment of `len` bytes, `size` with its headers, leaves; `quantum` tells how many bytes
    /// may at once.
    pub(super) fn sent(
        &mut self,
        now: Time,
        (len, size): (u32, u64),
        rate: Rate,
        quantum: impl FnOnce() -> u64,
    ) {
        if self.at <= now {
            self.at = now;
            self.burst = quantum() as u32;
        }
        self.at += rate.time_for(size);
        self.burst = self.burst.saturating_sub(len);
    }

    /// Lets the next segment leave at once.
    pub(super) const fn release(&mut self, now: Time) {
        self.at = now;
    }
}
