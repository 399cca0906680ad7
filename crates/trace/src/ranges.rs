use std::collections::BTreeMap;

/// A set of whole numbers as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Begin to end, exclusive.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `begin..end`; says how many of these numbers are new.
    pub(crate) fn add(&mut self, begin: u64, end: u64) -> u64 {
        if begin >= end {
            return 0;
        }
        let (mut low, mut high, mut had) = (begin, end, 0);
        let overlapped = |(from, to): (&u64, &u64)| (*from, *to);
        while let Some((from, to)) = self.ranges.range(..=high).next_back().map(overlapped) {
            if to < low {
                break;
            }
            had += to.min(end).saturating_sub(from.max(begin));
            low = low.min(from);
            high = high.max(to);
            self.ranges.remove(&from);
        }
        self.ranges.insert(low, high);
        end - begin - had
    }

    /// Where the range that begins at or before `at` and reaches it ends, or `at` itself.
    pub(crate) fn reach(&self, at: u64) -> u64 {
        match self.ranges.range(..=at).next_back() {
            Some((_, end)) if *end > at => *end,
            _ => at,
        }
    }

    /// Forgets what lies below `floor`.
    pub(crate) fn forget_below(&mut self, floor: u64) {
        while let Some((from, to)) = self.ranges.iter().next().map(|(from, to)| (*from, *to)) {
            if from >= floor {
                break;
            }
            self.ranges.remove(&from);
            if to > floor {
                self.ranges.insert(floor, to);
                break;
            }
        }
    }

    /// How many numbers are in it.
    pub(crate) fn total(&self) -> u64 {
        self.ranges.iter().map(|(from, to)| to - from).sum()
    }

    /// How many ranges it takes.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fontis_base::Stream;

    use super::*;

    #[test]
    fn ranges_are_the_set_of_their_numbers() {
        let mut stream = Stream::new(7, "ranges");
        for _ in 0..300 {
            let (mut ranges, mut naive) = (Ranges::default(), BTreeSet::new());
            for _ in 0..20 {
                let begin = stream.below(60);
                let end = begin + stream.below(12);
                let new = (begin..end).filter(|number| naive.insert(*number)).count() as u64;
                assert_eq!(ranges.add(begin, end), new);
                let at = stream.below(70);
                let reach = (at..).find(|number| !naive.contains(number)).expect("there is an end");
                assert_eq!(ranges.reach(at), reach);
                if stream.below(5) == 0 {
                    let floor = stream.below(30);
                    ranges.forget_below(floor);
                    naive.retain(|number| *number >= floor);
                }
                assert_eq!(ranges.total(), naive.len() as u64);
            }
        }
    }
}
