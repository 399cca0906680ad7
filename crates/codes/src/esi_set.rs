use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A set of identifiers of repair symbols. Those near k, which are usual, cost a bit each, others a
/// place in a tree.
#[derive(Default)]
pub(crate) struct EsiSet {
    near: Vec<u64>,
    far: BTreeSet<u32>,
}

/// Bits for at most so many identifiers beyond k, whatever comes: 32 KiB.
const NEAR: u32 = 1 << 18;

impl EsiSet {
    /// Adds the identifier `beyond` places beyond k; false if it was there.
    pub(crate) fn insert(&mut self, beyond: u32) -> bool {
        if beyond >= NEAR {
            return self.far.insert(beyond);
        }
        let (word, bit) = (beyond as usize / 64, 1 << (beyond % 64));
        if word >= self.near.len() {
            self.near.resize(word + 1, 0);
        }
        let is_new = self.near[word] & bit == 0;
        self.near[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_new_once() {
        let mut set = EsiSet::default();
        for esi in [0, 63, 64, NEAR - 1, NEAR, u32::MAX] {
            assert!(set.insert(esi));
            assert!(!set.insert(esi));
        }
    }
}
