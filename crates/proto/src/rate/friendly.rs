use fontis_base::Rate;

use super::feedback::FeedbackSummary;
use super::window::FeedbackWindow;
use crate::congestion::table::CongestionKind;

/// Keeps to what a CUBIC flow would take in its place: for networks that are shared with TCP by
/// queues that do not separate flows.
///
/// It holds a congestion window by CUBIC's rules (RFC 9438, with HyStart) over the packets that
/// feedback reports, paced as Linux paces: losses count as congestion, once a round trip, whatever
/// their cause. So it has CUBIC's response function because it has its window, and is as slow as
/// CUBIC where packets are lost at random.
#[derive(Clone, Debug, Default)]
pub struct Friendly {
    window: FeedbackWindow,
}

impl Friendly {
    /// Keeps to what a flow of another algorithm would take.
    pub fn like(kind: CongestionKind) -> Self {
        Self { window: FeedbackWindow::of(kind) }
    }

    /// Takes a feedback.
    pub fn on_feedback(&mut self, sample: &FeedbackSummary) {
        let first = self.window.recovered_at();
        let is_lost = |(number, received): &(u64, bool)| !received && *number >= first;
        let congested =
            sample.decided.iter().any(is_lost) || (sample.marked > 0 && sample.largest >= first);
        self.window.on_feedback(sample, congested);
    }

    /// Whether it has met congestion.
    pub fn has_started(&self) -> bool {
        self.window.has_started()
    }

    /// See [`RateController::set_part`](super::RateController::set_part).
    pub fn set_part(&mut self, part: f64) {
        self.window.set_part(part);
    }

    /// Another round-trip time has passed without the feedback that was due.
    pub fn on_silence(&mut self) {
        self.window.on_silence();
    }

    /// The rate to pace at, counted in bytes at the IP layer.
    pub fn rate(&self) -> Rate {
        self.window.rate()
    }

    /// How many bytes may be sent that nothing is known of.
    pub fn allowance(&self) -> u64 {
        self.window.allowance()
    }
}
