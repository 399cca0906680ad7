use fontis_base::Time;

use super::control::CongestionControl;
use super::newreno::slow_start;
use super::round::Round;
use super::sample::{Acknowledgement, Phase};

/// Compound TCP (Tan and others, 2006; draft-sridharan-tcpm-ctcp): beside the window that follows
/// losses there is one that follows delay. It grows fast while the path's queue is short, and gives
/// way when the queue builds up.
#[derive(Clone, Debug)]
pub(super) struct Compound {
    mss: f64,
    /// The window that follows losses, in segments.
    cwnd: f64,
    /// The window that follows delay, in segments.
    dwnd: f64,
    ssthresh: f64,
    with_delay: bool,
    round: Round,
}

/// How the delay window grows: α·win^k (section 4.1 of the paper).
const ALPHA: f64 = 0.125;
const K: f64 = 0.75;
/// What a loss leaves of the window is 1−β.
const BETA: f64 = 0.5;
/// Packets in the queue from which on the delay window shrinks.
const GAMMA: f64 = 30.0;
/// How fast it shrinks.
const ZETA: f64 = 1.0;

impl Compound {
    pub(super) fn new(mss: u64, initial_window: u64, with_delay: bool) -> Self {
        let mss = mss as f64;
        Self {
            mss,
            cwnd: initial_window as f64 / mss,
            dwnd: 0.0,
            ssthresh: f64::INFINITY,
            with_delay,
            round: Round::new(),
        }
    }

    fn window(&self) -> f64 {
        self.cwnd + self.dwnd
    }
}

impl CongestionControl for Compound {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        let round = self.round.on_ack(ack);
        if ack.phase == Phase::Recovery || !ack.cwnd_limited {
            return;
        }
        let window = self.window();
        if window < self.ssthresh {
            let (mut bytes, threshold) = (self.cwnd(), self.ssthresh());
            let before = bytes;
            slow_start(&mut bytes, threshold, ack.acked);
            self.cwnd += (bytes - before) as f64 / self.mss;
            return;
        }
        self.cwnd += ack.acked as f64 / self.mss / window;
        if let (Some(rtt), true) = (round, self.with_delay) {
            let base = ack.min_rtt.as_secs_f64();
            let queued = window * (1.0 - base / rtt.as_secs_f64().max(base));
            self.dwnd = if queued < GAMMA {
                self.dwnd + (ALPHA * libm::pow(window, K) - 1.0).max(0.0)
            } else {
                (self.dwnd - ZETA * queued).max(0.0)
            };
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        let window = window as f64 / self.mss;
        let loss_window = self.cwnd.min(window);
        self.cwnd = (loss_window / 2.0).max(2.0);
        self.dwnd = if self.with_delay {
            (window * (1.0 - BETA) - loss_window / 2.0).max(0.0)
        } else {
            0.0
        };
        self.ssthresh = self.window();
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = 1.0;
        self.dwnd = 0.0;
    }

    fn on_idle(&mut self, restart: u64) {
        self.cwnd = self.cwnd.min(restart as f64 / self.mss);
        self.dwnd = 0.0;
    }

    fn cwnd(&self) -> u64 {
        (self.window() * self.mss) as u64
    }

    fn ssthresh(&self) -> u64 {
        (self.ssthresh * self.mss) as u64
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::newreno::NewReno;
    use super::super::testing::*;
    use super::*;

    /// The window after `rounds` of congestion avoidance from 100 segments, with the given
    /// round-trip time over a least one of 100 ms.
    fn grow(mut congestion: impl CongestionControl, rtt: u64, rounds: u64) -> f64 {
        congestion.on_congestion(Time::ZERO, 200 * MSS);
        let (mut now, mut una) = (1_000, 0);
        for _ in 0..rounds {
            let segments = congestion.cwnd() / MSS;
            let nxt = una + segments * MSS;
            for _ in 0..segments {
                una += MSS;
                congestion.on_ack(&Acknowledgement {
                    acked_to: una,
                    sent_to: nxt,
                    min_rtt: ms(100),
                    ..ack(now, 1, rtt)
                });
            }
            now += rtt;
        }
        congestion.cwnd() as f64 / MSS as f64
    }

    fn compound(with_delay: bool) -> Compound {
        Compound::new(MSS, 200 * MSS, with_delay)
    }

    fn reno() -> NewReno {
        NewReno::new(MSS, 200 * MSS)
    }

    #[test]
    fn without_a_queue_the_delay_window_adds_alpha_times_a_power_of_the_window() {
        // One segment of Reno, and 1/8 · w^3/4 - 1 beside it.
        let [before, after] = [3, 4].map(|rounds| grow(compound(true), 100, rounds));
        let step = 1.0 + ALPHA * before.powf(K) - 1.0;
        assert!((after - before - step).abs() < 0.1, "{after} after {before}: {step} more");
    }

    #[test]
    fn without_its_delay_part_it_is_reno() {
        let (reno, part) = (grow(reno(), 100, 50), grow(compound(false), 100, 50));
        assert!((part - reno).abs() < 2.0, "{part}, not {reno}");
        assert!(grow(compound(true), 100, 50) > 1.5 * reno);
    }

    #[test]
    fn a_queue_takes_the_delay_window_back() {
        // Half of the window is queued: more than 30 packets.
        let (reno, with_queue) = (grow(reno(), 200, 50), grow(compound(true), 200, 50));
        assert!((with_queue - reno).abs() < 2.0, "{with_queue}, not {reno}");
    }
}
