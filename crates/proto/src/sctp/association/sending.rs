//! Which data leave next, and on which path.

use core::cmp::Reverse;

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::{STAMP, SctpAssociation};
use crate::scheduler::contract::{Assignment, DataView, PathView};
use crate::scheduler::kind::SchedulerKind;
use crate::sctp::chunk::{DataChunk, SctpChunk, Stamp};
use crate::sctp::config::{BufferSplit, RetransmitPolicy};
use crate::sctp::flight::{ChunkState, Departure};
use crate::sctp::message::SctpPathState;

/// Data of one packet.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) path: usize,
    pub(super) chunks: Vec<SctpChunk>,
    pub(super) is_repeat: bool,
}

impl SctpAssociation {
    /// The data that leave next; `taken` are the bytes that other chunks take in the packet of
    /// `beside`.
    pub(super) fn next_load(&mut self, now: Time, beside: Option<(u8, usize)>) -> Option<Load> {
        if !self.sends_data() {
            return None;
        }
        self.stats.abandoned += self.outbox.expire(now);
        // Into a closed window goes the lowest TSN that is missing: others might find no room.
        if let Some(probe) = self.tail_probe(now, beside) {
            return Some(probe);
        }
        let first = self.flight.first_unsent();
        let is_lower = self.flight.next_lost(self.flight.base()).is_some_and(|lost| first < lost);
        let load = match is_lower && self.is_probing() {
            true => self.new_data(now, beside),
            false => self.repeated(now, beside).or_else(|| self.new_data(now, beside)),
        };
        self.note_blocked(now, load.is_some());
        load
    }

    /// Whether the peer's window is closed and nothing in flight could open it.
    fn is_probing(&self) -> bool {
        self.in_flight() == 0 && self.peer_window < self.outbox.piece() as u64
    }

    /// Bytes for chunks of data in a packet on a path.
    pub(super) fn space(&self, path: usize, beside: Option<(u8, usize)>) -> usize {
        let taken = beside.filter(|(id, _)| usize::from(*id) == path).map_or(0, |(_, taken)| taken);
        let stamp = if self.features.stamps { STAMP } else { 0 };
        let headers = self.config.overhead as usize + super::HEADER + stamp + self.auth_room();
        let size = self.paths.get(path).map_or(self.config.mtu, |path| path.mtu.size());
        (size as usize).saturating_sub(headers + taken)
    }

    /// Data that are sent again.
    fn repeated(&mut self, now: Time, beside: Option<(u8, usize)>) -> Option<Load> {
        let mut tsn = self.flight.next_lost(self.flight.base())?;
        while self.abandons(now, tsn) {
            tsn = self.flight.next_lost(tsn)?;
        }
        let at = self.path_for_repeat(tsn)?;
        let mut space = self.space(at, beside);
        let mut chunks = Vec::new();
        loop {
            let size = self.flight.get(tsn).map_or(0, |chunk| {
                DataChunk::header(chunk.chunk.is_interleaved)
                    + chunk.chunk.data.len().next_multiple_of(4)
            });
            // What was made for a larger packet leaves alone.
            let is_alone = chunks.is_empty() && space >= self.space(at, None);
            if size > space && !is_alone {
                break;
            }
            space = space.saturating_sub(size);
            chunks.extend(self.depart(now, at, tsn));
            self.stats.repeated += 1;
            // More of them, as far as they would take the same path.
            let Some(next) = self.flight.next_lost(tsn) else { break };
            let has_room = self.paths[at].in_flight < self.paths[at].congestion.cwnd();
            if !has_room || self.abandons(now, next) || self.path_for_repeat(next) != Some(at) {
                break;
            }
            tsn = next;
        }
        if chunks.is_empty() {
            return None;
        }
        self.after_load(at);
        Some(Load { path: at, chunks, is_repeat: true })
    }

