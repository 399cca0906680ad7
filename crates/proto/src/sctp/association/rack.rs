//! Losses that time tells, and probes of the tail (RFC 8985, carried over to each path).

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::SctpAssociation;
use super::acks::ByPath;
use crate::sctp::chunk::DataChunk;
use crate::sctp::config::LossRecovery;
use crate::sctp::flight::{ChunkState, Departure};
use crate::sctp::path::Path;

use super::sending::Load;

impl SctpAssociation {
    /// Whether time tells losses.
    pub(super) fn goes_by_time(&self) -> bool {
        self.config.recovery == LossRecovery::RackTlp
    }

    /// Counts as lost what a SACK shows to be late on each path. Of TSNs beyond `told` it says
    /// nothing.
    pub(super) fn detect_late(&mut self, now: Time, delivered: &mut ByPath, told: u64) {
        self.told = told;
        for at in 0..self.paths.len() {
            let bytes = self.lose_late(now, at);
            delivered[at].note_lost(bytes);
        }
        for (path, bytes) in self.release_held(now) {
            delivered[path].note_lost(bytes);
        }
    }

    /// How long after its departure a copy counts as lost, once one that left later has come.
    fn patience(&self, at: usize) -> Option<Duration> {
        let path = self.paths.get(at)?;
        let rack = path.rack.as_ref()?;
        let rtt = rack.newest?.rtt;
        let is_clear = rack.is_ordered()
            && (path.is_recovering || path.after_timeout || self.is_passed_by_many(path));
        let srtt = path.estimator.srtt.unwrap_or(rtt);
        let window = match is_clear {
            true => Duration::ZERO,
            false => rack.window(path.estimator.least, srtt),
        };
        Some(rtt + window)
    }

    /// Whether as many chunks have come behind the oldest one in flight as reports make a loss.
    fn is_passed_by_many(&self, path: &Path) -> bool {
        let newest = path.rack.as_ref().and_then(|rack| rack.newest);
        let newest = newest.map_or(0, |newest| newest.order);
        let is_live = |(tsn, order): &(u64, u64)| self.copy_of(*tsn, *order).is_some();
        let behind = path.departures.iter().skip_while(|departure| !is_live(departure));
        let passed = behind.take_while(|(_, order)| *order <= newest).filter(|(tsn, _)| {
            self.flight.get(*tsn).is_none_or(|chunk| chunk.state == ChunkState::Arrived)
        });
        let limit = self.config.missing_reports.max(1) as usize;
        passed.take(limit).count() == limit
    }

    /// A copy that is in flight.
    fn copy_of(&self, tsn: u64, order: u64) -> Option<Departure> {
        let chunk = self.flight.get(tsn)?;
        chunk.live.iter().find(|live| live.order == order).copied()
    }

    /// Counts as lost what is late on a path (RFC 8985 section 6.2 step 5), and sets the timer for
    /// what is not yet. Bytes that are sent again.
    pub(super) fn lose_late(&mut self, now: Time, at: usize) -> u64 {
        let Some(patience) = self.patience(at) else { return 0 };
        let Some(Path { rack: Some(rack), departures, .. }) = self.paths.get(at) else { return 0 };
        let newest = rack.newest.map_or(0, |newest| newest.order);
        let mut late: SmallVec<[(u64, u64); 8]> = SmallVec::new();
        // One timer for all: that of the last (RFC 8985 section 6.3).
        let mut late_at = None;
        for (tsn, order) in departures.iter().take_while(|(_, order)| *order < newest) {
            let Some(live) = self.copy_of(*tsn, *order).filter(|live| !live.is_out) else {
                continue;
            };
            if live.at + patience <= now {
                late.push((*tsn, *order));
            } else {
                late_at = Some(live.at + patience);
            }
        }
        if let Some(rack) = &mut self.paths[at].rack {
            rack.late_at = late_at;
        }
        let mut lost = 0;
        for (tsn, order) in late {
            let bytes = self.flight.get(tsn).map_or(0, |chunk| chunk.chunk.data.len() as u64);
            if tsn > self.told {
                // A full SACK does not tell whether it has come, but it is not on its way.
                self.note_one_out(at, tsn, order);
            } else if !self.holds(now, tsn, order)
                && self.lose_by_reports(now, tsn, order).is_some()
            {
                lost += bytes;
            }
        }
        lost
    }

    /// A SACK has been read, and its losses counted: what it says of probes.
    pub(super) fn finish_rack(&mut self, now: Time, duplicates: &[u32]) {
        let next = self.order;
        for at in 0..self.paths.len() {
            if let Some(rack) = &mut self.paths[at].rack {
                rack.finish(duplicates, next);
            }
            self.judge_probe(now, at, duplicates);
        }
    }

