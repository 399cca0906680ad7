use alloc::collections::VecDeque;

use crate::relax::relax;

/// A set of integers, kept as disjoint intervals in ascending order. It is made for sets that grow
/// mostly at their end: positions in a stream, bytes of a file.
#[derive(Clone, Debug, Default)]
pub struct IntervalSet {
    /// Start, and end exclusive. Neighbours do not touch.
    intervals: VecDeque<(u64, u64)>,
}

impl IntervalSet {
    /// Whether it holds no integer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The number of intervals.
    #[inline]
    pub fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// The number of integers.
    pub fn total(&self) -> u64 {
        self.intervals.iter().map(|(start, end)| end - start).sum()
    }

    /// Adds an interval and returns how many of its integers were not in the set.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let mut added = 0;
        self.insert_with(start, end, |from, to| added += to - from);
        added
    }

    /// Adds an interval and calls `new` with every part of it that was not in the set, in ascending
    /// order.
    #[inline]
    pub fn insert_with(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // Most arrivals extend the last interval or begin one behind it.
        let first = match self.intervals.back() {
            Some(&(_, last)) if last < start => self.intervals.len(),
            Some(&(low, _)) if low <= start => self.intervals.len() - 1,
            None => 0,
            _ => self.intervals.partition_point(|&(_, e)| e < start),
        };
        let (mut low, mut high, mut from, mut last) = (start, end, start, first);
        while let Some(&(s, e)) = self.intervals.get(last).filter(|(s, _)| *s <= end) {
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
            self.intervals.insert(first, (low, high));
        } else {
            self.intervals[first] = (low, high);
            if last - first > 1 {
                self.intervals.drain(first + 1..last);
            }
        }
    }

    /// Adds an interval that begins in the last one or at its end and goes beyond it, as most do;
    /// returns where the new part begins. `None`, and nothing is added, for any other interval.
    #[inline]
    pub fn extend_last(&mut self, start: u64, end: u64) -> Option<u64> {
        let (low, high) = self.intervals.back_mut()?;
        let extends = *low <= start && start <= *high && *high < end;
        extends.then(|| core::mem::replace(high, end))
    }

    /// Removes every integer below `edge`.
    #[inline]
    pub fn remove_below(&mut self, edge: u64) {
        while let Some(interval) = self.intervals.front_mut() {
            if interval.1 <= edge {
                self.intervals.pop_front();
            } else {
                interval.0 = interval.0.max(edge);
                break;
            }
        }
        relax(&mut self.intervals);
    }

    /// The interval that holds `value`.
    #[inline]
    pub fn find(&self, value: u64) -> Option<(u64, u64)> {
        // Most lookups lie in the last interval.
        match self.intervals.back() {
            Some(&(start, end)) if start <= value => (value < end).then_some((start, end)),
            Some(_) if self.intervals.len() > 1 => self.find_below(value),
            _ => None,
        }
    }

    fn find_below(&self, value: u64) -> Option<(u64, u64)> {
        let at = self.intervals.partition_point(|&(_, e)| e <= value);
        self.intervals.get(at).copied().filter(|(s, _)| *s <= value)
    }

    /// The least integer from `value` on that is not in the set.
    pub fn first_missing(&self, value: u64) -> u64 {
        self.find(value).map_or(value, |(_, end)| end)
    }

    /// The lowest interval.
    #[inline]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.intervals.front().copied()
    }

    /// Intervals from the highest down.
    #[inline]
    pub fn descending(&self) -> impl Iterator<Item = (u64, u64)> {
        self.intervals.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    proptest! {
        #[test]
        fn intervals_are_the_set_of_their_integers(
            operations in prop::collection::vec((0u64..60, 0u64..12, 0u8..8), 0..60)
        ) {
            let mut set = IntervalSet::default();
            let mut naive = BTreeSet::new();
            for (start, len, operation) in operations {
                if operation == 0 {
                    set.remove_below(start);
                    naive.retain(|value| *value >= start);
                } else {
                    let mut told = Vec::new();
                    let [mut extended, mut counted] = [set.clone(), set.clone()];
                    set.insert_with(start, start + len, |a, b| told.extend(a..b));
                    if let Some(from) = extended.extend_last(start, start + len) {
                        prop_assert_eq!(&told, &(from..start + len).collect::<Vec<_>>());
                        prop_assert_eq!(&extended.intervals, &set.intervals);
                    }
                    prop_assert_eq!(counted.insert(start, start + len), told.len() as u64);
                    prop_assert_eq!(&counted.intervals, &set.intervals);
                    let new: Vec<u64> =
                        (start..start + len).filter(|value| naive.insert(*value)).collect();
                    prop_assert_eq!(told, new);
                }
                let mut all: Vec<u64> = set.descending().flat_map(|(a, b)| a..b).collect();
                all.sort_unstable();
                prop_assert!(all.iter().eq(naive.iter()));
                prop_assert_eq!(set.total(), naive.len() as u64);
                prop_assert_eq!(set.is_empty(), naive.is_empty());
                prop_assert_eq!(set.first().map(|(start, _)| start), naive.first().copied());
                let neighbours = set.intervals.iter().zip(set.intervals.iter().skip(1));
                prop_assert!(neighbours.into_iter().all(|(a, b)| a.1 < b.0));
                let starts = naive.iter().filter(|v| **v == 0 || !naive.contains(&(**v - 1)));
                prop_assert_eq!(set.intervals(), starts.count());
                for value in 0..75 {
                    let inside = set.find(value).is_some_and(|(a, b)| a <= value && value < b);
                    prop_assert_eq!(inside, naive.contains(&value));
                    let missing = (value..).find(|v| !naive.contains(v));
                    prop_assert_eq!(Some(set.first_missing(value)), missing);
                }
            }
        }
    }
}
