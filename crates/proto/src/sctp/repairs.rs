//! The repairs that are to be sent.

use core::ops::Range;
use std::collections::VecDeque;

use fontis_base::Time;

use super::chunk::{RepairChunk, RepairFactors};
use super::coding::{CodeRate, CodeReach, CodingConfig, RepairedLoss};
use super::flight::{ChunkState, Flight};
use super::redundancy::{LossEstimate, repairs_for};
use super::summand::Sum;

/// The newest repair of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastRepair {
    /// The TSN behind the group.
    pub(super) end: u64,
    pub(super) path: usize,
    /// The order of the next departure when it left, and when that was.
    pub(super) order: u64,
    pub(super) left: Time,
}

/// Which repairs have left.
#[derive(Clone, Debug)]
pub(super) struct Repairs {
    pub(super) config: CodingConfig,
    /// The first TSN of the group that has not had all its repairs, its chunks, and its repairs.
    group: u64,
    chunks: u64,
    repairs: u64,
    /// The repairs that this group has had.
    made: u64,
    next_id: u32,
    /// The last repairs of the groups that the peer has not acknowledged, in order.
    left: VecDeque<LastRepair>,
    /// What the path loses, if the rate follows it.
    estimate: Option<LossEstimate>,
    /// Repairs for as many chunks as a sum has at most, and the loss that they are for.
    pace: u64,
    paced_for: f64,
    /// What of those chunks the groups so far have left.
    carry: u64,
}

impl Repairs {
    /// Repairs of chunks from the TSN `first` on.
    pub(super) fn new(config: CodingConfig, first: u64) -> Self {
        let (chunks, repairs, estimate) = match config.code.rate {
            CodeRate::Fixed { n, k } => (k.into(), u64::from(n - k), None),
            CodeRate::Adaptive => (config.code.most().into(), 1, Some(LossEstimate::new())),
        };
        let mut new = Self {
            config,
            group: first,
            chunks,
            repairs,
            made: 0,
            next_id: 0,
            left: VecDeque::new(),
            estimate,
            pace: 1,
            paced_for: 0.0,
            carry: 0,
        };
        new.adapt();
        new
    }

    /// Whether only loss beyond chance reduces windows, and repairs follow what is lost: then gaps
    /// are what a path is like, and no window waits for them.
    pub(super) fn outgrows_gaps(&self) -> bool {
        self.estimate.is_some() && self.config.loss == RepairedLoss::Beyond
    }

    /// Whether it needs to know what the peer has restored.
    pub(super) fn asks_for_restored(&self) -> bool {
        self.estimate.is_some() || self.config.loss == RepairedLoss::Beyond
    }

    /// So many chunks have come.
    pub(super) fn note_arrived(&mut self, chunks: u64, is_calm: bool) {
        if let Some(estimate) = &mut self.estimate {
            estimate.note_arrived(chunks, is_calm);
            self.adapt();
        }
    }

    /// A chunk was lost, restored or not.
    pub(super) fn note_lost(&mut self, is_calm: bool) {
        if let Some(estimate) = &mut self.estimate {
            estimate.note_lost(is_calm);
            self.adapt();
        }
    }

    /// Sets the rate by what is lost.
    fn adapt(&mut self) {
        let Some(estimate) = &self.estimate else { return };
        let loss = estimate.loss();
        // A small change makes none, and is not worth the sums.
        if (loss - self.paced_for).abs() <= self.paced_for / 32.0 {
            return;
        }
        self.paced_for = loss;
        if self.has_blocks() {
            return;
        }
        let pace = repairs_for(self.config.code.most(), loss);
        if pace != self.pace {
            self.pace = pace;
            self.carry = 0;
            // Where more is lost than was known, what has left has its repairs at once.
            self.begin_group();
        }
    }

    /// The next group's chunks.
    fn begin_group(&mut self) {
        if self.estimate.is_some() && !self.has_blocks() {
            let all = u64::from(self.config.code.most()) + self.carry;
            self.chunks = (all / self.pace).max(1);
            self.carry = all % self.pace;
        }
    }

    /// Packets from a chunk to the last repair of its group, with that.
    pub(super) fn behind(&self, tsn: u64) -> u64 {
        // Groups follow each other without a gap.
        let at = (tsn as i64 - self.group as i64).rem_euclid(self.chunks as i64);
        self.chunks + self.wanted(self.group + self.chunks) - 1 - at as u64
    }

