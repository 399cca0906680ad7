//! What waits at a receiver, and how long.

use std::collections::BTreeMap;

use fontis_base::{Duration, Time};

/// Chunks beyond a gap, and a time integral of what is held.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    begin: Time,
    read: Time,
    /// Bytes times nanoseconds.
    integral: u128,
    pub(super) peak: u64,
    /// When each chunk beyond a gap came.
    beyond: BTreeMap<u64, Time>,
    pub(super) count: u64,
    pub(super) total: Duration,
    pub(super) longest: Duration,
}

impl Waits {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            begin: now,
            read: now,
            integral: 0,
            peak: 0,
            beyond: BTreeMap::new(),
            count: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// So many bytes have been held since the last call.
    pub(super) fn read(&mut self, now: Time, held: u64) {
        self.integral += u128::from(held) * u128::from(now.since(self.read).as_nanos());
        self.read = now;
        self.peak = self.peak.max(held);
    }

    /// The mean of the bytes held up to the last reading.
    pub(super) fn mean(&self) -> u64 {
        let span = u128::from(self.read.since(self.begin).as_nanos()).max(1);
        u64::try_from(self.integral / span).unwrap_or(u64::MAX)
    }

    /// A chunk has come beyond a gap.
    pub(super) fn add(&mut self, now: Time, tsn: u64) {
        self.beyond.insert(tsn, now);
    }

    /// Nothing is missing up to this TSN.
    pub(super) fn release(&mut self, now: Time, cumulative: u64) {
        while let Some(entry) = self.beyond.first_entry().filter(|e| *e.key() <= cumulative) {
            let wait = now.since(entry.remove());
            self.count += 1;
            self.total += wait;
            self.longest = self.longest.max(wait);
        }
    }
}
