//! FLD_TCP, whose aggressiveness depends on a flow's length.

mod options;
#[cfg(test)]
mod tests;

use fontis_base::{Duration, Rate, Time};

use super::control::CongestionControl;
use super::guard::{Guard, GuardedStart};
use super::sample::{Acknowledgement, Phase};
pub use options::{Boost, Counting, Exit, FldOptions, Length, LengthOf, Repair};

/// Flow-Length-Dependent TCP (Moktan 2020, chapters 2 and 3): a short flow triples its window in
/// slow start and gives up a segment for each loss; one above the threshold behaves like Reno.
///
/// The switch is permanent, and leaves the window as it is.
#[derive(Clone, Debug)]
pub struct Fld {
    options: FldOptions,
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Bytes that count towards the next segment of congestion avoidance.
    credit: u64,
    delivered: u64,
    sent: u64,
    /// Whether the flow is short, for growth and for losses.
    is_boosted: bool,
    is_bold: bool,
    episode: Option<Episode>,
    guard: Option<Box<Guard>>,
    path: Option<Box<PathRate>>,
    /// Where the length begins, in bytes delivered.
    begin: u64,
}

/// The rate of the path, from what arrived in each round trip.
#[derive(Clone, Debug, Default)]
struct PathRate {
    /// The round ends when this position is acknowledged.
    end: u64,
    /// When it began, and what was delivered by then.
    begin: Option<(Time, u64)>,
    best: Rate,
}

impl PathRate {
    fn on_ack(&mut self, ack: &Acknowledgement, delivered: u64) {
        if ack.acked_to < self.end {
            return;
        }
        self.end = ack.sent_to;
        let begin = self.begin.replace((ack.now, delivered));
        if let Some((at, before)) = begin.filter(|(at, _)| *at < ack.now) {
            self.best = self.best.max(Rate::from_bytes_over(delivered - before, ack.now.since(at)));
        }
    }
}

/// A recovery, from the first loss until all that was outstanding then is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// The window before it.
    prior: u64,
    /// Bytes of the segments lost, each counted as a full one.
    lost: u64,
    /// How the flow was when it began.
    is_relentless: bool,
}

impl Fld {
    /// A flow of segments of `mss` bytes with an initial window in bytes.
    pub fn new(mss: u64, initial_window: u64, options: FldOptions) -> Self {
        Self {
            options,
            mss,
            cwnd: initial_window,
            ssthresh: u64::MAX,
            credit: 0,
            delivered: 0,
            sent: 0,
            is_boosted: true,
            is_bold: options.is_relentless,
            episode: None,
            guard: options.guard.start(),
            path: (options.threshold_time > Duration::ZERO).then(Box::default),
            begin: 0,
        }
    }

    fn least(&self) -> u64 {
        self.options.least.max(1) * self.mss
    }

    /// Counts the flow's length, and ends its youth above the threshold.
    fn measure(&mut self, ack: &Acknowledgement) {
        self.delivered += ack.delivered;
        let threshold = match &mut self.path {
            None => self.options.threshold,
            Some(path) => {
                path.on_ack(ack, self.delivered);
                self.options.threshold.max(path.best.bytes_in(self.options.threshold_time))
            }
        };
        self.sent = self.sent.max(self.delivered.saturating_add(ack.in_flight));
        let is_long = |length| {
            let bytes = match length {
                Length::Sent => self.sent,
                Length::Acknowledged => self.delivered,
            };
            bytes - self.begin > threshold
        };
        let [grown, lossy] = [self.options.growth_length, self.options.loss_length].map(is_long);
        self.is_boosted &= !grown;
        self.is_bold &= !lossy;
        if let (LengthOf::Stream, Some(length)) = (self.options.length_of, ack.shortest_stream) {
            self.is_boosted = length <= threshold;
            self.is_bold = self.options.is_relentless && self.is_boosted;
            return;
        }
        let is_at_rest = ack.in_flight == 0 && !ack.cwnd_limited && ack.phase == Phase::Open;
        if self.options.length_of != LengthOf::Connection && is_at_rest {
            self.begin = self.delivered;
            self.sent = self.delivered;
            self.is_boosted = true;
            self.is_bold = self.options.is_relentless;
        }
    }

