use fontis_base::{Duration, Time};

use super::super::config::{Recovery, TcpConfig};
use super::super::timers::Timers;
use super::{LEAST_PROBE, Sender};
use crate::congestion::sample::Phase;

/// "WCDelAckT": how long a peer may hold back the acknowledgement of a lone segment (RFC 8985
/// section 7.2).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// When a sender sets its timers, and what it does when they expire.
impl Sender {
    pub(super) fn restart_timers(&mut self, now: Time, config: &TcpConfig) {
        if self.board.is_empty() {
            self.timers = Timers::NONE;
        } else {
            self.timers.retransmit = self.rtt.deadline(now, config);
            self.arm_probe(now, config);
        }
    }

    /// Schedules a probe of the tail (RFC 8985 section 7.2), at most one for each tail.
    pub(super) fn arm_probe(&mut self, now: Time, config: &TcpConfig) {
        if self.recovery(config) != Recovery::RackTlp
            || self.phase != Phase::Open
            || self.timeouts > 0
        {
            self.timers.probe = Time::MAX;
            return;
        }
        let Some(srtt) = self.rtt.srtt() else { return };
        let alone = self.board.pipe() <= u64::from(self.mss);
        let wait = srtt * 2 + if alone { WORST_DELAYED_ACK } else { Duration::ZERO };
        self.timers.probe = now + wait.max(LEAST_PROBE);
    }

    /// Acts on the timers that are due; false if the connection is to be given up.
    pub(in super::super) fn on_time(
        &mut self,
        now: Time,
        window_end: u64,
        config: &TcpConfig,
    ) -> bool {
        if now >= self.timers.reorder {
            self.timers.reorder = Time::MAX;
            let lost = self.judge_by_time(now);
            self.note_lost(now, lost);
        }
        if now >= self.timers.probe {
            self.timers.probe = Time::MAX;
            self.probe_tail(now, window_end, config);
        }
        if now >= self.timers.retransmit {
            return self.on_retransmit_timer(now, config);
        }
        true
    }

    fn probe_tail(&mut self, now: Time, window_end: u64, config: &TcpConfig) {
        // A probe is new data if there is any, else the last segment again; the timer takes over
        // from it.
        self.rare().counters.probes += 1;
        let new = self.written > self.board.nxt() && window_end > self.board.nxt();
        self.probe_last = !new;
        self.forced = new;
        self.timers.retransmit = self.rtt.deadline(now, config);
    }

    fn on_retransmit_timer(&mut self, now: Time, config: &TcpConfig) -> bool {
        self.timeouts += 1;
        if self.timeouts > config.retries {
            return false;
        }
        self.rtt.back_off();
        self.timers = Timers { retransmit: self.rtt.deadline(now, config), ..Timers::NONE };
        if self.board.is_empty() {
            // The peer's window is closed: ask whether it still is.
            self.window_probe = true;
            return true;
        }
        self.rare().counters.timeouts += 1;
        if self.timeouts == 1 {
            let outstanding = self.board.nxt() - self.board.una();
            let window = self.cwnd.min(outstanding);
            self.congestion.on_timeout(now, window);
            self.cwnd = self.congestion.cwnd();
        }
        let lost = self.board.lose_all();
        self.rare().counters.count(lost);
        self.phase = Phase::Loss;
        self.recover = self.board.nxt();
        self.reduced_until = self.board.nxt();
        self.forget_duplicates();
        self.forced = true;
        self.pacer.release(now);
        true
    }
}
