//! Which source sends which blocks of an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The blocks of an object that several sources send, each its own part.
///
/// A source that is free takes a part of what nobody sends yet: large parts at first, a block at
/// the end, so that all end together. When nothing is left it takes the end of what the source with
/// the most left has still to send; what a dead source was to send comes so, too. No block is asked
/// of more than two, unless nothing has come for long.
#[derive(Debug)]
pub struct SourcePlan {
    /// Blocks that no source was asked for, in their order.
    free: VecDeque<u32>,
    /// What each source was asked for and has not sent.
    asked: BTreeMap<usize, BTreeSet<u32>>,
    /// Blocks that are not there.
    lacking: BTreeSet<u32>,
}

impl SourcePlan {
    /// A plan for these blocks.
    pub fn new(blocks: impl IntoIterator<Item = u32>) -> Self {
        let lacking: BTreeSet<u32> = blocks.into_iter().collect();
        Self { free: lacking.iter().copied().collect(), asked: BTreeMap::new(), lacking }
    }

    /// Whether everything is there.
    pub fn is_complete(&self) -> bool {
        self.lacking.is_empty()
    }

    /// The blocks that `source` is to send next, of `sources` in all; none if there is nothing for
    /// it at present. `is_stuck`: nothing has come for long, so all who were asked may be dead.
    pub fn take(&mut self, source: usize, sources: usize, is_stuck: bool) -> Option<BTreeSet<u32>> {
        let count = (self.free.len() / (2 * sources.max(1))).max(1).min(self.free.len());
        let mut blocks: BTreeSet<u32> = self.free.drain(..count).collect();
        if blocks.is_empty() {
            blocks = self.last_of_the_slowest(source, is_stuck);
        }
        let asked = self.asked.entry(source).or_default();
        asked.extend(&blocks);
        (!blocks.is_empty()).then_some(blocks)
    }

    /// Half of what the source with the most left has still to send, from its end.
    fn last_of_the_slowest(&self, source: usize, is_stuck: bool) -> BTreeSet<u32> {
        let times = |block: &u32| self.asked.values().filter(|asked| asked.contains(block)).count();
        let may_take = |block: &&u32| is_stuck || times(block) == 1;
        let others = self.asked.iter().filter(|(other, _)| **other != source);
        let left = others
            .map(|(_, asked)| -> Vec<u32> { asked.iter().filter(may_take).copied().collect() });
        let most = left.max_by_key(Vec::len).unwrap_or_default();
        most[most.len() / 2..].iter().copied().collect()
    }

    /// Whether a source has still to send something that is not there.
    pub fn is_asked(&self, source: usize) -> bool {
        self.asked.get(&source).is_some_and(|asked| !asked.is_empty())
    }

    /// A block has come and is right; false if another source was sooner.
    pub fn complete(&mut self, block: u32) -> bool {
        for asked in self.asked.values_mut() {
            asked.remove(&block);
        }
        self.lacking.remove(&block)
    }

    /// A source sends nothing any more: others have to.
    pub fn give_back(&mut self, source: usize) {
        let asked = self.asked.remove(&source).unwrap_or_default();
        let is_elsewhere = |block: &u32| self.asked.values().any(|asked| asked.contains(block));
        let orphans = asked.into_iter().filter(|block| !is_elsewhere(block));
        let mut free: Vec<u32> = orphans.chain(self.free.drain(..)).collect();
        free.sort_unstable();
        self.free = free.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_shrink_towards_the_end_and_the_last_are_sent_twice() {
        let mut plan = SourcePlan::new(0..16);
        let sizes: Vec<_> = (0..2)
            .cycle()
            .map_while(|source| {
                (!plan.free.is_empty())
                    .then(|| plan.take(source, 2, false).map_or(0, |part| part.len()))
            })
            .collect();
        assert_eq!(sizes, [4, 3, 2, 1, 1, 1, 1, 1, 1, 1]);
        for block in 0..16 {
            if plan.asked[&0].contains(&block) {
                assert!(plan.complete(block));
                assert!(!plan.complete(block));
            }
        }
        // The first has nothing left: it takes half of what the second has.
        let left = plan.asked[&1].clone();
        let again = plan.take(0, 2, false).unwrap();
        assert!(again.is_subset(&left) && again.len() == left.len().div_ceil(2));
        assert!(again.contains(left.last().unwrap()));
        assert_eq!(plan.take(2, 3, false).map(|part| part.is_subset(&left)), Some(true));
    }

    #[test]
    fn who_is_left_gets_what_two_dead_sources_were_asked_for() {
        let mut plan = SourcePlan::new(0..1);
        assert!(plan.take(0, 3, false).is_some() && plan.take(1, 3, false).is_some());
        assert_eq!(plan.take(2, 3, false), None, "two were asked");
        assert_eq!(plan.take(2, 3, true), Some([0].into()), "nothing has come for long");
    }

    proptest! {
        /// Sources that send, stop and come in any order: every block comes, none is asked of more
        /// than two, and who is alone gets everything.
        #[test]
        fn every_block_comes_whoever_stops(
            blocks in 0u32..60,
            steps in prop::collection::vec((0usize..4, 0u8..4), 0..200),
        ) {
            let mut plan = SourcePlan::new(0..blocks);
            let mut there = 0;
            for (source, what) in steps {
                match what {
                    0 => plan.give_back(source),
                    1 => {
                        let next = plan.asked.get(&source).and_then(|asked| asked.first()).copied();
                        if let Some(block) = next {
                            there += u32::from(plan.complete(block));
                        }
                    }
                    _ => {
                        if !plan.is_asked(source) {
                            plan.take(source, 4, false);
                        }
                    }
                }
                for block in 0..blocks {
                    let count = plan.asked.values().filter(|asked| asked.contains(&block)).count();
                    prop_assert!(count <= 2);
                    let is_free = plan.free.contains(&block);
                    prop_assert!(!(is_free && count > 0));
                    prop_assert_eq!(plan.lacking.contains(&block), is_free || count > 0);
                }
            }
            (1..4).for_each(|source| plan.give_back(source));
            while !plan.is_complete() {
                if !plan.is_asked(0) {
                    prop_assert!(plan.take(0, 1, false).is_some());
                }
                let block = *plan.asked[&0].first().unwrap();
                there += u32::from(plan.complete(block));
            }
            prop_assert_eq!(there, blocks);
        }
    }
}
