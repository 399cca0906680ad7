//! Erasure codes inside the association: repairs that leave, and chunks that are restored.

use fontis_base::Time;
use smallvec::SmallVec;

use super::{SctpAssociation, State};
use crate::sctp::chunk::{RepairChunk, SctpChunk};
use crate::sctp::coding::{RepairWait, RepairedLoss};
use crate::sctp::features::Features;
use crate::sctp::held::{Held, Restored};
use crate::sctp::number;
use crate::sctp::path::Path;
use crate::sctp::repairs::{LastRepair, Repairs};
use crate::sctp::restorer::Restorer;

/// Restored chunks that are told at once, and whose fate is open, at most.
const MOST_RESTORED: usize = 64;

impl SctpAssociation {
    /// Begins to code, if both ends do.
    pub(super) fn begin_coding(&mut self, features: Features) {
        self.restorer = Restorer::default();
        self.held.clear();
        self.restored.clear();
        self.acks.restored.clear();
        let coding = self.config.coding.filter(|_| features.repairs);
        self.repairs = coding.map(|coding| Repairs::new(coding, self.flight.base()));
        if self.repairs.is_some() {
            // A repair of a full chunk fits in a packet too, where there is no stamp.
            let stamp = if features.stamps { super::STAMP } else { 0 };
            self.outbox.leave_room(RepairChunk::HEADER.saturating_sub(stamp));
        }
    }

    /// The repair that leaves next, and its path.
    pub(super) fn next_repair(&mut self, now: Time) -> Option<(usize, SctpChunk)> {
        let is_inside = self.repairs.as_ref().filter(|_| self.sends_data())?.config.is_inside;
        let unsent = self.flight.first_unsent();
        let windows = self.paths.iter().filter(|path| path.is_active());
        let window: u64 = windows.map(|path| path.congestion.cwnd()).sum();
        let window = window.min(self.peer_window) / self.outbox.piece() as u64;
        self.repairs.as_mut()?.fit_block(window);
        let is_tail = self.outbox.bytes() == 0 && unsent == self.flight.end();
        self.repairs.as_ref().filter(|repairs| repairs.is_due(unsent, is_tail))?;
        // The path with the most room: what is lost elsewhere is restored soonest.
        let room = |at: &usize| {
            let path = &self.paths[*at];
            (path.congestion.cwnd().saturating_sub(path.occupied()), core::cmp::Reverse(*at))
        };
        let usable = (0..self.paths.len()).filter(|at| self.carries(*at));
        let at = usable.filter(|at| !is_inside || self.paths[*at].has_room()).max_by_key(room)?;
        let repairs = self.repairs.as_mut()?;
        let (repair, end) = repairs.take(unsent, is_tail, &self.flight)?;
        let departure = LastRepair { end, path: at, order: self.order, left: now };
        repairs.note_departure(departure, self.flight.base());
        if is_inside {
            self.paths[at].charge_repair(self.order, repair.data.len() as u64);
        }
        self.stats.repairs_sent += 1;
        Some((at, SctpChunk::Repair(repair)))
    }

    /// Takes a repair.
    pub(super) fn on_repair(&mut self, repair: &RepairChunk) {
        if !self.takes_data() || !self.features.repairs {
            return;
        }
        self.stats.repairs_received += 1;
        let first = self.arrivals.expand(repair.first);
        self.restorer.add(first, repair.clone(), &self.arrivals);
        self.shrink_restorer();
    }

    /// What is kept for repairs takes what data leave of the buffer.
    pub(super) fn shrink_restorer(&mut self) {
        let room = u64::from(self.config.receive_buffer).saturating_sub(self.held());
        self.restorer.shrink(self.arrivals.cumulative(), room);
    }

    /// Restores what can be restored. Whether anything was.
    pub(super) fn restore(&mut self, now: Time) -> bool {
        let mut has_restored = false;
        if !self.features.repairs {
            return false;
        }
        loop {
            let restored = self.restorer.restore(&self.arrivals);
            let mut is_new = false;
            for (tsn, chunk) in restored {
                if self.state == State::Closed || self.arrivals.has(tsn) {
                    continue;
                }
                has_restored |= self.on_data(now, &chunk);
                if self.arrivals.has(tsn) {
                    is_new = true;
                    self.stats.restored += 1;
                    self.acks.restored.push(tsn as u32);
                }
            }
            if !is_new {
                break;
            }
        }
        if has_restored {
            // The sender need not send them again: it is told at once.
            self.acks.at = now;
        }
        has_restored
    }

    /// Until when a copy that reports say is missing waits for its repair. `None` if it does not.
    fn waits_until(&self, now: Time, tsn: u64) -> Option<Time> {
        let repairs = self.repairs.as_ref()?;
        // What was sent again has had its repairs.
        let first = self.flight.get(tsn).filter(|chunk| chunk.sends == 1)?;
        let left = first.live.first()?;
        let code = repairs.config.code;
        let until = match repairs.config.wait {
            RepairWait::None => return None,
            RepairWait::Outcome => {
                // A group that more data will fill has its repair yet.
                let end = self.flight.end() + self.outbox.chunks();
                let comes = |tsn: u64| end > tsn + repairs.behind(tsn);
                let Some(next) = repairs.last_of(tsn) else {
                    // What would be given up instead of being sent again loses nothing by waiting.
                    let is_last = first.sends > first.origin.repeats && self.features.partial;
                    return (is_last && comes(tsn)).then_some(Time::MAX);
                };
                let last = tsn + self.groups_to_wait(repairs) * repairs.chunks();
                let (repair, has_left) = match repairs.last_of(last) {
                    Some(repair) => (repair, true),
                    None => (next, !comes(last)),
                };
                let path = &self.paths[repair.path];
                if has_left && (path.acknowledged >= repair.order || path.in_flight == 0) {
                    return None;
                }
                // Where nothing follows a repair, the time tells that nothing came of it.
                let srtt = |path: &Path| path.estimator.srtt;
                let longest = self.paths.iter().filter_map(srtt).max()?;
                repair.left + longest * if has_left { 3 } else { 5 } / 2
            }
            RepairWait::Published => {
                let path = &self.paths[usize::from(left.path)];
                let estimator = path.estimator;
                let srtt = estimator.srtt.unwrap_or(estimator.rto);
                let packets = (path.congestion.cwnd() / u64::from(self.config.mtu)).max(1);
                let least = |path: &Path| path.estimator.srtt.map(|_| path.estimator.least);
                let longest = self.paths.iter().filter_map(least).max()?;
                let (behind, rtt) = (repairs.behind(tsn), estimator.least.min(srtt));
                left.at + code.published_wait(behind, srtt / packets, rtt, longest)
            }
        };
        (until > now).then_some(until)
    }

