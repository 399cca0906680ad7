//! SACKs that come: what has arrived, windows that grow, and what counts as missing.

use core::ops::RangeInclusive;

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::SctpAssociation;
use super::receive::MOST_GAPS;
use crate::congestion::coupling::{CoupledPath, Coupling};
use crate::congestion::sample::{Acknowledgement, Phase};
use crate::sctp::chunk::{SackChunk, StampEcho};
use crate::sctp::flight::ChunkState;
use crate::sctp::number;
use crate::sctp::path::Path;
use crate::sctp::repairs::Repairs;

/// What a SACK says of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Bytes and chunks that it is the first to acknowledge.
    bytes: u64,
    chunks: u64,
    /// The first and the last departure of the copies that have come.
    pub(super) orders: Option<(u64, u64)>,
    /// The first departure of what it acknowledges, whatever has come of that.
    first: Option<u64>,
    /// The departure that had waited longest, before the SACK.
    oldest: Option<u64>,
    rtt: Option<Duration>,
    lost: u64,
}

impl Delivered {
    /// The peer has a chunk, of which a copy that left in the place `order` was in flight.
    fn note(&mut self, order: u64, bytes: u64, has_come: bool) {
        self.bytes += bytes;
        self.chunks += 1;
        self.first = Some(self.first.map_or(order, |first| first.min(order)));
        if !has_come {
            return;
        }
        let (low, high) = self.orders.unwrap_or((order, order));
        self.orders = Some((low.min(order), high.max(order)));
    }

    /// So many bytes count as lost.
    pub(super) const fn note_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }
}

/// What a SACK says, path by path.
pub(super) type ByPath = SmallVec<[Delivered; 2]>;

/// The TSNs of gap blocks within `above`, each once and in order, however a peer tells them: what
/// they cost is bound by what is in flight.
fn disjoint<'a>(
    blocks: impl Iterator<Item = &'a (u16, u16)>,
    cumulative: u64,
    above: &RangeInclusive<u64>,
) -> SmallVec<[RangeInclusive<u64>; 8]> {
    let mut blocks: SmallVec<[(u64, u64); 8]> = blocks
        .map(|(first, last)| (cumulative + u64::from(*first), cumulative + u64::from(*last)))
        .collect();
    blocks.sort_unstable();
    let mut next = *above.start();
    let mut runs = SmallVec::new();
    for (first, last) in blocks {
        let (first, last) = (first.max(next), last.min(*above.end()));
        if first <= last {
            runs.push(first..=last);
            next = last + 1;
        }
    }
    runs
}

/// A SACK of another stack with so many gap blocks may have had no room for the rest: one of
/// dcSCTP, which is Chromium's, has 20 at most.
const MAY_BE_CUT: usize = 16;

/// Packets that a SACK answers at most, whatever it says: each costs a look at what is in flight.
const MOST_ANSWERED: u8 = 3;

