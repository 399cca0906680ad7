//! What happens by the clock.

use fontis_base::Time;

use super::{SctpAssociation, State};
use crate::sctp::chunk::{SctpCause, SctpChunk};
use crate::sctp::message::{AbortReason, SctpEvent, SctpPathState};

impl SctpAssociation {
    /// The next deadline, and what is due then.
    pub fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.replies.is_empty() {
            return Some((Time::ZERO, "reply"));
        }
        if self.state == State::Closed {
            return None;
        }
        let data = self.paths.iter().filter_map(|path| path.expires).map(|at| (at, "T3"));
        let beats = self.has_heartbeats();
        let heartbeats = self.paths.iter().filter(|_| beats).map(|path| {
            let answer = path.heartbeat.map(|(_, sent)| sent + path.estimator.rto);
            (answer.unwrap_or(path.heartbeat_at), "heartbeat")
        });
        let is_mute = self.is_mute();
        let unless_mute = |at: Time| if is_mute { Time::MAX } else { at };
        let others = [
            (self.address_due(), "T4"),
            (self.handshake.at, "T1"),
            (unless_mute(self.closing.at), "T2"),
            (self.closing.end, "T5"),
            (unless_mute(self.acks.at), "SACK"),
            (unless_mute(self.forward_at), "forward"),
            (unless_mute(self.reset_due()), "reset"),
            (self.held_until().unwrap_or(Time::MAX), "repair"),
            (self.rack_due().unwrap_or(Time::MAX), "RACK"),
            (self.reordering_due(), "reordering"),
        ];
        let all = data.chain(heartbeats).chain(others).filter(|(at, _)| *at < Time::MAX);
        all.min_by_key(|(at, _)| *at)
    }

    /// Whether paths are probed in the present state.
    pub(super) fn has_heartbeats(&self) -> bool {
        !matches!(self.state, State::CookieWait | State::CookieEchoed | State::Closed)
    }

    /// Does what is due.
    pub(super) fn on_timers(&mut self, now: Time) {
        if self.state == State::Closed {
            return;
        }
        if self.closing.end <= now {
            let cause = SctpCause::of(SctpCause::USER);
            return self.break_off(AbortReason::Silence, cause);
        }
        self.on_address_timeout(now);
        if self.state == State::Closed {
            return;
        }
        if self.held_until().is_some_and(|until| until <= now) {
            self.release_held(now);
        }
        self.on_rack_timers(now);
        if self.reordering_due() <= now {
            self.release_in_order(now);
        }
        for at in 0..self.paths.len() {
            if self.paths[at].expires.is_some_and(|expires| expires <= now) {
                self.on_data_timeout(now, at);
            }
        }
        if self.has_heartbeats() {
            for at in 0..self.paths.len() {
                self.probe(now, at);
            }
        }
    }

    /// Sends a heartbeat, or counts one that was not answered.
    fn probe(&mut self, now: Time, at: usize) {
        if self.state == State::Closed {
            return;
        }
        let path = &mut self.paths[at];
        if let Some((_, sent)) = path.heartbeat {
            if now < sent + path.estimator.rto {
                return;
            }
            path.heartbeat = None;
            path.estimator.back_off();
            // A path that was never confirmed says nothing of the peer, unless all others are gone.
            let is_confirmed = path.is_confirmed();
            let counts = is_confirmed || self.is_mute();
            self.on_failure(now, at, counts);
            if self.state == State::Closed {
                return;
            }
            self.schedule_heartbeat(now, at);
        }
        let path = &mut self.paths[at];
        if path.heartbeat_at > now {
            return;
        }
        let nonce = self.config.secret.number(&[now.as_nanos(), at as u64, self.tags[1].into()]);
        path.heartbeat = Some((nonce, now));
        path.heartbeat_at = Time::MAX;
        let info = Self::heartbeat_info(at as u8, now, nonce);
        self.reply(Some(at as u8), vec![SctpChunk::Heartbeat(info)]);
    }

    /// Sets the time of the next heartbeat on a path (RFC 9260 section 8.3); one that failed is
    /// asked again sooner (RFC 7829 section 4.1).
    pub(super) fn schedule_heartbeat(&mut self, now: Time, at: usize) {
        let path = &mut self.paths[at];
        let is_in_doubt =
            matches!(path.state, SctpPathState::Unconfirmed | SctpPathState::PotentiallyFailed);
        let is_asked = is_in_doubt && path.failures <= self.config.timers.path_failures;
        // One that was not answered took the timeout already.
        let wait = self.config.timers.heartbeat + path.estimator.rto;
        path.heartbeat_at = if is_asked { now } else { now + wait };
    }

    /// A path did not answer.
    pub(super) fn on_failure(&mut self, now: Time, at: usize, counts: bool) {
        let timers = self.config.timers;
        let path = &mut self.paths[at];
        path.failures += 1;
        let before = path.state;
        if path.is_confirmed() {
            if path.failures > timers.path_failures {
                path.state = SctpPathState::Inactive;
            } else if path.failures > timers.potential_failures && before == SctpPathState::Active {
                path.state = SctpPathState::PotentiallyFailed;
                path.heartbeat_at = path.heartbeat_at.min(now + path.estimator.rto);
            }
        }
        let is_down = path.state == SctpPathState::Inactive && before != SctpPathState::Inactive;
        if is_down {
            self.events.push_back(SctpEvent::PathDown(at as u8));
        }
        if counts {
            self.count_failure();
        }
    }

    /// The peer did not answer.
    pub(super) fn count_failure(&mut self) {
        self.failures += 1;
        if self.failures > self.config.timers.failures {
            self.replies.clear();
            self.end(SctpEvent::Aborted(AbortReason::Silence));
        }
    }

    /// The chunk that ends the association, if it is due, and its path.
    pub(super) fn closing_chunk(&mut self, now: Time) -> Option<(usize, SctpChunk)> {
        if self.closing.at > now {
            return None;
        }
        let chunk = match self.state {
            State::ShutdownSent => {
                SctpChunk::Shutdown { cumulative: self.arrivals.cumulative() as u32 }
            }
            State::ShutdownAckSent => SctpChunk::ShutdownAck,
            _ => {
                self.closing.at = Time::MAX;
                return None;
            }
        };
        let at = self.data_path(self.closing.path);
        let rto = self.paths.get(at).map_or(self.config.timers.initial, |path| path.estimator.rto);
        self.closing.at = now + rto;
        self.closing.path = Some(at);
        Some((at, chunk))
    }
}
