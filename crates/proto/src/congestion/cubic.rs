use fontis_base::Time;

use super::control::CongestionControl;
use super::hystart::HyStart;
use super::newreno::slow_start;
use super::sample::{Acknowledgement, Phase};

/// CUBIC (RFC 9438): after a loss the window follows a cubic in real time whose plateau is the
/// window of that loss.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    mss: f64,
    /// Segments, with the fraction that has not become one yet.
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    /// The window at the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    last_ack: Time,
    /// See [`CongestionControl::set_part`].
    part: f64,
    /// What Linux has, beside its window as small as Reno's where that is larger (RFC 8312 section
    /// 4.2).
    hystart: Option<Box<HyStart>>,
}

/// A stage of congestion avoidance (RFC 9438 section 4.2).
#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the plateau.
    k: f64,
    /// The plateau.
    origin: f64,
    /// What Reno would have.
    w_est: f64,
}

/// "C" (section 5.1), segments per second cubed.
const C: f64 = 0.4;
/// "beta_cubic" (section 4.6) as Linux has it, 717/1024.
const BETA: f64 = 717.0 / 1024.0;
/// Reno's increase in segments a round trip that goes with this decrease (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The least threshold in segments (section 4.6).
const MIN_SSTHRESH: f64 = 2.0;

impl Cubic {
    pub(super) fn new(mss: u64, initial_window: u64, hystart: bool) -> Self {
        let mss = mss as f64;
        Self {
            mss,
            cwnd: initial_window as f64 / mss,
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            last_ack: Time::ZERO,
            part: 1.0,
            hystart: hystart.then(|| Box::new(HyStart::new())),
        }
    }

