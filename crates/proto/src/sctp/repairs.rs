//! The repairs that are to be sent.

use core::ops::Range;
use std::collections::VecDeque;

use fontis_base::Time;
use fontis_codes::window::sum_factors;

use super::chunk::RepairChunk;
use super::coding::{CodeReach, CodingConfig};
use super::flight::{ChunkState, Flight};
use super::summand::Sum;

/// Groups whose last repairs are remembered.
const MOST_GROUPS: usize = 64;

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
    /// The first TSN of the group that has not had all its repairs.
    group: u64,
    /// The repairs that this group has had.
    made: u8,
    next_id: u32,
    /// The last repairs of the newest groups.
    left: VecDeque<LastRepair>,
}

impl Repairs {
    /// Repairs of chunks from the TSN `first` on.
    pub(super) const fn new(config: CodingConfig, first: u64) -> Self {
        Self { config, group: first, made: 0, next_id: 0, left: VecDeque::new() }
    }

    /// Packets from a chunk to the last repair of its group, with that.
    pub(super) const fn behind(&self, tsn: u64) -> u64 {
        let (n, k) = (self.config.code.n as u64, self.config.code.k as i64);
        // Groups follow each other without a gap.
        let at = (tsn as i64 - self.group as i64).rem_euclid(k);
        n - 1 - at as u64
    }

    /// Notes that a repair leaves on a path before the departure `order`.
    pub(super) fn note_departure(&mut self, path: usize, order: u64, left: Time) {
        // Once its group has had all, the next group has had none.
        let end = self.group + if self.made == 0 { 0 } else { u64::from(self.config.code.k) };
        let repair = LastRepair { end, path, order, left };
        match self.left.back_mut() {
            Some(last) if last.end == end => *last = repair,
            _ => self.left.push_back(repair),
        }
        if self.left.len() > MOST_GROUPS {
            self.left.pop_front();
        }
    }

    /// The last repair of a chunk's group, or of the first of those that are remembered; `None` if
    /// none has left.
    pub(super) fn last_of(&self, tsn: u64) -> Option<LastRepair> {
        self.left.iter().find(|repair| tsn < repair.end).copied()
    }

    /// Whether a repair is due when all TSNs before `unsent` have left.
    pub(super) const fn is_due(&self, unsent: u64) -> bool {
        self.group + self.config.code.k as u64 <= unsent
    }

    /// The repair that is due, if chunks are left of which it would be the sum.
    pub(super) fn take(&mut self, unsent: u64, flight: &Flight) -> Option<RepairChunk> {
        while self.is_due(unsent) {
            let sum = self.sum(flight);
            self.made += 1;
            let code = self.config.code;
            if self.made == code.n - code.k {
                self.group += u64::from(code.k);
                self.made = 0;
            }
            if sum.is_some() {
                return sum;
            }
        }
        None
    }

    /// The TSNs of which the next repair is the sum: those that the peer has not acknowledged.
    fn summands(&self, flight: &Flight) -> Range<u64> {
        let end = self.group + u64::from(self.config.code.k);
        let start = match self.config.code.reach {
            CodeReach::Group => self.group,
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

    fn sum(&mut self, flight: &Flight) -> Option<RepairChunk> {
        let summands = self.summands(flight);
        let chunks = || summands.clone().filter_map(|tsn| flight.get(tsn)).map(|one| &one.chunk);
        let longest = chunks().map(|chunk| chunk.data.len()).max()?;
        let count = summands.end - summands.start;
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let mut sum = Sum::new(longest);
        for (chunk, factor) in chunks().zip(sum_factors(id, count as usize)) {
            sum.add_chunk(chunk, factor);
        }
        let head = sum.head;
        let (first, count) = (summands.start as u32, count as u16);
        Some(RepairChunk { first, count, id, head, data: sum.into_data() })
    }
}
