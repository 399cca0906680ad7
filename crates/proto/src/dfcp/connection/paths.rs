//! The paths of a connection, as its driver sees them.

use fontis_base::{Duration, Rate, Time};

use super::super::budget::PATH;
use super::super::event::DfcpEvent;
use super::super::feedback_due::FeedbackDue;
use super::super::packet::{ChannelId, Frame};
use super::super::params::SYN_SIZE;
use super::super::path::{Path, PathState};
use super::super::paths::{MAX_OPEN_PATHS, MAX_PATHS, PathId};
use super::super::stats::PathStats;
use super::{DfcpConnection, State};
use crate::path_mtu::Mtu;

/// How strongly paths that share a bottleneck tend to equal rates: not at all at zero.
const EVEN: f64 = 0.3;
/// No path's part of what such paths have counts as less.
const LEAST_PART: f64 = 1.0 / MAX_OPEN_PATHS as f64;

impl DfcpConnection {
    /// Opens another path: from another address of this side, or to another of the peer's. The
    /// driver knows which. `overhead` is the bytes of IP and UDP headers on it, and `token` is
    /// unguessable. A `spare` path carries data, either way, only while no other answers. Only an
    /// initiator opens paths, once it is connected: [`MAX_OPEN_PATHS`] at once, and [`MAX_PATHS`]
    /// in all.
    ///
    /// [`DfcpEvent::PathOpened`] says when the peer has answered on it.
    pub fn open_path(&mut self, overhead: u32, spare: bool, token: [u8; 8]) -> Option<PathId> {
        if !self.initiator || self.state != State::Established {
            return None;
        }
        let id = self.add_path()?;
        self.paths[usize::from(id)].spare = spare;
        self.challenge(id, overhead, token);
        Some(id)
    }

    /// Makes another path, in the state in which it carries nothing but questions and answers. None
    /// if there are too many, or no memory is left for it.
    pub(super) fn add_path(&mut self) -> Option<PathId> {
        if self.paths.len() >= MAX_PATHS || self.paths.open_count() >= MAX_OPEN_PATHS {
            return None;
        }
        let charge = self.account.take(PATH).ok()?;
        let id = self.paths.len() as PathId;
        let overhead = self.config.overhead;
        let least = self.config.packet_size.max(SYN_SIZE + overhead);
        let mtu = Mtu::new(least, self.config.max_packet_size);
        let mut path = Path::new(id, self.config.rate, mtu, overhead, Some(charge));
        path.leave_numbers_out(self.config.left_out);
        self.paths.push(path);
        Some(id)
    }

    /// How many paths there have been.
    pub const fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Closes a path on both sides: what is on its way there is not waited for. False if no other
    /// is left.
    pub fn close_path(&mut self, now: Time, path: PathId) -> bool {
        let at = usize::from(path);
        if self.paths.get(path).is_none() || !self.paths.has_others(at) {
            return false;
        }
        if self.paths[at].state != PathState::Closed {
            self.end_path(now, at);
            self.control.push(now, Frame::PathClosed { path });
        }
        true
    }

    pub(super) fn end_path(&mut self, now: Time, at: usize) {
        let path = &mut self.paths[at];
        path.state = PathState::Closed;
        path.feedback = FeedbackDue::default();
        let id = path.id;
        self.bottlenecks.forget(at);
        self.share_limits(now);
        self.events.push_back(DfcpEvent::PathClosed { path: id });
    }

    /// Asks whether the peer is at the other end of a path, or where its packets seem to come from
    /// now, by an unguessable `token`: the next packet that is a [`probe`](super::Outgoing::probe)
    /// goes there. `overhead` is the bytes of IP and UDP headers.
    pub fn challenge(&mut self, path: PathId, overhead: u32, token: [u8; 8]) {
        if let Some(path) = self.paths.get_mut(path) {
            path.overhead = overhead;
            path.question.ask(token);
        }
    }

    /// The token of the peer's last response on a path, once. Who answers from an address is there.
    pub fn challenge_answered(&mut self, path: PathId) -> Option<[u8; 8]> {
        self.paths.get_mut(path)?.question.take_answered()
    }

    /// The peer has answered on a path.
    pub(super) fn on_response(&mut self, now: Time, at: usize, token: [u8; 8]) {
        let path = &mut self.paths[at];
        let Some(rtt) = path.question.on_answer(now, token) else { return };
        if path.state == PathState::Opening {
            path.state = PathState::Usable;
            path.rtt.guess(rtt);
            path.received = now;
            path.pacer.restart(now);
            let path = path.id;
            self.share_limits(now);
            for channel in self.recv.keys() {
                self.paths[at].feedback.dirty.insert(*channel);
            }
            self.events.push_back(DfcpEvent::PathOpened { path });
        }
    }