    /// Chunks of a group, as it is now.
    pub(super) const fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Notes that a repair whose sum ends before the TSN `end` leaves on a path before the
    /// departure `order`; the peer has acknowledged all before `base`.
    pub(super) fn note_departure(&mut self, repair: LastRepair, base: u64) {
        match self.left.back_mut() {
            Some(last) if last.end == repair.end => *last = repair,
            _ => self.left.push_back(repair),
        }
        while self.left.front().is_some_and(|oldest| oldest.end <= base) {
            self.left.pop_front();
        }
    }

    /// The last repair of a chunk's group; `None` if none has left.
    pub(super) fn last_of(&self, tsn: u64) -> Option<LastRepair> {
        let at = self.left.partition_point(|repair| repair.end <= tsn);
        self.left.get(at).copied()
    }

    /// Whether a repair is due when all TSNs before `unsent` have left; nothing follows them if
    /// they are a tail.
    pub(super) const fn is_due(&self, unsent: u64, is_tail: bool) -> bool {
        let is_covered = is_tail && self.config.covers_tail && self.group < unsent;
        self.group + self.chunks <= unsent || is_covered
    }

    /// Whether its groups are the blocks of a code.
    const fn has_blocks(&self) -> bool {
        matches!(self.config.code.reach, CodeReach::RaptorQ(_))
    }

    /// A window has so many chunks: blocks at a rate that follows the loss are no longer than half
    /// of it, so that their repairs have left before anything tells what is missing.
    pub(super) fn fit_block(&mut self, window: u64) {
        if self.has_blocks() && self.estimate.is_some() && self.made == 0 {
            self.chunks = (window / 2).clamp(1, self.config.code.most().into());
        }
    }

    /// Repairs for the group before the TSN `end`, which may be shorter than others.
    fn wanted(&self, end: u64) -> u64 {
        let chunks = end - self.group;
        match self.config.code.rate {
            CodeRate::Adaptive if self.has_blocks() || chunks < self.chunks => {
                repairs_for(chunks as u8, self.paced_for)
            }
            _ => self.repairs,
        }
    }

    /// The repair that is due and the TSN before which its sum ends, if chunks are left of which it
    /// would be the sum.
    pub(super) fn take(
        &mut self,
        unsent: u64,
        is_tail: bool,
        flight: &Flight,
    ) -> Option<(RepairChunk, u64)> {
        while self.is_due(unsent, is_tail) {
            let end = unsent.min(self.group + self.chunks);
            let sum = self.sum(end, flight);
            self.made += 1;
            if self.made >= self.wanted(end) {
                self.group = end;
                self.made = 0;
                self.begin_group();
            }
            if let Some(sum) = sum {
                return Some((sum, end));
            }
        }
        None
    }

    /// The TSNs before `end` of which the next repair is the sum: those that the peer has not
    /// acknowledged.
    fn summands(&self, end: u64, flight: &Flight) -> Range<u64> {
        let start = match self.config.code.reach {
            CodeReach::Group | CodeReach::RaptorQ(_) => self.group,
            CodeReach::Memory(most) | CodeReach::Unacknowledged(most) => {
                end.saturating_sub(most.into())
            }
        };
        // What is given up, or kept by the peer for good, has no content any more.
        let has_content = |tsn: &u64| {
            let chunk = flight.get(*tsn);
            chunk.is_some_and(|chunk| {
                !chunk.chunk.data.is_empty() && chunk.state != ChunkState::Planned
            })
        };
        let start = (start.max(flight.base())..end).rev().take_while(has_content).last();
        start.map_or(end..end, |start| start..end)
    }

    fn sum(&mut self, end: u64, flight: &Flight) -> Option<RepairChunk> {
        let summands = self.summands(end, flight);
        let chunks = || summands.clone().filter_map(|tsn| flight.get(tsn)).map(|one| &one.chunk);
        let longest = chunks().map(|chunk| chunk.data.len()).max()?;
        let count = summands.end - summands.start;
        let (factors, id) = match self.has_blocks() {
            // A block is what the peer has not acknowledged: repairs of one block differ.
            true => (RepairFactors::RaptorQ, (count + self.made) as u32),
            false => (RepairFactors::Window, self.next_id),
        };
        self.next_id = self.next_id.wrapping_add(1);
        let mut sum = Sum::new(longest);
        for (chunk, factor) in chunks().zip(factors.of(id, count as usize)?) {
            sum.add_chunk(chunk, factor);
        }
        let head = sum.head;
        let (first, count) = (summands.start as u32, count as u16);
        Some(RepairChunk { first, count, id, factors, head, data: sum.into_data() })
    }
}
