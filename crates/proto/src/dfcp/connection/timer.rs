use fontis_base::{Duration, Time};

use super::super::code::DEADLINE_PASSED;
use super::super::event::{CloseReason, DfcpEvent};
use super::super::path::{Path, PathState};
use super::{DfcpConnection, State};

impl DfcpConnection {
    /// When something is next to be done if no packet comes, and why.
    pub fn timeout(&self) -> Option<(Time, &'static str)> {
        let mut next: Option<(Time, &'static str)> = None;
        let mut consider = |at: Option<Time>, why| {
            if let Some(at) = at.filter(|at| next.is_none_or(|(earliest, _)| *at < earliest)) {
                next = Some((at, why));
            }
        };
        match self.state {
            State::Closed => return None,
            State::Draining => return Some((self.drain_until, "drain")),
            State::Closing => {
                consider(Some(self.drain_until), "close");
                consider(self.control_due(), "control frame");
                if self.unconfirmed && !self.handshake.is_exhausted() {
                    consider(Some(self.handshake.due()), "handshake");
                }
                return next;
            }
            State::Handshake if self.initiator => {
                consider(Some(self.handshake.due()), "handshake");
            }
            State::Handshake | State::Established => {
                if self.unconfirmed && !self.handshake.is_exhausted() {
                    consider(Some(self.handshake.due()), "handshake");
                }
            }
        }
        if self.state == State::Handshake && self.initiator {
            return next;
        }
        consider(Some(self.last_heard + self.idle_timeout()), "idle");
        if self.state == State::Handshake {
            return next;
        }
        consider(self.keepalive_at(), "keep-alive");
        consider(self.control_due(), "control frame");
        consider(self.send.next_deadline(), "deadline");
        consider(Some(self.ordered_waiting.due()).filter(|at| *at < Time::MAX), "order");
        for (at, path) in self.paths.iter().enumerate() {
            if path.state == PathState::Opening && self.may_ask(at) {
                consider(path.question.copy_at(), "challenge");
            }
            if path.state != PathState::Usable {
                continue;
            }
            let others = self.paths.has_others(at);
            consider(path.feedback.at, "feedback");
            consider(self.path_idle_at(at), "idle path");
            consider(path.timeout(others), "probe");
            if others {
                // What is silent already has been seen to be.
                consider(path.silent_from().filter(|from| *from > self.latest), "silence");
            }
            if self.has_symbols(at) {
                consider(path.next_send(self.data_packet_size(at)), "pacing");
            }
        }
        next
    }

    /// Does what has become due.
    pub(super) fn on_timeout(&mut self, now: Time) {
        match self.state {
            State::Closed => return,
            State::Closing | State::Draining => {
                if self.drain_until <= now {
                    if self.state == State::Closing {
                        self.finish_with(self.closing.clone());
                    }
                    self.state = State::Closed;
                }
                return;
            }
            State::Handshake => {
                if self.handshake.due() <= now && self.handshake.is_exhausted() {
                    self.finish_with(CloseReason::NoAnswer);
                }
                if self.initiator {
                    return;
                }
            }
            State::Established => {
                let keepalive = self.keepalive_at().is_some_and(|at| at <= now);
                for at in 0..self.paths.len() {
                    let others = self.paths.has_others(at);
                    let path = &mut self.paths[at];
                    if path.state != PathState::Usable {
                        continue;
                    }
                    if path.on_timeout(now, others) {
                        // Where much is lost, one probe is no question.
                        path.pings += if path.loss.loss() > 0.15 { 3 } else { 1 };
                        path.probe_symbols = true;
                    }
                    let is_idle = keepalive && path.history.unresolved() == 0;
                    if is_idle || self.path_idle_at(at).is_some_and(|idle| idle <= now) {
                        let path = &mut self.paths[at];
                        path.pings = path.pings.max(1);
                    }
                }
                self.pass_deadlines(now);
                self.release_ordered(now);
            }
        }
        if self.last_heard + self.idle_timeout() <= now {
            self.finish_with(CloseReason::IdleTimeout);
        }
    }

    /// The application waits for the peer's answers as long as the connection is there: in silence
    /// the peer is asked, since it may not know this side's address any more.
    pub fn await_peer(&mut self) {
        self.awaits_peer = true;
    }

    /// The connection is to last while nothing is sent over it, as long as the peer is there.
    pub fn stay(&mut self) {
        self.stays = true;
    }

    /// How long nothing has come from the peer.
    pub fn silence(&self, now: Time) -> Duration {
        now.since(self.last_heard)
    }

    /// A connection with open channels is kept alive by both sides while nothing else is sent.
    fn keepalive_at(&self) -> Option<Time> {
        let open = !self.send.is_empty() || !self.recv.is_empty();
        let waits = |(at, path): (usize, &Path)| {
            self.answering.contains(at) && path.history.unresolved() > 0
        };
        if !(open || self.awaits_peer || self.stays) || self.paths.usable().any(waits) {
            return None;
        }
        let idle = self.idle_timeout() / 4;
        // Who waits for an object should hear of it: perhaps its address is no longer known.
        let waits = self.recv.values().any(|channel| channel.kind().is_none());
        let patience = (self.patience(self.latest) * 4).max(LEAST_PATIENCE).min(idle);
        let silence = match waits {
            true => patience,
            false if self.awaits_peer => AWAITING.min(idle),
            false => idle,
        };
        Some(self.last_heard + silence)
    }

    /// When a path that carries nothing beside others is to be tried: it should be known to work
    /// before it is needed, and the peer may not know yet that it does.
    fn path_idle_at(&self, at: usize) -> Option<Time> {
        let path = &self.paths[at];
        let open = !self.send.is_empty() || !self.recv.is_empty();
        let idle = open && path.history.unresolved() == 0 && path.pings == 0;
        (idle && self.paths.has_others(at)).then(|| path.last_used() + PATH_IDLE)
    }

    fn control_due(&self) -> Option<Time> {
        self.control.due(self.control.gathering(self.next_feedback(self.latest)))
    }

    /// Gives up what is no longer wanted, and what has waited until it cannot arrive in time any
    /// more: it would keep the next from arriving in time.
    fn pass_deadlines(&mut self, now: Time) {
        let way = self.paths[self.paths.main(now)].rtt.least() / 2;
        if self.send.next_deadline().is_none_or(|deadline| deadline > now + way) {
            return;
        }
        // All of them, before any is told: a run has none between that is still wanted.
        let late = self.send.late(now, way);
        let late: Vec<_> = late.into_iter().filter_map(|id| self.send.remove(id)).collect();
        for channel in late {
            let (channel, kind) = (channel.id, channel.kind());
            self.give_up(now, channel, kind);
            self.events.push_back(DfcpEvent::Abandoned { channel, code: DEADLINE_PASSED });
        }
    }
}

/// The time without packets after which a path beside others is tried.
const PATH_IDLE: Duration = Duration::from_secs(2);
/// The silence after which a peer is asked whose answer is awaited.
const AWAITING: Duration = Duration::from_secs(2);
/// The least silence after which a receiver asks for the object that it waits for.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);
