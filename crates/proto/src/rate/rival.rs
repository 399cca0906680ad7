use fontis_base::{Duration, Rate, Time};

use super::feedback::FeedbackSummary;
use super::window::FeedbackWindow;

/// Queues that stayed although less was sent, so close together, are others': in time, and in round
/// trips.
const CLOSE: (Duration, u64) = (Duration::from_millis(1200), 16);
/// How long others are kept up with before they are looked for again.
const STINT: (Duration, u64) = (Duration::from_secs(8), 40);
/// The queue is looked at over so many round trips; if it was empty in so many of these times in a
/// row, nobody fills it.
const LOOK: u64 = 5;
const LOOKS: u32 = 4;

/// The way to keep up with flows that fill the queue whatever this one does, as loss-based TCP
/// does: with their congestion window.
#[derive(Clone, Debug, Default)]
pub(super) struct Rival {
    window: Option<FeedbackWindow>,
    since: Time,
    /// Looks in a row that saw the queue empty, whether the present one did, and when it began.
    looks: u32,
    was_empty: bool,
    looked_at: Time,
    /// When a queue last stayed.
    stayed_at: Option<Time>,
}

impl Rival {
    /// Whether others are kept up with.
    pub(super) const fn is_on(&self) -> bool {
        self.window.is_some()
    }

    /// A queue stayed although less was sent. The second time others are kept up with.
    pub(super) fn on_stay(&mut self, sample: &FeedbackSummary, rate: f64) {
        let is_close = |at| sample.now.since(at) < sample.at_least(CLOSE);
        let again = self.stayed_at.is_some_and(is_close);
        self.stayed_at = Some(sample.now);
        if again {
            self.stayed_at = None;
            let bytes = rate / 8.0 * sample.srtt.as_secs_f64();
            self.window = Some(FeedbackWindow::avoiding(bytes as u64, sample));
            (self.since, self.looked_at, self.looks) = (sample.now, sample.now, 0);
        }
    }

    /// Takes a feedback, and whether its losses show an overload. The rate to go on with once they
    /// are not kept up with any more, because the queue is `empty` or it is time to look for them.
    pub(super) fn on_feedback(
        &mut self,
        sample: &FeedbackSummary,
        overload: bool,
        empty: bool,
    ) -> Option<Rate> {
        let window = self.window.as_mut()?;
        window.on_feedback(sample, overload);
        self.was_empty |= empty;
        if sample.now.since(self.looked_at) > sample.min_rtt * LOOK {
            self.looks = if core::mem::take(&mut self.was_empty) { self.looks + 1 } else { 0 };
            self.looked_at = sample.now;
        }
        if self.looks < LOOKS && sample.now.since(self.since) <= sample.at_least(STINT) {
            return None;
        }
        // One queue that stays is enough to take it up again.
        self.stayed_at = Some(sample.now);
        self.window.take().map(|window| window.rate())
    }

    /// Its part of what several have that together take one window's share.
    pub(super) fn set_part(&mut self, part: f64) {
        if let Some(window) = &mut self.window {
            window.set_part(part);
        }
    }

    /// Another round trip has passed without the feedback that was due.
    pub(super) fn on_silence(&mut self) {
        if let Some(window) = &mut self.window {
            window.on_silence();
        }
    }

    /// The rate and the bytes in flight that keep up with them.
    pub(super) fn pace(&self) -> Option<(Rate, u64)> {
        self.window.as_ref().map(|window| (window.rate(), window.allowance()))
    }

    /// The first packet whose loss counts.
    pub(super) fn recovered_at(&self) -> u64 {
        self.window.as_ref().map_or(0, FeedbackWindow::recovered_at)
    }
}