impl SctpAssociation {
    /// Takes a SACK, and the echo of a stamp beside it.
    pub(super) fn on_sack(&mut self, now: Time, sack: &SackChunk, echo: Option<StampEcho>) {
        let cumulative = number::expand(self.flight.base() - 1, sack.cumulative);
        if cumulative >= self.flight.end() {
            return self.violate("a SACK of what was never sent");
        }
        let believes = self.config.cmt().is_some_and(|cmt| cmt.believes_old_sacks);
        let is_late = echo.is_some_and(|echo| {
            self.newest_ack.is_some_and(|newest| echo.number.wrapping_sub(newest) > 1 << 31)
        });
        let is_behind = cumulative + 1 < self.flight.base();
        // Without numbers an overtaken SACK that acknowledges the same without a gap looks new.
        let is_old = is_behind || (is_late && !believes);
        if let Some(echo) = echo {
            if !is_late {
                self.newest_ack = Some(echo.number);
            }
            self.on_echo(echo);
        }
        if is_old {
            self.stats.old_acks += 1;
        }
        let mut delivered = self.before_sack();
        let before = self.flight.base();
        self.acknowledge(now, cumulative, &mut delivered);
        let is_moved = self.flight.base() > before;
        let above = cumulative + 1..=self.flight.end().max(cumulative + 1);
        let kept = disjoint(sack.kept.iter().flatten(), cumulative, &above);
        let all = sack.gaps.iter().chain(sack.kept.iter().flatten());
        let runs = disjoint(all, cumulative, &above);
        let newest_tsn = self.acknowledge_runs(now, &runs, &mut delivered);
        if !is_old {
            kept.into_iter().flatten().for_each(|tsn| self.flight.release(tsn));
        }
        if !is_old {
            if is_moved {
                self.restore_reneged(&runs);
            }
            let blocks = sack.gaps.len() + sack.kept.as_ref().map_or(0, SmallVec::len);
            // Stamps are this stack's.
            let most = if self.features.stamps { MOST_GAPS } else { MAY_BE_CUT };
            let told = match runs.last() {
                Some(last) if blocks >= most => *last.end(),
                _ => u64::MAX,
            };
            let packets = sack.packets;
            if told < u64::MAX && delivered.iter().all(|path| path.chunks == 0) {
                self.note_untold(told, packets.clamp(1, MOST_ANSWERED));
            }
            if self.goes_by_time() {
                self.detect_late(now, &mut delivered, told);
            } else {
                self.count_missing(now, &mut delivered, newest_tsn, told, packets);
            }
            self.peer_window = sack.window.into();
            self.peer_buffer = self.peer_buffer.max(self.peer_window);
        }
        self.after_sack(now, &delivered, is_moved);
        self.judge_restored(now, &sack.duplicates);
        self.finish_rack(now, &sack.duplicates);
        if self.flight.is_empty() || self.flight.advanced() == self.flight.base() {
            self.forward_at = Time::MAX;
        } else if is_moved {
            self.forward_at = now;
        }
    }

    /// The peer says in a SHUTDOWN how far it has all.
    pub(super) fn acknowledge_to(&mut self, now: Time, cumulative: u32) {
        let cumulative = number::expand(self.flight.base() - 1, cumulative);
        if cumulative < self.flight.end() && cumulative + 1 > self.flight.base() {
            let mut delivered = self.before_sack();
            self.acknowledge(now, cumulative, &mut delivered);
            self.after_sack(now, &delivered, true);
        }
    }

    fn before_sack(&mut self) -> ByPath {
        let (flight, has_polled) = (&self.flight, self.has_polled);
        let mtu = u64::from(self.config.mtu);
        let before = |path: &mut Path| {
            let is_live = |tsn: u64, order: u64| {
                let chunk = flight.get(tsn);
                chunk.is_some_and(|chunk| chunk.live.iter().any(|live| live.order == order))
            };
            while let Some((tsn, order)) = path.departures.front().copied() {
                if is_live(tsn, order) {
                    break;
                }
                path.departures.pop_front();
            }
            // Of acknowledgements that a driver reads together the first finds the path as it was
            // when it could last have sent.
            if has_polled {
                path.is_limited = path.occupied() + mtu > path.congestion.cwnd();
            }
            Delivered {
                oldest: path.departures.front().map(|(_, order)| *order),
                ..Delivered::default()
            }
        };
        self.paths.iter_mut().map(before).collect()
    }

    /// All TSNs up to `cumulative` have arrived.
    fn acknowledge(&mut self, now: Time, cumulative: u64, delivered: &mut ByPath) {
        while self.flight.base() <= cumulative {
            self.take_live(now, self.flight.base(), delivered);
            self.flight.pop();
        }
    }

    /// These TSNs have arrived, beyond a gap. The highest among them that is new.
    fn acknowledge_runs(
        &mut self,
        now: Time,
        runs: &[RangeInclusive<u64>],
        delivered: &mut ByPath,
    ) -> Option<u64> {
        let mut newest = None;
        for tsn in runs.iter().cloned().flatten() {
            let Some(chunk) = self.flight.get(tsn) else { continue };
            if !matches!(chunk.state, ChunkState::InFlight | ChunkState::Lost) {
                continue;
            }
            self.take_live(now, tsn, delivered);
            self.flight.set(tsn, ChunkState::Arrived);
            newest = newest.max(Some(tsn));
        }
        newest
    }

