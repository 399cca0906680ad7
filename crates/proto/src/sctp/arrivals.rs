//! The TSNs that have arrived.

use fontis_base::IntervalSet;
use smallvec::SmallVec;

use super::number::expand;

/// How far above the cumulative TSN a chunk may be: gap blocks reach no farther.
const FARTHEST: u64 = u16::MAX as u64;
/// The most gaps. Each makes those that come later dearer; so many are none that a path makes.
const MOST_GAPS: usize = 4096;
/// The most TSNs that are reported as duplicates in a SACK.
const MOST_DUPLICATES: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// All TSNs up to this one have arrived or are given up.
    cumulative: u64,
    above: IntervalSet,
    duplicates: SmallVec<[u32; 4]>,
}

impl Arrivals {
    /// Waits for the TSN `first`.
    pub(super) fn new(first: u64) -> Self {
        Self { cumulative: first - 1, above: IntervalSet::default(), duplicates: SmallVec::new() }
    }

    pub(super) const fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// The TSN that is this one on the wire.
    pub(super) const fn expand(&self, wire: u32) -> u64 {
        expand(self.cumulative, wire)
    }

    pub(super) fn has(&self, tsn: u64) -> bool {
        tsn <= self.cumulative || self.above.find(tsn).is_some()
    }

    pub(super) const fn is_too_far(&self, tsn: u64) -> bool {
        tsn > self.cumulative + FARTHEST
    }

    /// Whether a TSN that is missing would make another gap, of which there are enough.
    pub(super) fn is_one_gap_too_many(&self, tsn: u64) -> bool {
        self.above.intervals() >= MOST_GAPS && !self.has(tsn - 1) && !self.has(tsn + 1)
    }

    /// The highest TSN that has arrived.
    pub(super) fn highest(&self) -> u64 {
        self.above.descending().next().map_or(self.cumulative, |(_, end)| end - 1)
    }

    /// Whether TSNs are missing.
    pub(super) fn has_gaps(&self) -> bool {
        !self.above.is_empty()
    }

    pub(super) fn insert(&mut self, tsn: u64) {
        self.above.insert(tsn, tsn + 1);
        self.advance(self.cumulative);
    }

    pub(super) fn note_duplicate(&mut self, tsn: u64) {
        if self.duplicates.len() < MOST_DUPLICATES {
            self.duplicates.push(tsn as u32);
        }
    }

    /// All TSNs up to this one are given up, if they have not arrived.
    pub(super) fn advance(&mut self, to: u64) {
        self.cumulative = self.cumulative.max(to);
        self.cumulative = self.above.first_missing(self.cumulative + 1) - 1;
        self.above.remove_below(self.cumulative + 1);
    }

    /// The lowest gap blocks, `most` at most, as offsets.
    pub(super) fn gaps(&self, most: usize) -> SmallVec<[(u16, u16); 4]> {
        let all = self.above.intervals();
        let offset = |tsn: u64| (tsn - self.cumulative).min(FARTHEST) as u16;
        let kept = self.above.descending().skip(all.saturating_sub(most));
        let mut gaps: SmallVec<[(u16, u16); 4]> =
            kept.map(|(start, end)| (offset(start), offset(end - 1))).collect();
        gaps.reverse();
        gaps
    }

    pub(super) fn take_duplicates(&mut self) -> SmallVec<[u32; 4]> {
        core::mem::take(&mut self.duplicates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_offsets_from_what_arrived_without_one() {
        let mut arrivals = Arrivals::new(100);
        for tsn in [100, 102, 103, 106] {
            arrivals.insert(tsn);
        }
        assert_eq!((arrivals.cumulative(), arrivals.highest()), (100, 106));
        assert_eq!(arrivals.gaps(9).as_slice(), [(2, 3), (6, 6)]);
        assert_eq!(arrivals.gaps(1).as_slice(), [(2, 3)]);
        arrivals.insert(101);
        assert_eq!((arrivals.cumulative(), arrivals.has_gaps()), (103, true));
        arrivals.advance(105);
        assert_eq!((arrivals.cumulative(), arrivals.has_gaps()), (106, false));
    }
}