    /// Congestion avoidance (sections 4.2 to 4.5).
    fn avoid(&mut self, ack: &Acknowledgement, acked: f64) {
        let (cwnd, w_max, cwnd_prior) = (self.cwnd, self.w_max, self.cwnd_prior);
        // In equilibrium a window is proportional to the square root of Reno's increase, and to the
        // fourth root of C (RFC 9438 section 5.1).
        let slowed = self.part * self.part;
        let c = slowed * slowed * C;
        let epoch = self.epoch.get_or_insert_with(|| {
            // A window that is above the old plateau, or that knows none, has one of its own.
            let (k, origin) =
                if cwnd < w_max { (libm::cbrt((w_max - cwnd) / c), w_max) } else { (0.0, cwnd) };
            Epoch { start: ack.now, k, origin, w_est: cwnd }
        });
        let t = ack.now.since(epoch.start).as_secs_f64();
        let cubic = |t: f64| {
            let d = t - epoch.k;
            epoch.origin + c * d * d * d
        };
        // Linux keeps to RFC 8312, in which Reno's increase never grows to a segment.
        let catches_up = self.hystart.is_none() && epoch.w_est >= cwnd_prior;
        let alpha = if catches_up { 1.0 } else { ALPHA };
        epoch.w_est += slowed * alpha * acked / cwnd;
        if cubic(t) < epoch.w_est {
            self.cwnd = cwnd.max(epoch.w_est);
        } else {
            let target = cubic(t + ack.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            self.cwnd = cwnd + acked * (target - cwnd) / cwnd;
        }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        let since = ack.now.since(core::mem::replace(&mut self.last_ack, ack.now));
        if ack.phase == Phase::Recovery {
            return;
        }
        if !ack.cwnd_limited {
            // Time in which the application left the window unused does not count (section 4.2).
            if let Some(epoch) = &mut self.epoch {
                epoch.start += since;
            }
            return;
        }
        let mut acked = ack.acked as f64 / self.mss;
        if self.cwnd < self.ssthresh {
            let mss = self.mss as u64;
            let cwnd = self.cwnd();
            if self.hystart.as_mut().is_some_and(|hystart| hystart.should_exit(ack, cwnd, mss)) {
                self.ssthresh = self.cwnd;
            } else {
                let mut bytes = cwnd;
                let left = slow_start(&mut bytes, self.ssthresh(), ack.acked);
                self.cwnd += (bytes - cwnd) as f64 / self.mss;
                acked = left as f64 / self.mss;
            }
        }
        if acked > 0.0 {
            self.avoid(ack, acked);
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        let window = window as f64 / self.mss;
        self.cwnd_prior = window;
        // Fast convergence (section 4.7): a flow whose share shrinks gives way sooner.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.ssthresh = (window * BETA).max(MIN_SSTHRESH);
        self.cwnd = self.ssthresh;
        self.epoch = None;
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = 1.0;
        if self.hystart.is_some() {
            self.hystart = Some(Box::new(HyStart::new()));
        }
    }

    fn on_idle(&mut self, restart: u64) {
        self.cwnd = self.cwnd.min(restart as f64 / self.mss);
        self.epoch = None;
    }

    fn set_part(&mut self, part: f64) {
        self.part = part;
    }

    fn cwnd(&self) -> u64 {
        (self.cwnd * self.mss) as u64
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
    use super::super::testing::*;
    use super::*;

    /// The window in segments after a loss at `w_max`, `millis` later.
    fn window_after(w_max: u64, rtt: u64, millis: u64) -> f64 {
        let mut congestion = Cubic::new(MSS, 10 * MSS, false);
        congestion.on_congestion(Time::ZERO, w_max * MSS);
        let mut now = 0;
        while now < millis {
            round(&mut congestion, &mut now, rtt);
        }
        congestion.cwnd() as f64 / MSS as f64
    }

    #[test]
    fn the_window_between_losses_is_the_cubic_of_equation_1() {
        // A window so large, over a path so long, that Reno's would be smaller throughout.
        let (w_max, rtt) = (10_000.0f64, 100);
        let k = libm::cbrt(w_max * (1.0 - BETA) / C);
        for millis in [2_000, 5_000, 10_000, 15_000, 19_000, 22_000, 25_000] {
            let t = millis as f64 / 1e3 - k;
            let want = w_max + C * t * t * t;
            let got = window_after(w_max as u64, rtt, millis);
            assert!((got / want - 1.0).abs() < 0.01, "{millis} ms: {got}, not {want}");
        }
    }

    #[test]
    fn on_a_short_path_it_grows_as_reno_would() {
        // α segments a round trip from β·w_max, for 50 round trips: the cubic would hardly have
        // moved.
        let got = window_after(100, 2, 100);
        let want = 100.0 * BETA + ALPHA * 50.0;
        assert!((got / want - 1.0).abs() < 0.01, "{got}, not {want}");
    }

    #[test]
    fn beyond_the_window_of_the_loss_it_grows_by_a_segment_a_round_trip_but_as_slowly_as_before_in_linux()
     {
        let after = |as_in_linux| {
            let mut congestion = Cubic::new(MSS, 10 * MSS, as_in_linux);
            congestion.on_congestion(Time::ZERO, 20 * MSS);
            let mut now = 0;
            // 14 segments grow to 20 in some twelve round trips, in which the cubic hardly moves.
            while now < 80 {
                round(&mut congestion, &mut now, 2);
            }
            congestion.cwnd() as f64 / MSS as f64
        };
        let linux = 20.0 * BETA + ALPHA * 40.0;
        let till_there = 20.0 * (1.0 - BETA) / ALPHA;
        let standard = 20.0 + (40.0 - till_there);
        for (as_in_linux, want) in [(true, linux), (false, standard)] {
            let got = after(as_in_linux);
            assert!((got / want - 1.0).abs() < 0.03, "{as_in_linux}: {got}, not {want}");
        }
    }

    #[test]
    fn a_flow_whose_share_shrinks_remembers_less_than_it_had() {
        let mut cubic = Cubic::new(MSS, 10 * MSS, false);
        cubic.on_congestion(Time::ZERO, 100 * MSS);
        assert_eq!(cubic.w_max, 100.0);
        cubic.on_congestion(Time::ZERO, 80 * MSS);
        assert!((cubic.w_max - 80.0 * (1.0 + BETA) / 2.0).abs() < 1e-9);
        assert!((cubic.cwnd - 80.0 * BETA).abs() < 1e-9);
    }

    #[test]
    fn time_in_which_the_window_was_not_used_does_not_count() {
        let mut cubic = Cubic::new(MSS, 10 * MSS, false);
        cubic.on_congestion(Time::ZERO, 100 * MSS);
        cubic.on_ack(&ack(100, 1, 100));
        for second in 1..60 {
            cubic.on_ack(&Acknowledgement { cwnd_limited: false, ..ack(second * 1000, 1, 100) });
        }
        let before = cubic.cwnd;
        cubic.on_ack(&ack(60_000, 1, 100));
        assert!(cubic.cwnd < before + 1.0, "{} from {before}", cubic.cwnd);
    }
}
