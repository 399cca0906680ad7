use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};

use super::control::CongestionControl;
use super::sample::{Acknowledgement, Phase};

/// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at which was
/// delivered, found as a maximum over ten round trips, with as much in flight as that rate and the
/// least round-trip time ask for.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mss: u64,
    cwnd: u64,
    initial_window: u64,
    mode: Mode,
    /// Samples of the rate of delivery by round, falling: the first is the maximum of the last ten
    /// rounds.
    rates: VecDeque<(u64, Rate)>,
    min_rtt: Duration,
    min_rtt_at: Time,
    round: u64,
    /// The round ends when what is delivered now was sent after this much had been.
    round_end: u64,
    /// Slow growth in Startup: the rate that counts as the best, and for how many rounds it was not
    /// beaten by far.
    full_rate: Rate,
    full_rounds: u32,
    filled: bool,
    /// The phase of the cycle in ProbeBW, and when it began.
    phase: usize,
    phase_at: Time,
    /// While probing for the round-trip time: when that is over, once little enough is in flight.
    probe_done: Option<Time>,
    /// The window before a recovery or a probe for the round-trip time.
    saved_cwnd: u64,
    /// The round until which what is sent is what was delivered.
    conserve_until: Option<u64>,
    was_open: bool,
    pacing: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// 2/ln 2, in thousandths: doubles the rate each round ("BBRHighGain").
const HIGH_GAIN: u64 = 2885;
/// "BBRGainCycle", in thousandths.
const CYCLE: [u64; 8] = [1250, 750, 1000, 1000, 1000, 1000, 1000, 1000];
/// "BtlBwFilterLen": rounds.
const RATE_ROUNDS: u64 = 10;
/// "RTpropFilterLen".
const MIN_RTT_FOR: Duration = Duration::from_secs(10);
/// "ProbeRTTDuration".
const PROBE_RTT: Duration = Duration::from_millis(200);
/// "BBRMinPipeCwnd", segments.
const LEAST_WINDOW: u64 = 4;

impl Bbr {
    /// `salt` decides with which phase the cycle begins: flows should not probe at the same time.
    pub(super) fn new(mss: u64, initial_window: u64, salt: u64) -> Self {
        Self {
            mss,
            cwnd: initial_window,
            initial_window,
            mode: Mode::Startup,
            rates: VecDeque::new(),
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
            round: 0,
            round_end: 0,
            full_rate: Rate::ZERO,
            full_rounds: 0,
            filled: false,
            // Any but the one that drains.
            phase: [0, 2, 3, 4, 5, 6, 7][(salt % 7) as usize],
            phase_at: Time::ZERO,
            probe_done: None,
            saved_cwnd: 0,
            conserve_until: None,
            was_open: true,
            pacing: None,
        }
    }

