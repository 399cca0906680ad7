use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A set of identifiers of repair symbols. Those near k, which are usual, cost a bit each, others a
/// place in a tree. Its memory grows with the number of identifiers, whichever they are.
#[derive(Default)]
pub(crate) struct EsiSet {
    near: Vec<u64>,
    far: BTreeSet<u32>,
    count: usize,
}

/// Words of bits from the beginning; each identifier allows another.
const LEAST_WORDS: usize = 16;

impl EsiSet {
    /// Adds the identifier `beyond` places beyond k; false if it was there.
    pub(crate) fn insert(&mut self, beyond: u32) -> bool {
        let (word, bit) = (beyond as usize / 64, 1 << (beyond % 64));
        if word >= self.near.len() {
            if word >= LEAST_WORDS + self.count {
                let is_new = self.far.insert(beyond);
                self.count += usize::from(is_new);
                return is_new;
            }
            self.near.resize(word + 1, 0);
        }
        // It may have come when it was far.
        let is_new =
            self.near[word] & bit == 0 && (self.far.is_empty() || !self.far.contains(&beyond));
        self.near[word] |= bit;
        self.count += usize::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_new_once() {
        let mut set = EsiSet::default();
        let far = 64 * LEAST_WORDS as u32;
        for esi in [0, 63, 64, far - 1, far + 1000, u32::MAX, 7].into_iter().chain(far..far + 1000)
        {
            assert!(set.insert(esi), "{esi}");
            assert!(!set.insert(esi), "{esi}");
        }
        assert!(!set.insert(far + 1000));
    }

    #[test]
    fn one_identifier_costs_a_place_wherever_it_is() {
        let mut set = EsiSet::default();
        set.insert(1 << 23);
        assert_eq!(set.near.capacity(), 0);
    }
}