    /// A chunk has arrived: its copies are in flight no more.
    fn take_live(&mut self, now: Time, tsn: u64, delivered: &mut ByPath) {
        let Some(chunk) = self.flight.get_mut(tsn) else { return };
        let bytes = chunk.chunk.data.len() as u64;
        let live = core::mem::take(&mut chunk.live);
        // Of a chunk that was sent again nobody knows which copy has arrived (Karn's rule).
        // That of a restored one is none.
        let is_restored = |order| self.restored.iter().any(|restored| restored.order == order);
        let is_repeat = chunk.sends > 1;
        let is_clear = !is_repeat && !live.iter().any(|live| is_restored(live.order));
        let is_told = self.repairs.as_ref().is_some_and(Repairs::asks_for_restored);
        let mut came: SmallVec<[usize; 1]> = SmallVec::new();
        for departure in live {
            let at = usize::from(departure.path);
            let (Some(path), Some(delivered)) = (self.paths.get_mut(at), delivered.get_mut(at))
            else {
                continue;
            };
            path.settle(departure, bytes);
            let rtt = now.since(departure.at);
            if let Some(rack) = path.rack.as_mut().filter(|_| !is_restored(departure.order)) {
                rack.note(departure.order, rtt, is_repeat, path.estimator.least);
            }
            if delivered.orders.is_none_or(|(_, last)| departure.order > last) && is_clear {
                delivered.rtt = Some(rtt);
            }
            // A copy has not come if repairs have restored the chunk, which may be told in a SACK
            // that was lost; nor if that is too soon (RFC 8985 section 6.2 step 2). What left
            // before it is not missing then.
            let is_soon = is_repeat && rtt < path.estimator.least;
            let has_come = !is_told || !(is_soon || is_restored(departure.order));
            delivered.note(departure.order, bytes, has_come);
            if has_come {
                came.push(at);
            }
        }
        came.into_iter().for_each(|at| self.note_size(at, bytes, true));
    }

    /// The peer has dropped what it had acknowledged beyond a gap: all that this SACK does not
    /// repeat. That is so if the lowest chunk without acknowledgement once had one.
    fn restore_reneged(&mut self, runs: &[RangeInclusive<u64>]) {
        let Some(first) = self.flight.get(self.flight.base()) else { return };
        if first.state != ChunkState::Arrived {
            return;
        }
        let arrived = self.flight.iter().filter(|(_, chunk)| chunk.state == ChunkState::Arrived);
        let gone: Vec<u64> = arrived
            .filter(|(tsn, _)| {
                let next = runs.partition_point(|run| run.end() < tsn);
                runs.get(next).is_none_or(|run| run.start() > tsn)
            })
            .map(|(tsn, _)| tsn)
            .collect();
        for tsn in gone {
            self.flight.set(tsn, ChunkState::Lost);
        }
    }

    /// A full SACK that tells nothing new answers packets that it had no room to tell of: so many
    /// are on their way no more. Which ones does not matter for what may leave.
    fn note_untold(&mut self, told: u64, packets: u8) {
        for _ in 0..packets {
            let flight = &self.flight;
            let oldest_of = |path: &Path| {
                path.departures.iter().copied().find(|(tsn, order)| {
                    let chunk = flight.get(*tsn).filter(|_| *tsn > told);
                    let mut live = chunk.iter().flat_map(|chunk| &chunk.live);
                    live.any(|live| live.order == *order && !live.is_out)
                })
            };
            let oldest = self.paths.iter().enumerate().filter_map(|(at, path)| {
                let (tsn, order) = oldest_of(path)?;
                Some((order, tsn, at))
            });
            let Some((order, tsn, at)) = oldest.min() else { return };
            self.note_one_out(at, tsn, order);
        }
    }

