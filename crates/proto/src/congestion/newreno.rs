use fontis_base::Time;

use super::control::CongestionControl;
use super::sample::{Acknowledgement, Phase};

/// Slow start and congestion avoidance of RFC 5681, counting bytes (RFC 3465): one segment a round
/// trip, and half the window after a loss.
#[derive(Clone, Debug)]
pub(super) struct NewReno {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Bytes acknowledged in congestion avoidance since the window last grew, times `growth`.
    acked: f64,
    /// See [`CongestionControl::set_growth`].
    growth: f64,
}

impl NewReno {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        Self { mss, cwnd: initial_window, ssthresh: u64::MAX, acked: 0.0, growth: 1.0 }
    }

    /// Goes on in congestion avoidance with this window.
    pub(super) fn shrink(&mut self, window: u64) {
        self.ssthresh = window.max(2 * self.mss);
        self.cwnd = self.ssthresh;
        self.acked = 0.0;
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        if ack.phase == Phase::Recovery || !ack.cwnd_limited {
            return;
        }
        let left = slow_start(&mut self.cwnd, self.ssthresh, ack.acked);
        if left > 0 {
            let window = self.cwnd as f64;
            self.acked += left as f64 * self.growth;
            if self.acked >= window {
                self.acked -= window;
                self.cwnd += self.mss;
            } else if self.acked <= -window {
                self.acked += window;
                self.cwnd = self.cwnd.saturating_sub(self.mss).max(self.mss);
                // Else slow start would bring back at once what moves to other paths.
                self.ssthresh = self.ssthresh.min(self.cwnd);
            }
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        self.shrink(window / 2);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = self.mss;
    }

    fn on_idle(&mut self, restart: u64) {
        self.cwnd = self.cwnd.min(restart);
    }

    fn set_growth(&mut self, growth: f64) {
        self.growth = growth;
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

/// Grows a window below its threshold by what was acknowledged; gives what is left for congestion
/// avoidance.
pub(super) fn slow_start(cwnd: &mut u64, ssthresh: u64, acked: u64) -> u64 {
    let grow = acked.min(ssthresh.saturating_sub(*cwnd));
    *cwnd += grow;
    acked - grow
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn congestion_avoidance_adds_a_segment_a_round_trip() {
        let mut congestion = NewReno::new(MSS, 10 * MSS);
        congestion.on_congestion(Time::ZERO, 40 * MSS);
        assert_eq!(congestion.cwnd(), 20 * MSS);
        let mut millis = 0;
        for grown in 1..=10 {
            round(&mut congestion, &mut millis, 100);
            assert_eq!(congestion.cwnd(), (20 + grown) * MSS);
        }
    }

    #[test]
    fn coupled_windows_grow_by_their_part_and_may_shrink() {
        let mut congestion = NewReno::new(MSS, 10 * MSS);
        congestion.on_congestion(Time::ZERO, 40 * MSS);
        let mut millis = 0;
        congestion.set_growth(0.5);
        for _ in 0..8 {
            round(&mut congestion, &mut millis, 100);
        }
        assert_eq!(congestion.cwnd(), 24 * MSS);
        congestion.set_growth(-0.5);
        for _ in 0..200 {
            round(&mut congestion, &mut millis, 100);
        }
        assert_eq!(congestion.cwnd(), MSS, "one packet stays");
    }

    #[test]
    fn the_window_does_not_grow_in_recovery() {
        let mut congestion = NewReno::new(MSS, 10 * MSS);
        congestion.on_ack(&Acknowledgement { phase: Phase::Recovery, ..ack(0, 5, 100) });
        assert_eq!(congestion.cwnd(), 10 * MSS);
    }

    #[test]
    fn the_threshold_is_at_least_two_segments() {
        let mut congestion = NewReno::new(MSS, MSS);
        congestion.on_congestion(Time::ZERO, MSS);
        assert_eq!(congestion.ssthresh(), 2 * MSS);
    }
}
