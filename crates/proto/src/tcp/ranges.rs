use std::collections::VecDeque;

use fontis_base::relax;

/// A set of positions in a stream, kept as disjoint ranges in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// Start, and end exclusive. Neighbours do not touch.
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range and tells `new` of every part of it that was not in the set, in ascending
    /// order.
    pub(super) fn insert(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // Most arrivals extend the last range or begin one behind it.
        let first = match self.ranges.back() {
            Some(&(_, last)) if last < start => self.ranges.len(),
            Some(&(low, _)) if low <= start => self.ranges.len() - 1,
            None => 0,
            _ => self.ranges.partition_point(|&(_, e)| e < start),
        };
        let (mut low, mut high, mut from, mut last) = (start, end, start, first);
        while let Some(&(s, e)) = self.ranges.get(last).filter(|(s, _)| *s <= end) {
            if from < s {
                new(from, s.min(end));
            }
            from = from.max(e);
            low = low.min(s);
            high = high.max(e);
            last += 1;
        }
        if from < end {
            new(from, end);
        }
        if first == last {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            if last - first > 1 {
                self.ranges.drain(first + 1..last);
            }
        }
    }

    /// Adds a range that begins in the last one or at its end, and goes beyond it, as most do;
    /// where what is new begins. `None`, and nothing is added, if it is another.
    pub(super) fn extend_last(&mut self, start: u64, end: u64) -> Option<u64> {
        let (low, high) = self.ranges.back_mut()?;
        let extends = *low <= start && start <= *high && *high < end;
        extends.then(|| core::mem::replace(high, end))
    }

    /// Forgets every position below `edge`.
    pub(super) fn remove_below(&mut self, edge: u64) {
        while let Some(range) = self.ranges.front_mut() {
            if range.1 <= edge {
                self.ranges.pop_front();
            } else {
                range.0 = range.0.max(edge);
                break;
            }
        }
        relax(&mut self.ranges);
    }

    /// The range that holds `position`.
    #[inline]
    pub(super) fn find(&self, position: u64) -> Option<(u64, u64)> {
        // Most that is asked for lies in the last range.
        match self.ranges.back() {
            Some(&(start, end)) if start <= position => (position < end).then_some((start, end)),
            Some(_) if self.ranges.len() > 1 => self.find_below(position),
            _ => None,
        }
    }

    fn find_below(&self, position: u64) -> Option<(u64, u64)> {
        let at = self.ranges.partition_point(|&(_, e)| e <= position);
        self.ranges.get(at).copied().filter(|(s, _)| *s <= position)
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// Ranges from the highest down.
    pub(super) fn descending(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_a_set_of_positions(
            operations in prop::collection::vec((0u64..60, 0u64..12, 0u8..8), 0..60)
        ) {
            let mut ranges = Ranges::default();
            let mut naive = BTreeSet::new();
            for (start, len, operation) in operations {
                if operation == 0 {
                    ranges.remove_below(start);
                    naive.retain(|position| *position >= start);
                } else {
                    let mut told = Vec::new();
                    let mut other = ranges.clone();
                    ranges.insert(start, start + len, |a, b| told.extend(a..b));
                    if let Some(from) = other.extend_last(start, start + len) {
                        prop_assert_eq!(&told, &(from..start + len).collect::<Vec<_>>());
                        prop_assert_eq!(&other.ranges, &ranges.ranges);
                    }
                    let new: Vec<u64> =
                        (start..start + len).filter(|position| naive.insert(*position)).collect();
                    prop_assert_eq!(told, new);
                }
                let mut all: Vec<u64> = ranges.descending().flat_map(|(a, b)| a..b).collect();
                all.sort_unstable();
                prop_assert!(all.iter().eq(naive.iter()));
                let touching = ranges.ranges.iter().zip(ranges.ranges.iter().skip(1));
                prop_assert!(touching.into_iter().all(|(a, b)| a.1 < b.0));
                for position in 0..75 {
                    let inside = ranges.find(position).is_some_and(|(a, b)| a <= position && position < b);
                    prop_assert_eq!(inside, naive.contains(&position));
                }
            }
        }
    }
}
