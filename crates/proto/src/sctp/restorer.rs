//! Repairs that have come, and what restores lost chunks with them.

use std::collections::{BTreeMap, VecDeque};

use fontis_codes::window::solve_sums;

use super::arrivals::Arrivals;
use super::chunk::{DataChunk, RepairChunk};
use super::coding::MOST_SUMMANDS;
use super::summand::Sum;

/// Repairs that wait at most: what a packet costs grows with their square. Where 15 % are lost, so
/// many of those over the same chunks wait for each other.
const MOST_REPAIRS: usize = 40;
/// How far below the highest TSN chunks are kept.
const REACH: u64 = 2 * MOST_SUMMANDS as u64;

/// A repair that waits for chunks of its sum.
#[derive(Clone, Debug)]
struct Waiting {
    first: u64,
    factors: Vec<u8>,
    /// The TSNs that have not come, the lowest first.
    lacks: Vec<u64>,
    repair: RepairChunk,
}

impl Waiting {
    const fn bytes(&self) -> u64 {
        RepairChunk::HEADER as u64 + self.repair.data.len() as u64
    }

    /// The factor of a chunk; zero if it is not in the sum.
    fn factor(&self, tsn: u64) -> u8 {
        let at = tsn.checked_sub(self.first).map(|at| at as usize);
        at.and_then(|at| self.factors.get(at)).copied().unwrap_or(0)
    }
}

/// Chunks and repairs from which lost chunks are restored. They take what the receive buffer has
/// room for beside data that wait, which always win (Sarwar 2014, Algorithm 4).
#[derive(Clone, Debug, Default)]
pub(super) struct Restorer {
    /// Chunks that have arrived; their content is shared with whoever else holds it.
    kept: BTreeMap<u64, DataChunk>,
    waiting: VecDeque<Waiting>,
    /// Chunks above this TSN wait for their turn, and count as data that do.
    settled: u64,
    /// Bytes of the others and of repairs.
    bytes: u64,
    /// Whether something has come that repairs wait for, or a repair, since the last attempt.
    is_changed: bool,
}

impl Restorer {
    /// Keeps a chunk that has arrived.
    pub(super) fn keep(&mut self, tsn: u64, chunk: &DataChunk) {
        let len = chunk.data.len() as u64;
        if self.kept.insert(tsn, chunk.clone()).is_none() && tsn <= self.settled {
            self.bytes += len;
        }
        for waiting in &mut self.waiting {
            if let Ok(at) = waiting.lacks.binary_search(&tsn) {
                waiting.lacks.remove(at);
                self.is_changed = true;
            }
        }
        while let Some((oldest, _)) = self.kept.first_key_value()
            && oldest + REACH < tsn
        {
            let oldest = *oldest;
            self.drop_oldest();
            self.drop_repairs(|waiting| waiting.factor(oldest) != 0);
        }
        self.drop_repairs(|waiting| waiting.lacks.is_empty());
    }

    /// Takes a repair, if it lacks a chunk and nothing of its sum is gone.
    pub(super) fn add(&mut self, first: u64, repair: RepairChunk, arrivals: &Arrivals) {
        let count = u64::from(repair.count);
        let is_far = first + count + REACH < arrivals.cumulative()
            || first + count > arrivals.highest() + REACH;
        if count == 0 || count > u64::from(MOST_SUMMANDS) || is_far {
            return;
        }
        let tsns = first..first + count;
        let is_gone = |tsn: u64| arrivals.has(tsn) && !self.kept.contains_key(&tsn);
        let lacks: Vec<u64> = tsns.clone().filter(|tsn| !arrivals.has(*tsn)).collect();
        if lacks.is_empty() || tsns.clone().any(is_gone) {
            return;
        }
        if self.waiting.len() == MOST_REPAIRS {
            self.drop_first_repair();
        }
        let Some(factors) = repair.factors.of(repair.id, count as usize) else { return };
        let waiting = Waiting { first, factors, lacks, repair };
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
        self.is_changed = true;
    }