    /// The peer has moved to another network: what was known of the path holds no longer.
    pub fn path_changed(&mut self, now: Time, path: PathId) {
        self.bottlenecks.forget(usize::from(path));
        if let Some(path) = self.paths.get_mut(path) {
            path.restart(now);
        }
    }

    /// The rate that the limits of both sides leave for what is sent; `None` without a limit, zero
    /// in a pause.
    pub fn sending_limit(&self) -> Option<Rate> {
        self.limits.into_iter().flatten().min()
    }

    pub(super) fn set_limit(&mut self, now: Time, whose: usize, rate: Option<Rate>) {
        self.limits[whose] = rate;
        self.share_limits(now);
    }

    /// Gives each path its part of what all are allowed.
    fn share_limits(&mut self, now: Time) {
        let count = self.paths.usable().filter(|(_, path)| !path.spare).count().max(1) as u64;
        let limits = self.limits.map(|limit| limit.map(|rate| rate.mul_ratio(1, count)));
        for path in self.paths.iter_mut() {
            let before = path.rate();
            path.limits = if path.spare { self.limits } else { limits };
            path.pacer.recharge(now, before, path.rate());
        }
    }

    /// How long an answer may take before something is taken to be wrong.
    pub(super) fn patience(&self, now: Time) -> Duration {
        self.paths[self.paths.main(now)].rtt.timeout()
    }

    /// The status of a channel has changed: every usable path tells it by its next feedback.
    pub(super) fn mark_dirty(&mut self, channel: ChannelId) {
        for path in self.paths.iter_mut().filter(|path| path.state == PathState::Usable) {
            path.feedback.dirty.insert(channel);
        }
    }

    pub(super) fn mark_clean(&mut self, channel: ChannelId) {
        for path in self.paths.iter_mut() {
            path.feedback.dirty.remove(&channel);
        }
    }

    /// Feedback is due at `at` on the path that tells the peer soonest.
    pub(super) fn feedback_by(&mut self, at: Time) {
        let main = self.paths.main(self.latest);
        self.paths[main].feedback.by(at);
    }

    /// The same, unless it is due already.
    pub(super) fn feedback_once(&mut self, at: Time) {
        let main = self.paths.main(self.latest);
        self.paths[main].feedback.at.get_or_insert(at);
    }

    /// Takes the queue that packets of a path met: paths that wait in the same one take one flow's
    /// share of it together.
    pub(super) fn couple(&mut self, now: Time, at: usize, (received_at, delay_ns): (Time, i64)) {
        if self.paths.len() == 1 || !self.config.coupled {
            return;
        }
        self.bottlenecks.observe(at, now, received_at, delay_ns);
        let (mut count, mut total) = (0.0, 0.0);
        for (other, path) in self.paths.usable() {
            if other == at || self.bottlenecks.share(at, other) {
                (count, total) = (count + 1.0, total + path.rate().as_bps() as f64);
            }
        }
        let path = &mut self.paths[at];
        let own = path.rate().as_bps() as f64;
        // The smaller counts as somewhat larger than it is, so that they become equal.
        let part = libm::pow(own / total, 1.0 - EVEN) * libm::pow(1.0 / count, EVEN);
        path.controller.set_part(if count > 1.0 { part.clamp(LEAST_PART, 1.0) } else { 1.0 });
    }

    /// Looks which paths answer. What is on its way on others is made up for.
    pub(super) fn look_at_paths(&mut self, now: Time) {
        if self.paths.len() == 1 {
            return;
        }
        let answering = self.paths.answering(now);
        if answering != self.answering {
            self.answering = answering;
            for channel in self.send.values_mut() {
                channel.unsettle();
            }
        }
    }

    /// What is known of each path that is usable.
    pub fn path_stats(&self) -> Vec<PathStats> {
        let stats = self.paths.usable().map(|(_, path)| PathStats {
            path: path.id,
            answers: !path.is_silent(self.latest),
            spare: path.spare,
            state: path.controller.state(),
            srtt: path.rtt.smoothed(),
            min_rtt: path.rtt.least(),
            rate: path.rate(),
            loss: path.loss.loss(),
            in_flight: path.history.in_flight(),
            bytes_sent: path.bytes[0],
            bytes_received: path.bytes[1],
            shares_with: self.bottlenecks.first_sharing(usize::from(path.id)) as PathId,
        });
        stats.collect()
    }
}