    /// A copy on a path is on its way no more.
    pub(super) fn note_one_out(&mut self, at: usize, tsn: u64, order: u64) {
        let Some(chunk) = self.flight.get_mut(tsn) else { return };
        let bytes = chunk.chunk.data.len() as u64;
        if let Some(live) = chunk.live.iter_mut().find(|live| live.order == order) {
            self.paths[at].note_out(live, bytes);
        }
    }

    /// Counts chunks as missing, and those that are missing often enough as lost. Of TSNs beyond
    /// `told` the SACK says nothing.
    fn count_missing(
        &mut self,
        now: Time,
        delivered: &mut ByPath,
        newest_tsn: Option<u64>,
        told: u64,
        packets: u8,
    ) {
        let cmt = self.config.cmt().copied().unwrap_or_default();
        let paths = delivered.iter().filter(|path| path.orders.is_some()).count();
        let mut lost: SmallVec<[(u64, u64); 8]> = SmallVec::new();
        let (limit, again) = (self.config.missing_reports.max(1), self.config.fast_again);
        for at in 0..self.paths.len() {
            let by_tsn = !cmt.split_fast_retransmit;
            let (low, high) = match (by_tsn, delivered[at].orders) {
                (false, None) => continue,
                (false, Some(orders)) => orders,
                (true, _) => (0, u64::MAX),
            };
            let mut out: SmallVec<[(u64, u64); 8]> = SmallVec::new();
            for (tsn, order) in &self.paths[at].departures {
                if *order >= high {
                    break;
                }
                let Some(chunk) = self.flight.get_mut(*tsn) else { continue };
                let is_here = chunk.live.iter().any(|live| live.order == *order);
                let is_passed = !by_tsn || newest_tsn.is_some_and(|newest| *tsn < newest);
                if !is_here || !is_passed || (chunk.was_fast && !again) {
                    continue;
                }
                // A delayed SACK says how many packets it answers; if they took one path, a chunk
                // before all of them was passed by so many (Iyengar et al. 2006, section 5).
                let is_before = *order < low && paths == 1;
                chunk.missing += if is_before { u32::from(packets).max(1) } else { 1 };
                if chunk.missing < limit {
                    continue;
                }
                if *tsn <= told {
                    lost.push((*tsn, *order));
                    continue;
                }
                // A full SACK does not tell whether it has come, but it is not on its way.
                out.push((*tsn, *order));
            }
            out.into_iter().for_each(|(tsn, order)| self.note_one_out(at, tsn, order));
        }
        for (tsn, order) in lost {
            if self.holds(now, tsn, order) {
                continue;
            }
            let Some(path) = self.lose_by_reports(now, tsn, order) else { continue };
            let bytes = self.flight.get(tsn).map_or(0, |chunk| chunk.chunk.data.len());
            delivered[path].lost += bytes as u64;
        }
        for (path, bytes) in self.release_held(now) {
            delivered[path].lost += bytes;
        }
    }