    /// The path for a chunk that is sent again; `None` if none has room.
    fn path_for_repeat(&self, tsn: u64) -> Option<usize> {
        let before = usize::from(self.flight.get(tsn)?.path);
        let may = |at: usize| {
            let path = &self.paths[at];
            (path.has_fast_packet && path.is_confirmed()) || path.has_room()
        };
        let Some(cmt) = self.config.cmt() else {
            // After a timeout another path is tried, if there is one (RFC 9260 section 6.4.1).
            let at = self.data_path(Some(before).filter(|at| self.paths[*at].failures > 0));
            return may(at).then_some(at);
        };
        let usable = || (0..self.paths.len()).filter(|at| self.is_usable(*at));
        let ready = || usable().filter(|at| may(*at));
        // A copy that is sent at once because of reports takes the path that the policy names.
        let best = |of: &dyn Fn(usize) -> u64| {
            let rank = |at: &usize| (of(*at), Reverse(*at));
            ready().max_by_key(rank)
        };
        match cmt.retransmit {
            RetransmitPolicy::Same if self.is_usable(before) => may(before).then_some(before),
            RetransmitPolicy::Same | RetransmitPolicy::Soonest => {
                ready().min_by_key(|at| self.paths[*at].estimator.srtt.unwrap_or(Duration::MAX))
            }
            RetransmitPolicy::LossRate => {
                ready().min_by(|a, b| self.paths[*a].loss().total_cmp(&self.paths[*b].loss()))
            }
            RetransmitPolicy::Window => best(&|at| self.paths[at].congestion.cwnd()),
            RetransmitPolicy::Threshold => best(&|at| self.paths[at].congestion.ssthresh()),
        }
    }

    /// Whether a path carries new data and repairs.
    pub(super) fn carries(&self, at: usize) -> bool {
        match self.config.cmt() {
            Some(_) => self.is_usable(at),
            None => self.data_path(None) == at && self.paths[at].is_confirmed(),
        }
    }

    /// Whether a path carries data: it is active, or no path is.
    fn is_usable(&self, at: usize) -> bool {
        let is_active = |path: &crate::sctp::path::Path| path.is_active();
        match self.paths.iter().any(is_active) {
            true => self.paths[at].is_active(),
            false => self.data_path(None) == at && self.paths[at].is_confirmed(),
        }
    }

    /// The path that carries data if only one does: the primary path, or the best of the others
    /// (RFC 9260 section 6.4, RFC 7829 section 4.2).
    pub(super) fn data_path(&self, but: Option<usize>) -> usize {
        let rank = |at: &usize| {
            let path = &self.paths[*at];
            let state = match path.state {
                SctpPathState::Active => 0,
                SctpPathState::PotentiallyFailed => 1,
                SctpPathState::Inactive => 2,
                SctpPathState::Unconfirmed => 3,
                SctpPathState::Removed => 4,
            };
            (state, Some(*at) == but, path.failures, *at != self.primary, *at)
        };
        (0..self.paths.len()).min_by_key(rank).unwrap_or(self.primary)
    }

    /// Data that were never sent.
    pub(super) fn new_data(&mut self, now: Time, beside: Option<(u8, usize)>) -> Option<Load> {
        let credit = self.peer_window.saturating_sub(self.in_flight());
        let data = self.data_view(credit)?;
        let Assignment { path: at, unit } = self.assign(now, &data)?;
        self.materialise(unit);
        let mut space = self.space(at, beside);
        let (mut tsn, mut credit) = (unit, credit);
        let (mut chunks, mut is_repeat) = (Vec::new(), false);
        loop {
            let chunk = self.flight.get(tsn)?;
            let len = chunk.chunk.data.len();
            let size = DataChunk::header(chunk.chunk.is_interleaved) + len.next_multiple_of(4);
            let is_alone = chunks.is_empty() && space >= self.space(at, None);
            let fits = (size <= space || is_alone)
                && (len as u64 <= credit || self.in_flight() == 0)
                && (chunks.is_empty()
                    || self.paths[at].in_flight < self.paths[at].congestion.cwnd());
            if !fits {
                break;
            }
            (space, credit) = (space.saturating_sub(size), credit.saturating_sub(len as u64));
            is_repeat |= chunk.sends > 0;
            chunks.extend(self.depart(now, at, tsn));
            // Small ones that follow go in the same packet.
            if tsn + 1 != self.flight.first_unsent() || !self.bundles() {
                break;
            }
            tsn += 1;
            if tsn == self.flight.end() {
                if self.outbox.next_len().is_none_or(|len| len + 20 > space) {
                    break;
                }
                self.materialise(tsn);
            }
        }
        if chunks.is_empty() {
            return None;
        }
        self.after_load(at);
        let has_more = self.flight.first_unsent() < self.flight.end() + self.outbox.chunks();
        let stops = !has_more || !self.paths[at].has_room();
        if let Some(SctpChunk::Data(last)) = chunks.last_mut()
            && stops
            && self.config.asks_acks
        {
            last.is_immediate = true;
        }
        Some(Load { path: at, chunks, is_repeat })
    }

