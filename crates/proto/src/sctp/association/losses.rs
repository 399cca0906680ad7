//! What is lost, or given up.

use fontis_base::Time;
use smallvec::SmallVec;

use super::SctpAssociation;
use crate::sctp::chunk::{DataChunk, ForwardChunk, Skipped};
use crate::sctp::data::SctpData;
use crate::sctp::flight::ChunkState;
use crate::sctp::number;

/// Streams that a FORWARD-TSN names at most.
const MOST_SKIPPED: usize = 64;

impl SctpAssociation {
    /// A copy counts as lost; the path that it took, if it was in flight.
    pub(super) fn lose(&mut self, tsn: u64, order: u64) -> Option<usize> {
        let chunk = self.flight.get_mut(tsn)?;
        let place = chunk.live.iter().position(|live| live.order == order)?;
        let departure = chunk.live.remove(place);
        let bytes = chunk.chunk.data.len() as u64;
        chunk.missing = 0;
        if chunk.live.is_empty() && chunk.state == ChunkState::InFlight {
            self.flight.set(tsn, ChunkState::Lost);
        }
        let at = usize::from(departure.path);
        let path = self.paths.get_mut(at)?;
        path.settle(departure, bytes);
        path.lost += 1;
        self.stats.lost += 1;
        self.note_size(at, bytes, false);
        Some(at)
    }

    /// The window of a path answers to a loss: once for all that left before it did.
    pub(super) fn on_loss(&mut self, now: Time, at: usize, order: u64) {
        let (next, mtu) = (self.order, u64::from(self.config.mtu));
        let path = &mut self.paths[at];
        if order < path.reduced_at {
            return;
        }
        path.congestion.on_congestion(now, floor(path.congestion.cwnd(), mtu));
        path.gap.note_loss();
        path.reduced_at = next;
        path.is_recovering = true;
        // The first packet that is sent again needs no room (RFC 9260 section 7.2.4).
        path.has_fast_packet = true;
    }

    /// Reports say that a copy is missing: it is sent again.
    pub(super) fn lose_by_reports(&mut self, now: Time, tsn: u64, order: u64) -> Option<usize> {
        let at = self.lose(tsn, order)?;
        let is_calm = self.paths[at].is_calm(self.config.mtu);
        if let Some(repairs) = &mut self.repairs {
            repairs.note_lost(is_calm);
        }
        if !(self.config.only_marks && self.features.ecn) {
            self.on_loss(now, at, order);
            self.paths[at].congestion.on_lost(now, 1);
        }
        if let Some(chunk) = self.flight.get_mut(tsn) {
            chunk.was_fast = true;
        }
        if let Some(rack) = &mut self.paths[at].rack {
            rack.note_repeated(tsn as u32);
        }
        self.stats.fast_repeated += 1;
        Some(at)
    }

    /// Sends again what waited for repairs when the timer expired, without a slow start (Sarwar
    /// 2014, Algorithm 5). Whether there was any.
    fn repeat_what_waited(&mut self, now: Time, at: usize) -> bool {
        if !self.release_path(now, at) {
            return false;
        }
        let burst = self.config.max_burst.unwrap_or(u32::MAX);
        let path = &mut self.paths[at];
        path.burst = burst;
        path.expires = path.has_open().then(|| now + path.estimator.rto);
        path.settle_repairs(0);
        true
    }

    /// The timer of a path's data has expired (RFC 9260 section 6.3.3).
    pub(super) fn on_data_timeout(&mut self, now: Time, at: usize) {
        if self.repeat_what_waited(now, at) {
            return;
        }
        self.stats.timeouts += 1;
        let mtu = u64::from(self.config.mtu);
        let path = &mut self.paths[at];
        // The second in a row: large packets may be what does not come.
        if path.failures > 0 {
            path.mtu.fall_back(now);
        }
        let window = floor(path.congestion.cwnd(), mtu);
        path.congestion.on_timeout(now, window);
        path.gap.note_loss();
        path.reduced_at = self.order;
        (path.is_recovering, path.after_timeout) = (false, true);
        path.estimator.back_off();
        path.expires = None;
        path.burst = self.config.max_burst.unwrap_or(u32::MAX);
        path.stop_rack();
        for (tsn, order) in core::mem::take(&mut path.departures) {
            self.lose(tsn, order);
        }
        self.paths[at].settle_repairs(u64::MAX);
        self.on_failure(now, at, true);
    }

