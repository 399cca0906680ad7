use core::ops::Range;

use rangemap::RangeSet;

/// Numbers that count from zero and are over: mostly all below a floor, and few beyond it.
#[derive(Debug, Default)]
pub(super) struct Over {
    floor: u32,
    beyond: RangeSet<u32>,
}

impl Over {
    /// The first number that is not over.
    pub(super) const fn floor(&self) -> u32 {
        self.floor
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        number < self.floor || self.beyond.contains(&number)
    }

    /// All in this range are over. The effort does not depend on how many they are.
    pub(super) fn insert(&mut self, numbers: Range<u32>) {
        if numbers.start > self.floor {
            self.beyond.insert(numbers);
            return;
        }
        self.floor = self.floor.max(numbers.end);
        while let Some(range) = self.beyond.first().cloned() {
            if range.start > self.floor {
                break;
            }
            self.floor = self.floor.max(range.end);
            self.beyond.remove(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_inserted_is_over_and_nothing_else(
            ranges in prop::collection::vec((0u32..60, 1u32..8), 0..40)
        ) {
            let (mut over, mut set) = (Over::default(), BTreeSet::new());
            for (start, length) in ranges {
                over.insert(start..start + length);
                set.extend(start..start + length);
            }
            let floor = (0..).find(|number| !set.contains(number));
            prop_assert_eq!(Some(over.floor()), floor);
            for number in 0..80 {
                prop_assert_eq!(over.contains(number), set.contains(&number));
            }
        }
    }
}
