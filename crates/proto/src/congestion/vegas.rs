use fontis_base::Time;

use super::control::CongestionControl;
use super::newreno::slow_start;
use super::round::Round;
use super::sample::{Acknowledgement, Phase};

/// Vegas (Brakmo, O'Malley and Peterson, 1994) as Linux has it: keeps between two and four packets
/// in the queue.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    round: Round,
}

/// Packets in the queue below which the window grows ("alpha").
const ALPHA: f64 = 2.0;
/// Packets in the queue above which it shrinks ("beta").
const BETA: f64 = 4.0;
/// Packets in the queue that end slow start ("gamma").
const GAMMA: f64 = 1.0;

impl Vegas {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        Self { mss, cwnd: initial_window, ssthresh: u64::MAX, round: Round::new() }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        let round = self.round.on_ack(ack);
        if ack.phase == Phase::Recovery {
            return;
        }
        let in_slow_start = self.cwnd < self.ssthresh;
        let Some(rtt) = round else {
            if in_slow_start && ack.cwnd_limited {
                slow_start(&mut self.cwnd, self.ssthresh, ack.acked);
            }
            return;
        };
        let (base, rtt) = (ack.min_rtt.as_secs_f64(), rtt.as_secs_f64());
        let queued = self.cwnd as f64 / self.mss as f64 * (rtt - base) / base.max(1e-9);
        if in_slow_start {
            if queued > GAMMA {
                // What the path holds without a queue, and a packet.
                let target = (self.cwnd as f64 * base / rtt.max(1e-9)) as u64 + self.mss;
                self.cwnd = self.cwnd.min(target).max(2 * self.mss);
                self.ssthresh = self.cwnd;
            } else if ack.cwnd_limited {
                slow_start(&mut self.cwnd, self.ssthresh, ack.acked);
            }
        } else if queued > BETA {
            self.cwnd = self.cwnd.saturating_sub(self.mss).max(2 * self.mss);
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if queued < ALPHA && ack.cwnd_limited {
            self.cwnd += self.mss;
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        self.ssthresh = (window / 2).max(2 * self.mss);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = self.mss;
    }

    fn on_idle(&mut self, restart: u64) {
        self.cwnd = self.cwnd.min(restart);
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

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn the_window_settles_where_two_to_four_packets_are_queued() {
        // A path that holds 50 segments in 100 ms: every further one waits 2 ms.
        let mut congestion = Vegas::new(MSS, 10 * MSS);
        let (mut now, mut una) = (1_000, 0);
        for _ in 0..100 {
            let segments = congestion.cwnd() / MSS;
            let rtt = 100 + 2 * segments.saturating_sub(50);
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
        let window = congestion.cwnd() / MSS;
        assert!((52..=54).contains(&window), "{window}");
    }
}
