//! A set of byte offsets, kept as disjoint ranges.

use std::collections::BTreeMap;

/// The ranges of an object's bytes that are there.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// End by start; ranges neither overlap nor touch.
    ends: BTreeMap<u64, u64>,
    covered: u64,
}

impl Ranges {
    /// Adds `start..end`.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.ends.range(..=end).next_back() {
            if to < start {
                break;
            }
            (start, end) = (start.min(from), end.max(to));
            self.covered -= to - from;
            self.ends.remove(&from);
        }
        self.covered += end - start;
        self.ends.insert(start, end);
    }

    /// Bytes in the set.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_cover_what_a_bitmap_covers(
            inserts in prop::collection::vec((0u64..60, 0u64..20), 0..30),
        ) {
            let (mut ranges, mut bitmap) = (Ranges::default(), [false; 80]);
            for (start, len) in inserts {
                ranges.insert(start, start + len);
                bitmap[start as usize..(start + len) as usize].fill(true);
                prop_assert_eq!(ranges.covered(), bitmap.iter().filter(|set| **set).count() as u64);
                let runs = bitmap.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
                prop_assert_eq!(ranges.ends.len(), runs);
            }
        }
    }
}
