use fontis_base::Time;

use super::control::CongestionControl;
use super::newreno::NewReno;
use super::sample::Acknowledgement;

/// The share of each round trip in the estimate of marks, g of RFC 8257 section 4.2.
const GAIN: f64 = 1.0 / 16.0;

/// Data Center TCP (RFC 8257): the window shrinks by half of the share of bytes that came back
/// marked, instead of by half of itself. Growth and what follows losses are NewReno's.
#[derive(Clone, Debug)]
pub(super) struct Dctcp {
    reno: NewReno,
    /// The estimated share of marked bytes: one at first, the cautious choice (section 3.3).
    alpha: f64,
    /// Bytes delivered, and of these marked ones, since the estimate was last renewed.
    delivered: u64,
    marked: u64,
    /// When this position is acknowledged, a window of data has been observed.
    window_end: u64,
}

impl Dctcp {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        let reno = NewReno::new(mss, initial_window);
        Self { reno, alpha: 1.0, delivered: 0, marked: 0, window_end: 0 }
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        self.delivered += ack.delivered;
        if ack.marked {
            self.marked += ack.delivered;
        }
        if ack.acked_to > self.window_end && self.delivered > 0 {
            let share = self.marked as f64 / self.delivered as f64;
            self.alpha += GAIN * (share - self.alpha);
            self.delivered = 0;
            self.marked = 0;
            self.window_end = ack.sent_to;
        }
        self.reno.on_ack(ack);
    }

    fn on_congestion(&mut self, now: Time, window: u64) {
        self.reno.on_congestion(now, window);
    }

    /// "cwnd = cwnd * (1 - DCTCP.Alpha / 2)" (section 3.3).
    fn on_mark(&mut self, _now: Time, window: u64) {
        self.reno.shrink((window as f64 * (1.0 - self.alpha / 2.0)) as u64);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.reno.on_timeout(now, window);
    }

    fn on_idle(&mut self, restart: u64) {
        self.reno.on_idle(restart);
    }

    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn observed(windows: u64, marked: impl Fn(u64) -> bool) -> Dctcp {
        let mut congestion = Dctcp::new(MSS, 10 * MSS);
        // Out of slow start, with a window of ten segments.
        congestion.on_congestion(Time::ZERO, 20 * MSS);
        for window in 0..windows {
            for n in 1..=10 {
                let una = (window * 10 + n) * MSS;
                let nxt = una + 10 * MSS;
                let cwnd_limited = false;
                congestion.on_ack(&Acknowledgement {
                    acked_to: una,
                    sent_to: nxt,
                    marked: marked(n),
                    cwnd_limited,
                    ..ack(0, 1, 1)
                });
            }
        }
        congestion
    }

    #[test]
    fn the_window_shrinks_by_half_of_the_share_of_marks() {
        // After many windows the estimate is the share: 1, 0.3, and next to none.
        for (share, left) in [(10, 0.5), (3, 0.85), (0, 1.0)] {
            let mut congestion = observed(300, |n| n <= share);
            congestion.on_mark(Time::ZERO, 10 * MSS);
            let got = congestion.cwnd() as f64 / (10 * MSS) as f64;
            assert!((got - left).abs() < 0.01, "{share}: {got}");
        }
    }

    #[test]
    fn at_first_a_mark_counts_as_a_loss_and_the_estimate_moves_by_a_sixteenth() {
        let mut congestion = observed(0, |_| false);
        congestion.on_mark(Time::ZERO, 10 * MSS);
        assert_eq!(congestion.cwnd(), 5 * MSS);
        // The first acknowledgement ends the first window: 15/16 are left.
        let mut congestion = observed(1, |_| false);
        congestion.on_mark(Time::ZERO, 10 * MSS);
        assert_eq!(congestion.cwnd(), (10_000.0 * (1.0 - 0.9375 / 2.0)) as u64);
    }

    #[test]
    fn a_loss_halves() {
        let mut congestion = observed(300, |_| false);
        congestion.on_congestion(Time::ZERO, 10 * MSS);
        assert_eq!(congestion.cwnd(), 5 * MSS);
    }
}