    /// Groups behind its own whose repairs a chunk waits for too: those whose sums it is in, as far
    /// as half of the peer's buffer holds what leaves meanwhile: what is missing blocks all of it.
    fn groups_to_wait(&self, repairs: &Repairs) -> u64 {
        let chunks = repairs.chunks();
        let group = chunks * self.outbox.piece() as u64;
        let room = self.peer_buffer.saturating_sub(self.in_flight()) / (2 * group);
        (u64::from(repairs.config.code.most()) / chunks).min(room).saturating_sub(1)
    }

    /// Reports say that a copy is missing. Whether it waits for its repair.
    pub(super) fn holds(&mut self, now: Time, tsn: u64, order: u64) -> bool {
        let Some(until) = self.waits_until(now, tsn) else { return false };
        if !self.held.iter().any(|held| held.order == order) {
            self.held.push(Held { tsn, order, until });
        }
        true
    }

    /// Sends again what has waited long enough; gives the paths and their bytes.
    pub(super) fn release_held(&mut self, now: Time) -> SmallVec<[(usize, u64); 4]> {
        let mut released = SmallVec::new();
        for held in core::mem::take(&mut self.held) {
            let Held { tsn, order, .. } = held;
            let chunk = self.flight.get(tsn);
            let Some(chunk) = chunk.filter(|chunk| chunk.live.iter().any(|l| l.order == order))
            else {
                continue;
            };
            let bytes = chunk.chunk.data.len() as u64;
            if let Some(until) = self.waits_until(now, tsn) {
                self.held.push(Held { until, ..held });
            } else if let Some(at) = self.lose_by_reports(now, tsn, order) {
                released.push((at, bytes));
            }
        }
        released
    }

    /// When the first chunk has waited long enough.
    pub(super) fn held_until(&self) -> Option<Time> {
        self.held.iter().map(|held| held.until).min()
    }

    /// Sends again at once what waits on a path. Whether anything did.
    pub(super) fn release_path(&mut self, now: Time, at: usize) -> bool {
        let mut has_released = false;
        for held in core::mem::take(&mut self.held) {
            let live = self.flight.get(held.tsn).map(|chunk| chunk.live.as_slice());
            let mut live = live.unwrap_or_default().iter();
            if live.any(|live| live.order == held.order && usize::from(live.path) == at) {
                has_released |= self.lose_by_reports(now, held.tsn, held.order).is_some();
            } else {
                self.held.push(held);
            }
        }
        has_released
    }

    /// The report of what was restored since the last one.
    pub(super) fn take_restored(&mut self) -> Option<SctpChunk> {
        let most = self.acks.restored.len().min(MOST_RESTORED);
        let tsns: SmallVec<[u32; 4]> = self.acks.restored.drain(..most).collect();
        (!tsns.is_empty()).then_some(SctpChunk::Restored(tsns))
    }

    /// The peer tells what it has restored, before it acknowledges it.
    pub(super) fn on_restored(&mut self, tsns: &[u32]) {
        let Some(repairs) = &self.repairs else { return };
        if !repairs.asks_for_restored() {
            return;
        }
        for tsn in tsns.iter().take(MOST_RESTORED) {
            let chunk = self.flight.get(number::expand(self.flight.base(), *tsn));
            if let Some(left) = chunk.and_then(|chunk| chunk.live.first())
                && self.restored.len() < MOST_RESTORED
            {
                let path = usize::from(left.path);
                self.restored.push(Restored { tsn: *tsn, path, order: left.order });
            }
        }
    }

    /// Restored chunks count as lost once something that left later on their path has come, and as
    /// late if the peer tells that they have come twice.
    pub(super) fn judge_restored(&mut self, now: Time, duplicates: &[u32]) {
        for restored in core::mem::take(&mut self.restored) {
            if duplicates.contains(&restored.tsn) {
                continue;
            }
            let Some(path) = self.paths.get_mut(restored.path) else { continue };
            if path.acknowledged <= restored.order && path.in_flight > 0 {
                self.restored.push(restored);
                continue;
            }
            let is_calm = path.is_calm(self.config.mtu);
            let Some(repairs) = &mut self.repairs else { continue };
            repairs.note_lost(is_calm);
            let counts = repairs.config.loss == RepairedLoss::Beyond;
            if counts && path.proof.note_repaired(is_calm) {
                self.stats.repaired_congestion += 1;
                self.on_loss(now, restored.path, restored.order);
                // Nothing is sent again.
                self.paths[restored.path].has_fast_packet = false;
            }
        }
    }
}