    /// Holds the window to the conservation of packets, one segment at least.
    fn repair(&mut self, ack: &Acknowledgement) {
        let most = match self.options.repair {
            Repair::OnePerAck => self.cwnd.min(ack.in_flight.saturating_add(self.mss)),
            Repair::Delivered => {
                // A segment more as long as the repair advances: slow start up to the threshold.
                let more = if ack.acked > 0 && ack.lost == 0 { self.mss } else { 0 };
                let released = ack.delivered.max(self.mss) + more;
                self.ssthresh.min(ack.in_flight.saturating_add(released))
            }
        };
        self.cwnd = most.max(self.mss);
    }

    fn finish(&mut self) {
        let Some(episode) = self.episode.take() else { return };
        if !episode.is_relentless || self.options.exit == Exit::Jump {
            self.cwnd = self.ssthresh;
        }
        self.credit = 0;
    }

    fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh || (self.options.is_inclusive && self.cwnd == self.ssthresh)
    }

    fn grow(&mut self, ack: &Acknowledgement) {
        let mut counted = match self.options.counting {
            _ if ack.acked == 0 => return,
            Counting::Acknowledgements => self.mss,
            Counting::Segments => ack.acked,
        };
        if self.is_in_slow_start() {
            let guarded = self.guard.as_mut().map(|guard| guard.on_ack(ack, self.cwnd, self.mss));
            let parts = match guarded {
                Some(GuardedStart::Over) => {
                    self.ssthresh = self.cwnd;
                    self.guard = None;
                    return;
                }
                Some(GuardedStart::Part(parts)) => parts.max(1),
                None => 1,
            };
            let is_first = self.ssthresh == u64::MAX;
            let boosted = self.is_boosted && (self.options.boost == Boost::Any || is_first);
            let increase = if boosted { self.options.increase } else { 1 };
            let wanted = increase.saturating_mul(counted) / parts;
            if self.options.is_inclusive {
                self.cwnd += wanted;
                return;
            }
            let grown = wanted.min(self.ssthresh - self.cwnd);
            self.cwnd += grown;
            if grown == wanted {
                return;
            }
            counted -= grown.min(counted);
        }
        self.credit += counted;
        while self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// What a long flow keeps.
    fn reduce(&mut self, window: u64) {
        self.ssthresh = (window / self.options.divisor.max(1)).max(self.least());
        self.cwnd = self.ssthresh;
        self.credit = 0;
    }
}

impl CongestionControl for Fld {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        self.measure(ack);
        if ack.phase == Phase::Recovery {
            if self.episode.is_some_and(|episode| episode.is_relentless) {
                self.repair(ack);
            }
            return;
        }
        self.finish();
        if ack.cwnd_limited || !self.options.is_gated {
            self.grow(ack);
        }
    }

    fn on_congestion(&mut self, _now: Time, window: u64) {
        self.finish();
        let is_relentless = self.is_bold;
        self.episode = Some(Episode { prior: self.cwnd, lost: 0, is_relentless });
        if is_relentless {
            self.ssthresh = self.cwnd.max(self.least());
        } else {
            self.reduce(window);
        }
    }

    fn on_lost(&mut self, _now: Time, packets: u64) {
        let least = self.least();
        let Some(episode) = &mut self.episode else { return };
        episode.lost = episode.lost.saturating_add(packets.saturating_mul(self.mss));
        if episode.is_relentless {
            self.ssthresh = episode.prior.saturating_sub(episode.lost).max(least);
        }
    }

    fn on_mark(&mut self, _now: Time, window: u64) {
        self.finish();
        if self.is_bold && self.options.is_relentless_to_marks {
            self.ssthresh = self.cwnd.saturating_sub(self.mss).max(self.least());
            self.cwnd = self.ssthresh;
            self.credit = 0;
        } else {
            self.reduce(window);
        }
    }

    fn on_timeout(&mut self, _now: Time, window: u64) {
        self.episode = None;
        self.ssthresh = if self.is_bold && self.options.keeps_after_timeout {
            self.cwnd.max(self.least())
        } else {
            (window / 2).max(self.least())
        };
        self.cwnd = self.mss;
        self.credit = 0;
    }

    fn on_idle(&mut self, restart: u64) {
        // Before the first acknowledgement it was the handshake that was lost.
        if self.options.decays_when_idle || self.delivered == 0 {
            self.cwnd = self.cwnd.min(restart);
        }
    }

    fn wants_streams(&self) -> bool {
        self.options.length_of == LengthOf::Stream
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
