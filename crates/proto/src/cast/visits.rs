use smallvec::SmallVec;

/// The visits of one block: the number of each, and the symbols sent up to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Visits {
    ends: SmallVec<[(u32, u64); 2]>,
}

/// Visits that are remembered. A report about an older one is answered as if nothing had been sent
/// since: too little of what was sent is credited then, and some symbols are sent in vain.
const MOST: usize = 16;

impl Visits {
    /// Notes that visit `number` sends `count` symbols.
    pub(super) fn add(&mut self, number: u32, count: u32) {
        let total = self.total() + u64::from(count);
        if self.ends.len() == MOST {
            self.ends.remove(0);
        }
        self.ends.push((number, total));
    }

    /// Symbols of all visits.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().map_or(0, |(_, total)| *total)
    }

    /// Symbols of the visits after visit `number`.
    pub(super) fn after(&self, number: u32) -> u64 {
        let before = self.ends.iter().rev().find(|(visit, _)| *visit <= number);
        let first = self.ends.first().map_or(0, |(_, total)| *total);
        match before {
            Some((_, total)) => self.total() - total,
            // The first of those remembered counts as a whole only if nothing is forgotten.
            None if self.ends.len() < MOST => self.total(),
            None => self.total() - first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_after_a_visit_are_those_of_later_ones() {
        let mut visits = Visits::default();
        assert_eq!(visits.after(0), 0);
        for (number, count) in [(3, 100), (7, 10), (9, 1)] {
            visits.add(number, count);
        }
        let after: Vec<u64> = [2, 3, 6, 7, 8, 9, 10].map(|visit| visits.after(visit)).into();
        assert_eq!(after, [111, 11, 11, 1, 1, 0, 0]);
        (10..40).for_each(|number| visits.add(number, 2));
        assert_eq!(visits.after(38), 2);
        assert_eq!(visits.total(), 171);
    }
}