    /// Whether the scheduler takes data in their order, so that what follows may go with it.
    fn bundles(&self) -> bool {
        let kind = self.config.cmt().map(|cmt| cmt.scheduler);
        !matches!(kind, Some(SchedulerKind::Daps | SchedulerKind::Redundant))
    }

    /// What there is to send; `None` if nothing may leave.
    fn data_view(&mut self, credit: u64) -> Option<DataView> {
        let first = self.flight.first_unsent();
        let end = self.flight.end() + self.outbox.chunks();
        let lowest = self.flight.base();
        let is_redundant =
            self.config.cmt().is_some_and(|cmt| cmt.scheduler == SchedulerKind::Redundant);
        if first >= end && !(is_redundant && lowest < end) {
            return None;
        }
        let next = match self.flight.get(first) {
            Some(chunk) => chunk.chunk.data.len(),
            None => self.outbox.next_len().unwrap_or(1),
        };
        // One chunk may leave into a closed window if nothing is in flight (section 6.1 A).
        if credit < next as u64 && self.in_flight() > 0 {
            return None;
        }
        let pending = self.outbox.bytes();
        let unit = self.outbox.piece() as u64;
        let buffer = self.peer_window.min(u64::from(self.config.send_buffer));
        Some(DataView { lowest, first, end, unit, pending, credit, buffer })
    }

    /// The chunk that leaves, and its path.
    fn assign(&mut self, now: Time, data: &DataView) -> Option<Assignment> {
        if self.scheduler.is_none() || self.is_probing() {
            let at = self.data_path(None);
            return self.paths[at].has_room().then_some(Assignment { path: at, unit: data.first });
        }
        let views: SmallVec<[PathView; 4]> =
            (0..self.paths.len()).map(|at| self.path_view(at)).collect();
        let scheduler = self.scheduler.as_mut()?;
        loop {
            let chosen = scheduler.next(now, &views, data)?;
            // A copy of what has arrived meanwhile is of no use, nor a second one on the same path.
            let is_of_use = match self.flight.get(chosen.unit) {
                Some(chunk) if chunk.state == ChunkState::InFlight => {
                    !chunk.live.iter().any(|live| usize::from(live.path) == chosen.path)
                }
                Some(chunk) => chunk.state == ChunkState::Planned,
                None => chosen.unit < data.end,
            };
            if is_of_use {
                return Some(chosen);
            }
        }
    }

    fn path_view(&self, at: usize) -> PathView {
        let path = &self.paths[at];
        let srtt = path.estimator.srtt;
        let rtt = srtt.unwrap_or(Duration::from_millis(100));
        // Clocks may differ: only differences count, so all delays are moved up alike.
        let forwards = self.paths.iter().filter_map(|path| path.forward);
        let least = forwards.min().unwrap_or(0);
        let delay = match path.forward {
            Some(forward) => Duration::from_nanos((forward - least).unsigned_abs()),
            None => rtt / 2,
        };
        let is_full = self.is_share_used(at) || path.burst == 0;
        let window = if is_full { path.occupied() } else { path.congestion.cwnd() };
        let probe =
            if path.is_probe_due() { path.occupied() + u64::from(self.config.mtu) } else { 0 };
        PathView {
            delay,
            rtt,
            deviation: path.estimator.deviation,
            least: path.estimator.least.min(rtt),
            window: window.max(probe),
            in_flight: path.occupied(),
            is_usable: self.is_usable(at),
        }
    }