    /// The peer tells of a mark (RFC 4960 appendix A).
    pub(super) fn on_mark_echo(&mut self, now: Time, tsn: u32) {
        if !self.features.ecn {
            return;
        }
        self.marks.answer = Some(tsn);
        let tsn = number::expand(self.flight.base(), tsn);
        // A chunk that is gone took a path that nobody remembers: it was the only one, or the mark
        // is old.
        let chunk = self.flight.get(tsn);
        let departure = chunk.and_then(|chunk| chunk.live.last().copied());
        let at = chunk.map_or(self.primary, |chunk| usize::from(chunk.path));
        let (next, mtu) = (self.order, u64::from(self.config.mtu));
        let Some(path) = self.paths.get_mut(at) else { return };
        // One answer in a round trip: what left since the last has not been heard of.
        let order = departure.map(|departure| departure.order);
        let oldest = path.departures.front().map_or(next, |(_, order)| *order);
        if order.unwrap_or(oldest) >= path.reduced_at {
            path.congestion.on_mark(now, floor(path.congestion.cwnd(), mtu));
            path.reduced_at = next;
        }
    }

    /// Gives up the message of a chunk if it has lost its use. Whether it has.
    pub(super) fn abandons(&mut self, now: Time, tsn: u64) -> bool {
        let Some(chunk) = self.flight.get(tsn) else { return false };
        let origin = chunk.origin;
        let is_used_up = chunk.sends > origin.repeats;
        if !self.features.partial || !(origin.expires <= now || is_used_up) {
            return false;
        }
        let last = DataChunk { is_last: true, data: SctpData::Counted(0), ..chunk.chunk.clone() };
        if self.outbox.drop_message(origin.message) && !self.features.interleaving {
            // A TSN stands for the end that is never sent: without it the next message's first
            // fragment would follow one of this message.
            self.flight.push(last, origin);
        }
        let of_message = self.flight.iter().filter(|(_, chunk)| {
            chunk.origin.message == origin.message && chunk.state != ChunkState::Arrived
        });
        let all: SmallVec<[u64; 8]> = of_message.map(|(tsn, _)| tsn).collect();
        for tsn in all {
            let Some(chunk) = self.flight.get_mut(tsn) else { continue };
            let bytes = chunk.chunk.data.len() as u64;
            for departure in core::mem::take(&mut chunk.live) {
                if let Some(path) = self.paths.get_mut(usize::from(departure.path)) {
                    path.settle(departure, bytes);
                }
            }
            self.flight.set(tsn, ChunkState::Abandoned);
            self.flight.release(tsn);
        }
        self.stats.abandoned += 1;
        self.forward_at = self.forward_at.min(now);
        true
    }

    /// The FORWARD-TSN that is due (RFC 3758 section 3.5).
    pub(super) fn take_forward(&mut self, now: Time) -> Option<ForwardChunk> {
        if self.forward_at > now {
            return None;
        }
        let advanced = self.flight.advanced();
        if advanced == self.flight.base() {
            self.forward_at = Time::MAX;
            return None;
        }
        let is_interleaved = self.features.interleaving;
        let mut skipped: SmallVec<[Skipped; 4]> = SmallVec::new();
        let given_up = self.flight.iter().take_while(|(tsn, _)| *tsn < advanced);
        let mut to = advanced;
        for (tsn, chunk) in given_up {
            let chunk = &chunk.chunk;
            if chunk.is_unordered && !is_interleaved {
                continue;
            }
            let of = (chunk.stream, chunk.is_unordered);
            let same = skipped.iter().position(|last| (last.stream, last.is_unordered) == of);
            match same {
                // Messages of a stream stand in the order of their numbers.
                Some(at) => skipped[at].message = chunk.message,
                None if skipped.len() < MOST_SKIPPED => skipped.push(Skipped {
                    stream: chunk.stream,
                    is_unordered: chunk.is_unordered,
                    message: chunk.message,
                }),
                None => {
                    to = tsn;
                    break;
                }
            }
        }
        let rto = self.paths.get(self.primary)?.estimator.rto;
        self.forward_at = now + rto;
        Some(ForwardChunk { cumulative: (to - 1) as u32, is_interleaved, skipped })
    }
}

/// What a window is reduced from: the threshold is half of it, and never less than four packets
/// (RFC 9260 section 7.2.3).
const fn floor(window: u64, mtu: u64) -> u64 {
    if window > 8 * mtu { window } else { 8 * mtu }
}
