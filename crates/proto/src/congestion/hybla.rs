use fontis_base::{Duration, Rate, Time};

use super::control::CongestionControl;
use super::sample::{Acknowledgement, Phase};

/// The round trip whose rates it aims at.
const REFERENCE: Duration = Duration::from_millis(25);
/// Bytes at which the reference ends its first slow start: the largest window that a header without
/// options can tell. The paper leaves it open.
const THRESHOLD: f64 = 65_535.0;
/// The largest exponent of slow start. Every window that fits into a path is reached by it.
const MOST_DOUBLINGS: f64 = 16.0;
/// How much faster than a window in a round trip packets leave, in slow start and beyond it: the
/// paper asks for spacing, and these are the shares of Linux.
const PACING: (f64, f64) = (2.0, 1.2);

/// TCP Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
/// International Journal of Satellite Communications and Networking 22, 2004): Reno whose rate, and
/// not its window, grows as over a round trip of 25 ms. With ρ = RTT ÷ 25 ms, one at least, an
/// acknowledged segment adds 2^ρ − 1 segments in slow start and ρ²/W beyond it; the first
/// window and the first threshold are ρ times the reference's. Packets are spaced.
#[derive(Clone, Debug)]
pub(super) struct Hybla {
    mss: f64,
    /// Segments.
    cwnd: f64,
    ssthresh: f64,
    /// Unknown until a round trip is measured.
    rho: Option<f64>,
    srtt: Duration,
}

impl Hybla {
    pub(super) fn new(mss: u64, initial_window: u64) -> Self {
        let mss = mss as f64;
        Self {
            mss,
            cwnd: initial_window as f64 / mss,
            ssthresh: f64::INFINITY,
            rho: None,
            srtt: Duration::ZERO,
        }
    }

    /// Learns the least round trip. The first sets the window and the threshold to begin with.
    fn learn(&mut self, least: Duration) -> f64 {
        let rho = (least.as_secs_f64() / REFERENCE.as_secs_f64()).max(1.0);
        if self.rho.replace(rho).is_none() && self.ssthresh.is_infinite() {
            self.cwnd = self.cwnd.max(rho);
            self.ssthresh = rho * THRESHOLD / self.mss;
        }
        rho
    }
}

impl CongestionControl for Hybla {
    fn on_begin(&mut self, rtt: Duration, _permitted: u64) {
        if rtt > Duration::ZERO {
            self.srtt = rtt;
            self.learn(rtt);
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement) {
        self.srtt = ack.srtt;
        let rho = self.learn(ack.min_rtt);
        if ack.phase == Phase::Recovery || !ack.cwnd_limited {
            return;
        }
        let segments = ack.acked as f64 / self.mss;
        if self.cwnd < self.ssthresh {
            let more = segments * (libm::exp2(rho.min(MOST_DOUBLINGS)) - 1.0);
            self.cwnd = (self.cwnd + more).min(self.ssthresh);
        } else {
            self.cwnd += segments * rho * rho / self.cwnd;
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        self.ssthresh = (window as f64 / self.mss / 2.0).max(2.0);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = 1.0;
    }

    fn on_idle(&mut self, restart: u64) {
        self.cwnd = self.cwnd.min(restart as f64 / self.mss);
    }

    fn cwnd(&self) -> u64 {
        (self.cwnd * self.mss) as u64
    }

    fn ssthresh(&self) -> u64 {
        (self.ssthresh * self.mss) as u64
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let (starting, steady) = PACING;
        let share = if self.cwnd < self.ssthresh { starting } else { steady };
        let rate = self.cwnd * self.mss * 8.0 * share / self.srtt.as_secs_f64();
        (self.srtt > Duration::ZERO).then(|| Rate::from_bps(rate as u64))
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

    /// The rate in segments a second after some seconds of congestion avoidance, from a rate of 800
    /// segments a second on.
    fn rate_after(mut congestion: impl CongestionControl, rtt: u64, seconds: u64) -> f64 {
        congestion.on_congestion(Time::ZERO, 2 * 800 * rtt / 1000 * MSS);
        let mut millis = 0;
        while millis < seconds * 1000 {
            round(&mut congestion, &mut millis, rtt);
        }
        congestion.cwnd() as f64 / MSS as f64 * 1000.0 / rtt as f64
    }

    #[test]
    fn its_rate_grows_as_renos_does_over_the_reference_whatever_the_round_trip() {
        let reno = rate_after(NewReno::new(MSS, 10 * MSS), 25, 10);
        for rtt in [10, 25, 50, 100, 300, 600] {
            let rate = rate_after(Hybla::new(MSS, 10 * MSS), rtt, 10);
            let expected = match rtt {
                10 => rate_after(NewReno::new(MSS, 10 * MSS), 10, 10),
                _ => reno,
            };
            assert!((rate / expected - 1.0).abs() < 0.08, "{rtt} ms: {rate}, not {expected}");
        }
    }

    #[test]
    fn slow_start_doubles_every_reference_round_trip_up_to_a_scaled_threshold() {
        let mut congestion = Hybla::new(MSS, 4 * MSS);
        congestion.on_begin(ms(50), 1_000_000);
        let mut millis = 0;
        round(&mut congestion, &mut millis, 50);
        // Two reference round trips.
        assert_eq!(congestion.cwnd(), 16 * MSS);
        round(&mut congestion, &mut millis, 50);
        assert_eq!(congestion.cwnd(), 64 * MSS);
        round(&mut congestion, &mut millis, 50);
        // At the threshold it turns to congestion avoidance.
        assert!(congestion.ssthresh().abs_diff(2 * 65_535) <= 1);
        assert!((131_069..133_000).contains(&congestion.cwnd()), "{}", congestion.cwnd());
    }

    #[test]
    fn the_first_window_of_a_long_path_is_scaled_and_spaced() {
        let mut congestion = Hybla::new(MSS, 10 * MSS);
        congestion.on_begin(ms(600), 1_000_000);
        assert_eq!(congestion.cwnd(), 24 * MSS);
        // Twice 24 segments in 600 ms.
        assert_eq!(congestion.pacing_rate(), Some(Rate::from_bps(640_000)));
        congestion.on_congestion(Time::ZERO, 24 * MSS);
        assert_eq!((congestion.cwnd(), congestion.ssthresh()), (12 * MSS, 12 * MSS));
    }
}