    /// Makes room until what is kept takes no more than so many bytes; all TSNs up to `cumulative`
    /// have come. The least useful goes first (Algorithm 4): chunks that no repair waits for, then
    /// repairs, then chunks, each from the oldest on. Repairs whose chunks have all come are never
    /// there.
    pub(super) fn shrink(&mut self, cumulative: u64, room: u64) {
        let settled = self.settled.min(cumulative) + 1..cumulative + 1;
        self.bytes +=
            self.kept.range(settled).map(|(_, chunk)| chunk.data.len() as u64).sum::<u64>();
        self.settled = self.settled.max(cumulative);
        while self.bytes > room {
            let lowest = self.waiting.iter().map(|waiting| waiting.first).min();
            let oldest = self.kept.first_key_value().map(|(tsn, _)| *tsn);
            let oldest = oldest.filter(|tsn| *tsn <= cumulative);
            match (oldest, lowest) {
                (Some(oldest), lowest) if lowest.is_none_or(|lowest| oldest < lowest) => {
                    self.drop_oldest();
                }
                (_, Some(_)) => self.drop_first_repair(),
                (Some(_), None) => self.drop_oldest(),
                (None, None) => return,
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((tsn, chunk)) = self.kept.pop_first()
            && tsn <= self.settled
        {
            self.bytes -= chunk.data.len() as u64;
        }
    }

    fn drop_first_repair(&mut self) {
        if let Some(waiting) = self.waiting.pop_front() {
            self.bytes -= waiting.bytes();
        }
    }

    fn drop_repairs(&mut self, is_useless: impl Fn(&Waiting) -> bool) {
        let bytes = &mut self.bytes;
        self.waiting.retain(|waiting| {
            let drops = is_useless(waiting);
            *bytes -= if drops { waiting.bytes() } else { 0 };
            !drops
        });
    }

    /// The chunks that follow from what is there.
    pub(super) fn restore(&mut self, arrivals: &Arrivals) -> Vec<(u64, DataChunk)> {
        if !core::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        // What the peer has given up counts as arrived, and is not there.
        self.drop_repairs(|waiting| waiting.lacks.iter().any(|tsn| arrivals.has(*tsn)));
        // Factors are as good as random: so many chunks need as many repairs.
        let count = self.waiting.len();
        let useful: Vec<&Waiting> =
            self.waiting.iter().filter(|waiting| waiting.lacks.len() <= count).collect();
        let lacks = useful.iter().flat_map(|waiting| &waiting.lacks).copied();
        let mut unknown: Vec<u64> = lacks.collect();
        unknown.sort_unstable();
        unknown.dedup();
        let row = |waiting: &&Waiting| unknown.iter().map(|tsn| waiting.factor(*tsn)).collect();
        let rows: Vec<Vec<u8>> = useful.iter().map(row).collect();
        let solved = solve_sums(&rows);
        let is_used = |at: usize| solved.iter().any(|one| one.weights[at] != 0);
        let rests = useful.iter().enumerate();
        let rests: Vec<Option<Sum>> =
            rests.map(|(at, waiting)| is_used(at).then(|| self.rest(waiting))?).collect();
        let restored = solved.into_iter().filter_map(|solved| {
            let tsn = unknown[solved.summand];
            let weights = solved.weights.iter().enumerate().filter(|(_, weight)| **weight != 0);
            let longest = weights.clone().map(|(at, _)| useful[at].repair.data.len()).max()?;
            let mut sum = Sum::new(longest);
            for (at, weight) in weights {
                sum.add(rests[at].as_ref()?, *weight);
            }
            Some((tsn, sum.into_chunk(tsn as u32)?))
        });
        restored.collect()
    }

    /// What is left of a repair without the chunks that have come; `None` if a chunk is longer than
    /// the sum says.
    fn rest(&self, waiting: &Waiting) -> Option<Sum> {
        let mut rest = Sum::of_repair(&waiting.repair);
        for (tsn, factor) in (waiting.first..).zip(&waiting.factors) {
            if let Some(chunk) = self.kept.get(&tsn) {
                if chunk.data.len() > waiting.repair.data.len() {
                    return None;
                }
                rest.add_chunk(chunk, *factor);
            }
        }
        Some(rest)
    }
}
