use fontis_base::{Duration, Rate, Time};

use super::feedback::{FeedbackSummary, feedback_interval};
use crate::congestion::control::CongestionControl;
use crate::congestion::sample::{Acknowledgement, Phase};
use crate::congestion::table::{CongestionKind, Setup};

/// Bytes of a segment of the TCP flows that it keeps up with.
const SEGMENT: u64 = 1500;
/// Segments of the initial window (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Segments that may always be in flight, which is the least that a loss leaves TCP (RFC 5681,
/// equation 4).
const LEAST: u64 = 2;
/// Round trips without feedback that count as a timeout.
const SILENCES: u32 = 8;

/// A congestion window over the packets that feedback reports, paced as Linux paces. It follows the
/// rules of CUBIC (RFC 9438, with HyStart) if not those of another algorithm.
#[derive(Clone, Debug)]
pub(super) struct FeedbackWindow {
    window: Box<dyn CongestionControl>,
    srtt: Duration,
    received_bytes: u64,
    /// Losses of packets before this number belong to a round trip that has paid for them.
    recovered_at: u64,
    now: Time,
    silences: u32,
}

impl Default for FeedbackWindow {
    fn default() -> Self {
        Self::new(INITIAL_WINDOW * SEGMENT, 0)
    }
}

impl FeedbackWindow {
    /// A window of so many bytes that has met no congestion, when so many bytes have been received.
    pub(super) fn new(bytes: u64, received_bytes: u64) -> Self {
        Self::started(CongestionKind::CubicHyStart, bytes, received_bytes)
    }

    /// The window of a flow of this algorithm at its beginning.
    pub(super) fn of(kind: CongestionKind) -> Self {
        Self::started(kind, INITIAL_WINDOW * SEGMENT, 0)
    }

    fn started(kind: CongestionKind, bytes: u64, received_bytes: u64) -> Self {
        let setup = Setup { mss: SEGMENT, initial_window: bytes.max(LEAST * SEGMENT), salt: 0 };
        Self {
            window: kind.start(setup),
            srtt: Duration::ZERO,
            received_bytes,
            recovered_at: 0,
            now: Time::ZERO,
            silences: 0,
        }
    }

    /// A window of so many bytes that has met congestion, and grows as one does then.
    pub(super) fn avoiding(bytes: u64, sample: &FeedbackSummary) -> Self {
        let mut window = Self::new(bytes, sample.received_bytes);
        window.srtt = sample.srtt;
        window.window.on_congestion(sample.now, bytes);
        window.recovered_at = sample.next_number;
        window
    }

    /// The first packet whose loss counts: the round trip of those before it has paid.
    pub(super) const fn recovered_at(&self) -> u64 {
        self.recovered_at
    }

    /// Whether slow start is over.
    pub(super) fn has_started(&self) -> bool {
        self.window.cwnd() >= self.window.ssthresh()
    }

    /// Its part of what several have that together take one window's share.
    pub(super) fn set_part(&mut self, part: f64) {
        self.window.set_part(part);
    }

    /// Takes a feedback, and whether it shows congestion.
    pub(super) fn on_feedback(&mut self, sample: &FeedbackSummary, congested: bool) {
        self.now = sample.now;
        self.srtt = sample.srtt;
        self.silences = 0;
        let acked = sample.received_bytes.saturating_sub(self.received_bytes);
        self.received_bytes = sample.received_bytes;
        let cwnd = self.window.cwnd();
        let used = sample.in_flight + acked;
        // Between feedbacks a paced window is seldom used to its last byte.
        let full = cwnd / 2;
        if congested {
            // What it was not let use says nothing; a few bytes below it are the grain of feedback.
            let flight = if used >= full { cwnd } else { used.max(2 * SEGMENT) };
            self.window.on_congestion(sample.now, flight);
            self.recovered_at = sample.next_number;
        }
        let lost = sample.decided.iter().filter(|(_, received)| !received).count() as u64;
        if lost > 0 {
            self.window.on_lost(sample.now, lost);
        }
        let in_recovery = sample.largest < self.recovered_at && self.recovered_at > 0;
        self.window.on_ack(&Acknowledgement {
            now: sample.now,
            acked,
            delivered: acked,
            lost: lost * SEGMENT,
            rtt: Some(sample.srtt),
            min_rtt: sample.min_rtt,
            srtt: sample.srtt,
            marked: sample.marked > 0,
            in_flight: sample.in_flight,
            cwnd_limited: used >= full,
            acked_to: sample.largest + 1,
            sent_to: sample.next_number,
            phase: if in_recovery { Phase::Recovery } else { Phase::Open },
            shortest_stream: None,
            delivery: None,
        });
    }

    /// Another round-trip time has passed without the feedback that was due.
    pub(super) fn on_silence(&mut self) {
        self.silences += 1;
        if self.silences == SILENCES {
            self.window.on_timeout(self.now, self.window.cwnd());
        }
    }

    /// The rate to pace at, counted in bytes at the IP layer: twice the window a round trip in slow
    /// start, then 1.2 times it, as Linux does.
    pub(super) fn rate(&self) -> Rate {
        if self.srtt == Duration::ZERO {
            return Rate::MAX;
        }
        let cwnd = self.window.cwnd();
        let percent = if cwnd < self.window.ssthresh() / 2 { 200 } else { 120 };
        Rate::from_bytes_over(cwnd, self.srtt).mul_ratio(percent, 100)
    }

    /// How many bytes may be sent that nothing is known of: the window, and what has arrived and is
    /// not reported yet.
    pub(super) fn allowance(&self) -> u64 {
        let cwnd = self.window.cwnd();
        let unreported = match self.srtt {
            Duration::ZERO => 0,
            srtt => Rate::from_bytes_over(cwnd, srtt).bytes_in(feedback_interval(srtt)),
        };
        (cwnd + unreported).max(LEAST * SEGMENT)
    }
}