    /// Whether a path has used its share of the buffers.
    fn is_share_used(&self, at: usize) -> bool {
        let Some(cmt) = self.config.cmt() else { return false };
        let sharers = (0..self.paths.len()).filter(|at| self.is_usable(*at)).count().max(1) as u64;
        let unit = self.outbox.piece() as u64;
        let receiver = matches!(cmt.buffers, BufferSplit::Receiver | BufferSplit::Both);
        let is_over = |used: u64, buffer: u64| used + unit > (buffer / sharers).max(unit);
        let by_receiver = receiver && is_over(self.paths[at].in_flight, self.peer_window);
        let sender = matches!(cmt.buffers, BufferSplit::Sender | BufferSplit::Both);
        by_receiver
            || (sender && is_over(self.unacknowledged_on(at), self.config.send_buffer.into()))
    }

    /// Bytes whose last copy took a path and that take room in the sender's buffer.
    fn unacknowledged_on(&self, at: usize) -> u64 {
        let on = self.flight.iter().filter(|(_, chunk)| {
            chunk.state != ChunkState::Planned && usize::from(chunk.path) == at
        });
        on.map(|(_, chunk)| chunk.chunk.data.len() as u64).sum()
    }

    /// Makes chunks until there is one with this TSN.
    fn materialise(&mut self, tsn: u64) {
        while self.flight.end() <= tsn {
            let Some((chunk, origin)) = self.outbox.next_chunk() else { return };
            self.flight.push(chunk, origin);
        }
    }

    /// A chunk leaves on a path.
    pub(super) fn depart(&mut self, now: Time, at: usize, tsn: u64) -> Option<SctpChunk> {
        let order = self.order;
        self.order += 1;
        self.flight.depart(tsn, Departure { path: at as u8, order, at: now, is_out: false });
        let chunk = self.flight.get(tsn)?;
        let bytes = chunk.chunk.data.len() as u64;
        let path = &mut self.paths[at];
        path.charge(bytes);
        path.sent += bytes;
        path.chunks += 1;
        path.used_at = now;
        path.departures.push_back((tsn, order));
        path.expires.get_or_insert(now + path.estimator.rto);
        self.stats.probes += u64::from(path.take_probe(order, now));
        self.stats.chunks_sent += 1;
        let (is_new, data) = (chunk.sends == 1, SctpChunk::Data(chunk.chunk.clone()));
        if is_new {
            self.arm_probe(now, at);
        }
        Some(data)
    }

    fn after_load(&mut self, at: usize) {
        let path = &mut self.paths[at];
        path.has_fast_packet = false;
        path.burst = path.burst.saturating_sub(1);
    }

    /// The stamp of a packet that leaves.
    pub(super) fn stamp(&self, now: Time, path: usize) -> Option<SctpChunk> {
        let stamp = Stamp { path: path as u8, sent: now.as_nanos() };
        self.features.stamps.then_some(SctpChunk::Stamp(stamp))
    }

    /// Notes whether the peer's window alone keeps data back.
    fn note_blocked(&mut self, now: Time, has_load: bool) {
        let credit = self.peer_window.saturating_sub(self.in_flight());
        let first = self.flight.first_unsent();
        let has_data = first < self.flight.end() + self.outbox.chunks();
        let next = self.outbox.next_len().unwrap_or(1) as u64;
        let has_path = self.paths.iter().any(|path| path.is_active() && path.has_room());
        let is_blocked = !has_load && has_data && credit < next && has_path;
        match (is_blocked, self.blocked_since) {
            (true, None) => self.blocked_since = Some(now),
            (false, Some(since)) => {
                self.stats.blocked += now.since(since);
                self.blocked_since = None;
            }
            _ => {}
        }
    }
}
