use fontis_base::{Duration, Rate, Time};

use super::control::CongestionControl;
use super::jumpstart::Jumpstart;
use super::sample::Acknowledgement;

/// Halfback (Li, Dong and Godfrey, "Halfback: running short flows quickly and safely", CoNEXT
/// 2015): Jump Start of no more than [`PACED`] bytes, whose packets then leave again, the last one
/// first, one for each that is delivered, until these copies meet what is acknowledged: of about
/// half of them. A loss at the end is repaired so before it is known.
///
/// Copies are beside the window and cost it nothing. What follows the paced bytes waits until they
/// have met, and leaves as behind Jump Start.
#[derive(Clone, Debug)]
pub(super) struct Halfback {
    jump: Jumpstart,
    mss: u64,
    /// The end of what was paced, before the copies have met what is acknowledged.
    until: Option<u64>,
    /// Bytes delivered since it began.
    delivered: u64,
    /// Copies asked for.
    copies: u64,
    /// Of these, those that were not yet taken.
    waiting: u64,
}

/// The pacing threshold: what the most that is paced is bounded by, beside the receiver's window
/// and the flow's length. The thesis gives no number.
const PACED: u64 = 141 << 10;

impl Halfback {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        let jump = Jumpstart::new(mss, initial_window);
        Self { jump, mss, until: None, delivered: 0, copies: 0, waiting: 0 }
    }

    fn stop(&mut self) {
        self.until = None;
        self.waiting = 0;
    }
}

impl CongestionControl for Halfback {
    fn on_begin(&mut self, rtt: Duration, permitted: u64) {
        let paced = permitted.min(PACED);
        self.jump.on_begin(rtt, paced);
        self.until = self.jump.pacing_rate().map(|_| paced);
    }

    fn on_ack(&mut self, ack: &Acknowledgement) {
        let Some(until) = self.until else { return self.jump.on_ack(ack) };
        self.delivered += ack.delivered;
        if ack.sent_to < until {
            // What is paced leaves first.
            return;
        }
        self.jump.on_ack(&Acknowledgement { delivered: self.delivered, ..*ack });
        let due = self.delivered / self.mss;
        self.waiting += due - self.copies;
        self.copies = due;
        // The copies have come down to here.
        if ack.acked_to >= until.saturating_sub(self.copies * self.mss) {
            self.stop();
        }
    }

    fn on_congestion(&mut self, now: Time, window: u64) {
        self.jump.on_congestion(now, window);
    }

    fn on_lost(&mut self, now: Time, packets: u64) {
        self.jump.on_lost(now, packets);
    }

    fn on_mark(&mut self, now: Time, window: u64) {
        self.jump.on_mark(now, window);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        // All of it leaves again.
        self.stop();
        self.jump.on_timeout(now, window);
    }

    fn on_idle(&mut self, restart: u64) {
        self.jump.on_idle(restart);
    }

    fn cwnd(&self) -> u64 {
        self.jump.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.jump.ssthresh()
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.jump.pacing_rate()
    }

    fn take_copies(&mut self) -> u64 {
        core::mem::take(&mut self.waiting)
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn it_paces_no_more_than_its_threshold() {
        for (permitted, want) in [(50 * MSS, 50 * MSS), (1000 * MSS, PACED)] {
            let mut halfback = Halfback::new(MSS, 10 * MSS);
            halfback.on_begin(ms(100), permitted);
            assert_eq!(halfback.cwnd(), want);
            assert_eq!(halfback.pacing_rate(), Some(Rate::from_bytes_over(want, ms(100))));
        }
    }

    #[test]
    fn half_of_what_was_paced_leaves_again_whatever_an_acknowledgement_covers() {
        for each in [1, 2, 5] {
            for segments in [10u64, 40, 100] {
                let mut halfback = Halfback::new(MSS, 10 * MSS);
                halfback.on_begin(ms(100), segments * MSS);
                let mut copies = 0;
                for n in 1..=segments / each {
                    let acked_to = n * each * MSS;
                    let in_flight = segments * MSS - acked_to;
                    let sent_to = segments * MSS;
                    halfback.on_ack(&Acknowledgement {
                        acked_to,
                        in_flight,
                        sent_to,
                        ..ack(100, each, 100)
                    });
                    copies += halfback.take_copies();
                }
                let half = segments / 2;
                assert!((half - each..=half).contains(&copies), "{copies} of {segments}, {each}");
            }
        }
    }

    #[test]
    fn a_timeout_and_a_connection_without_a_measured_handshake_have_no_copies() {
        let mut halfback = Halfback::new(MSS, 10 * MSS);
        halfback.on_begin(ms(100), 40 * MSS);
        halfback.on_timeout(Time::ZERO, 40 * MSS);
        halfback.on_ack(&ack(100, 4, 100));
        assert_eq!(halfback.take_copies(), 0);
        let mut halfback = Halfback::new(MSS, 10 * MSS);
        halfback.on_ack(&ack(100, 4, 100));
        assert_eq!(halfback.take_copies(), 0);
    }
}