    /// What has become of the last probe (RFC 8985 section 7.4).
    fn judge_probe(&mut self, now: Time, at: usize, duplicates: &[u32]) {
        let path = &self.paths[at];
        let Some(probe) = path.rack.as_ref().and_then(|rack| rack.probe) else { return };
        let has_passed = path.acknowledged > probe.order;
        let (is_over, has_repaired) = match probe.repeats {
            None => (path.acknowledged >= probe.order, false),
            Some(tsn) => {
                let chunk = self.flight.get(tsn);
                let state = chunk.map_or(ChunkState::Arrived, |chunk| chunk.state);
                let has_come = state == ChunkState::Arrived;
                // The copy before it has come, too, or instead of it.
                let is_spare = duplicates.contains(&(tsn as u32))
                    || (has_come && now.since(probe.left) < path.estimator.least);
                let is_open = state == ChunkState::InFlight || (has_come && !has_passed);
                (is_spare || !is_open, has_come && !is_spare)
            }
        };
        if !is_over {
            return;
        }
        if let Some(rack) = &mut self.paths[at].rack {
            rack.probe = None;
        }
        if has_repaired && !(self.config.only_marks && self.features.ecn) {
            // It has hidden a loss, which the window answers to all the same.
            self.on_loss(now, at, probe.order);
            self.paths[at].has_fast_packet = false;
        }
    }

    /// Sets the timer of the probe of a path's tail (RFC 8985 section 7.2). The peer's delay of
    /// SACKs is taken to be this end's.
    pub(super) fn arm_probe(&mut self, now: Time, at: usize) {
        let (delay, packet) = (self.config.acks.delay, u64::from(self.config.mtu));
        let path = &mut self.paths[at];
        let may = path.in_flight > 0 && !path.is_recovering && !path.after_timeout;
        let is_alone = path.in_flight <= packet;
        let (srtt, expires) = (path.estimator.srtt, path.expires);
        let Some(rack) = &mut path.rack else { return };
        let may = may && rack.has_sample && rack.probe.is_none();
        rack.probe_at = srtt.filter(|_| may).map(|srtt| {
            let wait = if is_alone { srtt * 2 + delay } else { srtt * 2 };
            (now + wait).min(expires.unwrap_or(Time::MAX))
        });
    }

    /// The timers of RACK and of the probe, if they are due.
    pub(super) fn on_rack_timers(&mut self, now: Time) {
        for at in 0..self.paths.len() {
            let Some(rack) = &mut self.paths[at].rack else { continue };
            if rack.late_at.is_some_and(|late| late <= now) {
                rack.late_at = None;
                self.lose_late(now, at);
            }
            let path = &mut self.paths[at];
            let Some(rack) = &mut path.rack else { continue };
            if rack.probe_at.is_none_or(|probe| probe > now) {
                continue;
            }
            rack.probe_at = None;
            if path.in_flight > 0 && !path.is_recovering && !path.after_timeout {
                rack.is_probe_due = true;
                path.expires = Some(now + path.estimator.rto);
            }
        }
    }

    /// The next deadline of those timers.
    pub(super) fn rack_due(&self) -> Option<Time> {
        let racks = self.paths.iter().filter_map(|path| path.rack.as_ref());
        racks.flat_map(|rack| [rack.late_at, rack.probe_at]).flatten().min()
    }

    /// The probe that is due: new data if there are any, else the chunk that left last (RFC 8985
    /// section 7.3).
    pub(super) fn tail_probe(&mut self, now: Time, beside: Option<(u8, usize)>) -> Option<Load> {
        let is_due = |path: &Path| path.rack.as_ref().is_some_and(|rack| rack.is_probe_due);
        let at = self.paths.iter().position(is_due)?;
        if let Some(load) = self.new_data(now, beside) {
            return Some(load);
        }
        let Some(tsn) = self.last_departed(now, at) else {
            if let Some(rack) = &mut self.paths[at].rack {
                rack.is_probe_due = false;
            }
            return None;
        };
        let chunk = self.flight.get(tsn)?;
        let header = DataChunk::header(chunk.chunk.is_interleaved);
        let size = header + chunk.chunk.data.len().next_multiple_of(4);
        if beside.is_some() && size > self.space(at, beside) {
            // It leaves after the SACK.
            return None;
        }
        let chunks = self.depart(now, at, tsn).into_iter().collect();
        if let Some(probe) = self.paths[at].rack.as_mut().and_then(|rack| rack.probe.as_mut()) {
            probe.repeats = Some(tsn);
        }
        self.stats.repeated += 1;
        Some(Load { path: at, chunks, is_repeat: true })
    }

    /// The chunk in flight that left last on a path, if it may leave again.
    fn last_departed(&self, now: Time, at: usize) -> Option<u64> {
        let departures = self.paths[at].departures.iter().rev();
        let tsn = departures
            .copied()
            .find(|(tsn, order)| self.copy_of(*tsn, *order).is_some_and(|live| !live.is_out))?;
        let chunk = self.flight.get(tsn.0)?;
        let is_used_up = chunk.sends > chunk.origin.repeats || chunk.origin.expires <= now;
        (!(self.features.partial && is_used_up)).then_some(tsn.0)
    }
}
