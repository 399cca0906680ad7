use fontis_base::{Duration, Time};

use super::feedback::FeedbackSummary;

/// The delays that a least one is taken of, and the time, as a multiple of the jitter and at least.
const LEAST_DELAYS: u32 = 16;
const JITTERS: u64 = 4;
const LEAST_TIME: Duration = Duration::from_millis(10);

/// The queue that stands while delays jitter.
///
/// What holds packets back makes them later and never sooner. So the least delay of a time that is
/// longer than what holds one back is about that of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    since: Time,
    least: Option<i64>,
    delays: u32,
}

impl Floor {
    /// Takes a feedback. If a time ends with it, the least one-way delay of that time.
    pub(super) fn observe(&mut self, sample: &FeedbackSummary) -> Option<i64> {
        for (_, delay) in &sample.one_way_ns {
            self.least = Some(self.least.map_or(*delay, |least| least.min(*delay)));
            self.delays += 1;
        }
        let time = (sample.jitter * JITTERS).max(LEAST_TIME);
        if self.delays < LEAST_DELAYS || sample.now.since(self.since) < time {
            return None;
        }
        core::mem::replace(self, Self { since: sample.now, ..Self::default() }).least
    }
}