    /// Windows grow, timers start anew.
    fn after_sack(&mut self, now: Time, delivered: &ByPath, is_moved: bool) {
        if is_moved {
            // What was given up may be all that the SACK acknowledges.
            self.failures = 0;
        }
        self.couple_windows();
        let own = self.config.cmt().is_none_or(|cmt| cmt.own_cumulative);
        let is_single = self.config.cmt().is_none();
        let outgrows_gaps = self.repairs.as_ref().is_some_and(Repairs::outgrows_gaps);
        let wants_streams = self.paths.iter().any(|path| path.congestion.wants_streams());
        let shortest_stream = wants_streams.then(|| self.outbox.shortest());
        // Acknowledgements that a driver reads together allow what each would have.
        let has_sent = core::mem::take(&mut self.has_polled);
        for (at, seen) in delivered.iter().enumerate() {
            let order = self.order;
            // A SACK for many packets allows what one for every two of them would.
            let came = match self.config.batches {
                true => u32::try_from(seen.chunks).unwrap_or(u32::MAX),
                false => 0,
            };
            let least = came.saturating_add(came / 2).saturating_add(1);
            let burst = self.config.max_burst.map_or(u32::MAX, |burst| burst.max(least));
            let Some(path) = self.paths.get_mut(at) else { continue };
            path.burst = if has_sent { burst } else { path.burst.saturating_add(burst) };
            if seen.chunks == 0 {
                continue;
            }
            if let Some((_, high)) = seen.orders {
                path.settle_repairs(high);
                path.acknowledged = path.acknowledged.max(high);
                if high >= path.reduced_at {
                    let was_lossy = path.is_recovering || path.after_timeout;
                    if let Some(rack) = path.rack.as_mut().filter(|_| was_lossy) {
                        rack.leave_recovery();
                    }
                    (path.is_recovering, path.after_timeout) = (false, false);
                }
            }
            let is_calm = path.is_calm(self.config.mtu);
            path.proof.note_arrived(seen.chunks, is_calm);
            if let Some(repairs) = &mut self.repairs {
                repairs.note_arrived(seen.chunks, is_calm);
            }
            self.failures = 0;
            if let Some(rtt) = seen.rtt {
                path.estimator.sample(rtt);
                path.newest_rtt = Some(rtt);
                path.rack.iter_mut().for_each(|rack| rack.has_sample = true);
            }
            // The window grows if what had waited longest has come, on this path or at all.
            let has_front = if own && !is_single { seen.oldest == seen.first } else { is_moved };
            let grows = has_front || outgrows_gaps;
            let window = path.congestion.cwnd();
            let mut acked = if grows { seen.bytes } else { 0 };
            if window < path.congestion.ssthresh() {
                // One packet for each SACK in slow start (RFC 9260 section 7.2.1). One that
                // answers a batch allows what as many SACKs as packets would.
                acked = acked.min(u64::from(path.mtu.size()) * u64::from(came).max(1));
            }
            let srtt = path.estimator.srtt.unwrap_or(path.estimator.rto);
            path.gap.note_acked(seen.bytes);
            path.congestion.on_ack(&Acknowledgement {
                now,
                acked,
                delivered: seen.bytes,
                lost: seen.lost,
                rtt: seen.rtt,
                min_rtt: path.estimator.least.min(srtt),
                srtt,
                marked: false,
                in_flight: path.in_flight,
                cwnd_limited: path.is_limited,
                acked_to: path.acknowledged,
                sent_to: order,
                phase: match (path.is_recovering, path.after_timeout) {
                    (true, _) => Phase::Recovery,
                    (_, true) => Phase::Loss,
                    _ => Phase::Open,
                },
                shortest_stream,
                delivery: None,
            });
            path.expires = path.has_open().then(|| now + path.estimator.rto);
            path.failures = 0;
            if path.is_confirmed() {
                self.path_answers(at);
            }
            self.arm_probe(now, at);
        }
    }

    /// Tells the windows of the paths that carry data how fast they grow, if they are coupled.
    fn couple_windows(&mut self) {
        let coupling = self.config.cmt().map_or(Coupling::None, |cmt| cmt.coupling);
        if coupling == Coupling::None {
            return;
        }
        let used: SmallVec<[&mut Path; 4]> =
            self.paths.iter_mut().filter(|path| path.is_active()).collect();
        let seen: SmallVec<[CoupledPath; 4]> = used.iter().map(|path| path.coupled()).collect();
        for (path, growth) in used.into_iter().zip(coupling.growths(&seen)) {
            path.congestion.set_growth(growth);
        }
    }

    /// The delay of a path by the two ends' clocks (Sarwar 2014, Equation 7.6).
    fn on_echo(&mut self, echo: StampEcho) {
        let Some(path) = self.paths.get_mut(usize::from(echo.stamp.path)) else { return };
        let delay = echo.received.wrapping_sub(echo.stamp.sent) as i64;
        // A clock that differs by more than this says nothing.
        if delay.unsigned_abs() > 1 << 60 {
            return;
        }
        path.forward = Some(match path.forward {
            None => delay,
            Some(before) => before + (delay - before) / 8,
        });
    }
}
