use std::collections::BTreeSet;

use fontis_base::{Duration, Time};

use super::packet::ChannelId;

/// How often feedback leaves at once in a feedback interval; further feedback waits for its end.
const AT_ONCE: u32 = 8;
/// Every so many feedbacks one asks for an answer, so that a side that only receives knows its
/// round-trip time.
const PING_EVERY: u64 = 32;

/// Feedback's share of the bytes that come, beside the newest of what it tells, and how many bytes
/// of it may be saved. Where much is lost there is most to tell, and feedback has no other bound.
const SHARE: u32 = 4;
const NEWEST: usize = 64;
const SAVED: usize = 4096;

/// When to send feedback on a path, and what it tells beside the path's packets.
#[derive(Default)]
pub(super) struct FeedbackDue {
    pub(super) at: Option<Time>,
    /// Channels whose status has changed since this path last told it.
    pub(super) dirty: BTreeSet<ChannelId>,
    sent: u64,
    /// Bytes of feedback that what came has earned.
    earned: usize,
    /// When feedback was first sent at once, and how often since.
    burst: (Time, u32),
    /// The channel whose status the answer to the next PING tells first.
    pub(super) next_told: ChannelId,
}

impl FeedbackDue {
    /// Feedback is due at `at`, or earlier if it was.
    pub(super) fn by(&mut self, at: Time) {
        self.at = Some(self.at.map_or(at, |earlier| earlier.min(at)));
    }

    /// When feedback may leave that is wanted at once, so that it is more often than that only by
    /// its regular timer.
    pub(super) fn at_once(&mut self, now: Time, interval: Duration) -> Time {
        let (began, count) = self.burst;
        if count == 0 || now.since(began) >= interval {
            self.burst = (now, 1);
            return now;
        }
        self.burst.1 = count.saturating_add(1);
        if count < AT_ONCE { now } else { began + interval }
    }

    /// A packet of so many bytes came.
    pub(super) fn earn(&mut self, size: u32) {
        self.earned = (self.earned + (size / SHARE) as usize).min(SAVED);
    }

    /// The most bytes that tell what came.
    pub(super) fn most(&self) -> usize {
        self.earned.max(NEWEST)
    }

    /// So many bytes tell it.
    pub(super) const fn spend(&mut self, bytes: usize) {
        self.earned = self.earned.saturating_sub(bytes);
    }

    /// Feedback leaves; whether it should ask for an answer.
    pub(super) fn sent(&mut self) -> bool {
        self.sent += 1;
        self.sent.is_multiple_of(PING_EVERY)
    }
}
