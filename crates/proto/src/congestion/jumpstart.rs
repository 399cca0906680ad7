use fontis_base::{Duration, Rate, Time};

use super::control::CongestionControl;
use super::newreno::NewReno;
use super::sample::{Acknowledgement, Phase};

/// Jump Start (Liu, Allman, Jin and Wang, "Congestion control without a startup phase", PFLDnet
/// 2007): no slow start. All that the receiver permits and the application has, D, leaves evenly
/// over the round trip that the handshake measured. The first acknowledgement ends that, and what
/// has left by then is the window of congestion avoidance. If R packets of it are lost, the window
/// behind their recovery is (D − R)/2 in place of D/2. All else is Reno.
///
/// Without a measured handshake it is Reno with its initial window.
#[derive(Clone, Debug)]
pub(super) struct Jumpstart {
    reno: NewReno,
    mss: u64,
    jump: Jump,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Jump {
    /// Nothing has left.
    Ahead,
    /// D leaves at this rate.
    Pacing { data: u64, rate: Rate },
    /// The first acknowledgement has come. What had left by then counts as lost or not until all
    /// before this position is acknowledged.
    Landed { data: u64, until: u64 },
    /// Losses of the jump are being repaired.
    Repairing { data: u64, lost: u64 },
    /// The jump is history.
    Over,
}

impl Jumpstart {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        Self { reno: NewReno::new(mss, initial_window), mss, jump: Jump::Ahead }
    }
}

impl CongestionControl for Jumpstart {
    fn on_begin(&mut self, rtt: Duration, permitted: u64) {
        if self.jump == Jump::Ahead && permitted > 0 && rtt > Duration::ZERO {
            self.reno.shrink(permitted);
            let rate = Rate::from_bytes_over(permitted, rtt);
            self.jump = Jump::Pacing { data: permitted, rate };
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement) {
        match self.jump {
            Jump::Ahead => self.jump = Jump::Over,
            Jump::Pacing { data, .. } => {
                let left = ack.in_flight.saturating_add(ack.delivered).saturating_add(ack.lost);
                let data = left.min(data);
                self.reno.shrink(data);
                self.jump = Jump::Landed { data, until: ack.sent_to };
            }
            Jump::Landed { until, .. } if ack.acked_to >= until => self.jump = Jump::Over,
            Jump::Repairing { .. } if ack.phase == Phase::Open => self.jump = Jump::Over,
            _ => {}
        }
        self.reno.on_ack(ack);
    }

    fn on_congestion(&mut self, now: Time, window: u64) {
        match self.jump {
            Jump::Pacing { data, .. } | Jump::Landed { data, .. } => {
                self.reno.shrink(data / 2);
                self.jump = Jump::Repairing { data, lost: 0 };
            }
            _ => {
                self.jump = Jump::Over;
                self.reno.on_congestion(now, window);
            }
        }
    }

    fn on_lost(&mut self, _now: Time, packets: u64) {
        if let Jump::Repairing { data, lost } = self.jump {
            let lost = lost.saturating_add(packets.saturating_mul(self.mss)).min(data);
            self.reno.shrink((data - lost) / 2);
            self.jump = Jump::Repairing { data, lost };
        }
    }

    fn on_mark(&mut self, now: Time, window: u64) {
        self.jump = Jump::Over;
        self.reno.on_congestion(now, window);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.jump = Jump::Over;
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

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.jump {
            Jump::Pacing { rate, .. } => Some(rate),
            _ => None,
        }
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// A flow that jumped with `data` segments, `left` of which had left when the first was
    /// acknowledged.
    fn landed(data: u64, left: u64) -> Jumpstart {
        let mut congestion = Jumpstart::new(MSS, 10 * MSS);
        congestion.on_begin(ms(100), data * MSS);
        congestion.on_ack(&Acknowledgement {
            in_flight: (left - 1) * MSS,
            acked_to: MSS,
            sent_to: left * MSS,
            ..ack(100, 1, 100)
        });
        congestion
    }

    #[test]
    fn what_is_permitted_leaves_evenly_over_the_round_trip_of_the_handshake() {
        for data in [3, 40, 700] {
            let mut congestion = Jumpstart::new(MSS, 10 * MSS);
            assert_eq!(congestion.pacing_rate(), None);
            congestion.on_begin(ms(100), data * MSS);
            assert_eq!(congestion.cwnd(), data.max(2) * MSS);
            assert_eq!(congestion.pacing_rate(), Some(Rate::from_bytes_over(data * MSS, ms(100))));
        }
    }

    #[test]
    fn the_first_acknowledgement_ends_it_with_what_has_left_as_the_window_of_avoidance() {
        let mut congestion = landed(100, 80);
        assert_eq!((congestion.cwnd(), congestion.pacing_rate()), (80 * MSS, None));
        // Avoidance: a segment a round trip.
        let mut millis = 200;
        round(&mut congestion, &mut millis, 100);
        assert_eq!(congestion.cwnd(), 81 * MSS);
    }

    #[test]
    fn losses_of_the_jump_leave_half_of_what_arrived_and_later_ones_half_the_window() {
        let mut congestion = landed(100, 80);
        congestion.on_congestion(Time::ZERO, 80 * MSS);
        congestion.on_lost(Time::ZERO, 1);
        congestion.on_lost(Time::ZERO, 19);
        assert_eq!(congestion.cwnd(), 30 * MSS);
        congestion.on_ack(&Acknowledgement { phase: Phase::Recovery, ..ack(300, 1, 100) });
        congestion.on_ack(&Acknowledgement { acked_to: 80 * MSS, ..ack(400, 1, 100) });
        assert_eq!(congestion.cwnd(), 30 * MSS);
        for (acked_to, want) in [(80, 40), (40, 30)] {
            let mut congestion = landed(100, 80);
            congestion.on_ack(&Acknowledgement { acked_to: acked_to * MSS, ..ack(300, 1, 100) });
            congestion.on_congestion(Time::ZERO, 80 * MSS);
            congestion.on_lost(Time::ZERO, 20);
            assert_eq!(congestion.cwnd(), want * MSS, "{acked_to}");
        }
    }

    #[test]
    fn without_a_measured_handshake_it_is_reno() {
        let mut congestion = Jumpstart::new(MSS, 10 * MSS);
        let mut reno = NewReno::new(MSS, 10 * MSS);
        let (mut one, mut other) = (0, 0);
        for _ in 0..4 {
            round(&mut congestion, &mut one, 100);
            round(&mut reno, &mut other, 100);
        }
        congestion.on_congestion(Time::ZERO, 160 * MSS);
        congestion.on_lost(Time::ZERO, 30);
        reno.on_congestion(Time::ZERO, 160 * MSS);
        assert_eq!((congestion.cwnd(), congestion.ssthresh()), (reno.cwnd(), reno.ssthresh()));
    }
}
