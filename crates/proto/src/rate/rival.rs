use fontis_base::{Duration, Rate, Time};

use super::drain::Outcome;
use super::feedback::FeedbackSummary;
use super::window::FeedbackWindow;

/// Queues that stayed although less was sent, so close together, are others': in time, and in round
/// trips.
const CLOSE: (Duration, u64) = (Duration::from_millis(1200), 16);
/// How long others are kept up with before they are looked for again.
const STINT: (Duration, u64) = (Duration::from_secs(8), 40);
/// A queue that is so many times as long as a flow aims at, on average between two drains, is
/// filled by others if it does not fall as it would if all sent less; so many times in a row.
const ABOVE: f64 = 1.05;
const ROBBED: u32 = 2;
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
    /// The queues of the rounds since the last drain and those that were aimed at, and the drains
    /// in a row that showed others. A stint's rounds count: the drain behind it then confirms soon
    /// that others still fill the queue.
    queues: (f64, f64),
    robbed: u32,
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
            self.begin(sample, rate);
        }
    }

    /// A round has ended with this queue, where that was aimed at, and with no overload if it is
    /// `clear`: while losses bound a flow they say enough.
    pub(super) fn on_round(&mut self, queue: f64, target: f64, clear: bool) {
        if clear {
            self.queues.0 += queue;
            self.queues.1 += target;
        } else {
            (self.queues, self.robbed) = ((0.0, 0.0), 0);
        }
    }

    /// A queue was emptied with this outcome by a flow that had this rate before.
    pub(super) fn on_drain(&mut self, sample: &FeedbackSummary, outcome: Outcome, rate: f64) {
        let (queues, targets) = core::mem::take(&mut self.queues);
        if outcome == Outcome::Fell {
            self.robbed = 0;
        } else if queues > ABOVE * targets {
            self.robbed += 1;
            if self.robbed >= ROBBED && !self.is_on() {
                self.begin(sample, rate);
            }
        }
    }

    /// Others are kept up with, from this rate on.
    pub(super) fn begin(&mut self, sample: &FeedbackSummary, rate: f64) {
        (self.stayed_at, self.robbed) = (None, 0);
        let bytes = rate / 8.0 * sample.srtt.as_secs_f64();
        self.window = Some(FeedbackWindow::avoiding(bytes as u64, sample));
        (self.since, self.looked_at, self.looks) = (sample.now, sample.now, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_too_long_and_does_not_fall_as_all_send_less_is_kept_up_with() {
        let sample = FeedbackSummary::example(0);
        let drained = |queue, clear| {
            let mut rival = Rival::default();
            for _ in 0..ROBBED {
                rival.on_round(queue, 10e-3, true);
                rival.on_round(queue, 10e-3, clear);
                rival.on_drain(&sample, Outcome::Shared, 10e6);
            }
            rival.is_on()
        };
        assert!(drained(12e-3, true));
        assert!(!drained(10e-3, true), "all aim at this queue");
        assert!(!drained(12e-3, false), "losses tell");
    }
}