    fn rate(&self) -> Rate {
        self.rates.front().map_or(Rate::ZERO, |(_, rate)| *rate)
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1_000_000 / HIGH_GAIN,
            Mode::ProbeBw => CYCLE[self.phase],
            Mode::ProbeRtt => 1000,
        }
    }

    /// "BBRInflight": what a gain asks to be in flight, with room for what hosts gather into
    /// bursts.
    fn inflight(&self, gain: u64) -> u64 {
        if self.min_rtt == Duration::MAX || self.rates.is_empty() {
            return self.initial_window;
        }
        let bdp = self.rate().bytes_in(self.min_rtt);
        bdp.saturating_mul(gain) / 1000 + 3 * self.mss
    }

    fn count_round(&mut self, ack: &Acknowledgement) -> bool {
        let Some(sample) = ack.delivery.filter(|sample| sample.prior_delivered >= self.round_end)
        else {
            return false;
        };
        self.round_end = sample.delivered;
        self.round += 1;
        if self.conserve_until.is_some_and(|until| self.round >= until) {
            self.conserve_until = None;
        }
        true
    }

    fn update_rate(&mut self, ack: &Acknowledgement) {
        let Some(sample) = ack.delivery else { return };
        let Some(rate) = sample.rate.filter(|rate| *rate >= self.rate() || !sample.app_limited)
        else {
            return;
        };
        // Most samples: a greater one of the same round stays in the window as long.
        if self.rates.back().is_some_and(|(round, last)| *round == self.round && *last >= rate) {
            return;
        }
        while self.rates.back().is_some_and(|(_, last)| *last <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        while self.rates.front().is_some_and(|(round, _)| round + RATE_ROUNDS <= self.round) {
            self.rates.pop_front();
        }
    }

    /// "BBRCheckFullPipe": three rounds without a quarter more.
    fn check_full(&mut self, ack: &Acknowledgement, round_starts: bool) {
        let app_limited = ack.delivery.is_some_and(|sample| sample.app_limited);
        if !self.filled && round_starts && !app_limited {
            if self.rate() >= self.full_rate.mul_ratio(5, 4) {
                self.full_rate = self.rate();
                self.full_rounds = 0;
            } else {
                self.full_rounds += 1;
                self.filled = self.full_rounds >= 3;
            }
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.phase_at = now;
    }

    fn advance_cycle(&mut self, ack: &Acknowledgement) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = ack.now.since(self.phase_at) > self.min_rtt;
        let over = match CYCLE[self.phase] {
            1000 => full_length,
            gain if gain > 1000 => {
                full_length && (ack.lost > 0 || ack.in_flight >= self.inflight(gain))
            }
            _ => full_length || ack.in_flight <= self.inflight(1000),
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = ack.now;
        }
    }

    fn update_min_rtt(&mut self, ack: &Acknowledgement, round_starts: bool) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_FOR;
        if let Some(rtt) = ack.rtt
            && (rtt <= self.min_rtt || expired)
        {
            self.min_rtt = rtt;
            self.min_rtt_at = ack.now;
        }
        if expired && self.mode != Mode::ProbeRtt && self.round > 0 {
            self.saved_cwnd = self.saved_cwnd.max(self.cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_done = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        match self.probe_done {
            None if ack.in_flight <= LEAST_WINDOW * self.mss => {
                self.probe_done = Some(ack.now + PROBE_RTT);
            }
            Some(done) if ack.now > done && round_starts => {
                self.min_rtt_at = ack.now;
                self.cwnd = self.cwnd.max(self.saved_cwnd);
                self.saved_cwnd = 0;
                if self.filled {
                    self.enter_probe_bw(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
            _ => {}
        }
    }

    fn set_pacing(&mut self, ack: &Acknowledgement) {
        let rate = if self.rates.is_empty() {
            // Before the first sample: the initial window over the round-trip time.
            let srtt = ack.srtt.max(Duration::from_millis(1));
            Rate::from_bytes_over(self.initial_window, srtt)
        } else {
            self.rate()
        };
        let rate = rate.mul_ratio(self.pacing_gain(), 1000);
        if self.filled || self.pacing.is_none_or(|pacing| rate > pacing) {
            self.pacing = Some(rate);
        }
    }

    fn set_cwnd(&mut self, ack: &Acknowledgement) {
        if ack.phase == Phase::Open && !self.was_open {
            self.cwnd = self.cwnd.max(self.saved_cwnd);
            self.saved_cwnd = 0;
            self.conserve_until = None;
        }
        self.was_open = ack.phase == Phase::Open;
        self.cwnd = self.cwnd.saturating_sub(ack.lost).max(self.mss);
        let gain = if matches!(self.mode, Mode::Startup | Mode::Drain) { HIGH_GAIN } else { 2000 };
        let target = self.inflight(gain);
        if self.conserve_until.is_some() {
            self.cwnd = self.cwnd.max(ack.in_flight + ack.delivered);
        } else if self.filled {
            self.cwnd = (self.cwnd + ack.delivered).min(target);
        } else if self.cwnd < target || self.round_end < self.initial_window {
            self.cwnd += ack.delivered;
        }
        let least = LEAST_WINDOW * self.mss;
        self.cwnd = self.cwnd.max(least);
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(least);
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        let round_starts = self.count_round(ack);
        self.update_rate(ack);
        self.check_full(ack, round_starts);
        self.advance_cycle(ack);
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(1000) {
            self.enter_probe_bw(ack.now);
        }
        self.update_min_rtt(ack, round_starts);
        self.set_pacing(ack);
        self.set_cwnd(ack);
    }

    fn on_congestion(&mut self, _now: Time, _window: u64) {
        // A loss says nothing about the rate: for a round, what leaves is what was delivered.
        self.saved_cwnd = self.saved_cwnd.max(self.cwnd);
        self.conserve_until = Some(self.round + 1);
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
        self.cwnd = self.mss;
        self.was_open = false;
    }

    fn on_idle(&mut self, _restart: u64) {
        // Paced at its rate it needs no new start.
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    fn wants_delivery(&self) -> bool {
        true
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }

    /// `BBR.send_quantum` of draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.2; Linux
    /// sends as much at once.
    fn send_quantum(&self) -> u64 {
        match self.pacing {
            Some(rate) if rate >= Rate::from_mbps(24) => {
                rate.bytes_in(Duration::from_millis(1)).min(64 << 10)
            }
            Some(rate) if rate >= Rate::from_bps(1_200_000) => 2 * self.mss,
            _ => self.mss,
        }
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}
