use super::oti::FecOti;
use super::plan::FecPlan;

/// Symbol `esi` of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u32,
    pub(super) esi: u32,
    /// The first of the blocks that take turns: those before it are over in this round.
    pub(super) first: u32,
    /// Whether it is the last one of the object in this round.
    pub(super) is_last: bool,
}

/// The order of an object's symbols in a round: blocks take turns, so that a burst of losses takes
/// little of each.
#[derive(Clone, Debug)]
pub(super) struct SymbolOrder {
    oti: FecOti,
    plan: FecPlan,
    round: u32,
    /// The blocks that take turns, the next of them, and how often all had one.
    first: u32,
    end: u32,
    within: u32,
    turn: u32,
}

/// Blocks that take turns at most, and bytes of them, which a sender keeps in memory.
const BLOCKS: u32 = 16;
const BYTES: u64 = 64 << 20;

impl SymbolOrder {
    pub(super) fn new(oti: FecOti, plan: FecPlan, round: u32) -> Self {
        let mut order = Self { oti, plan, round, first: 0, end: 0, within: 0, turn: 0 };
        order.begin(0);
        order
    }

    fn begin(&mut self, first: u32) {
        let bytes = self.oti.block(first).map_or(1, |block| block.range.end - block.range.start);
        let together = (BYTES / bytes.max(1)).clamp(1, u64::from(BLOCKS)) as u32;
        let end = first.saturating_add(together).min(self.oti.blocks());
        (self.first, self.end, self.within, self.turn) = (first, end, first, 0);
    }

    /// Symbols of a block in a round.
    fn per_round(&self, block: u32) -> u32 {
        self.oti.block(block).map_or(0, |block| self.plan.symbols(&self.oti, &block))
    }
}

impl Iterator for SymbolOrder {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        while self.within < self.end {
            let (block, turn) = (self.within, self.turn);
            let count = self.per_round(block);
            self.within += 1;
            if self.within == self.end {
                (self.within, self.turn) = (self.first, turn + 1);
            }
            if turn < count {
                // Later rounds send other symbols, as long as there are some.
                let esi = u64::from(self.round) * u64::from(count) + u64::from(turn);
                let esi = (esi % u64::from(self.oti.max_symbols().max(1))) as u32;
                let esi = if self.oti.scheme().fountain().is_some() { esi } else { turn };
                // Blocks behind this one may have had their last symbol a turn ago.
                let is_last = self.end == self.oti.blocks()
                    && turn + 1 == self.per_round(self.first)
                    && (block + 1..self.end).all(|block| self.per_round(block) <= turn);
                return Some(Place { block, esi, first: self.first, is_last });
            }
            // The first block of those in turn has the most symbols.
            if turn >= self.per_round(self.first) {
                self.begin(self.end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::oti::FecScheme;
    use super::*;

    #[test]
    fn every_symbol_of_a_round_comes_once_and_blocks_take_turns() {
        for scheme in FecScheme::ALL {
            let repair = if scheme == FecScheme::NoCode { 0 } else { 20 };
            let plan = FecPlan::new(scheme, 100, Some(10), repair).unwrap();
            let oti = plan.oti(100 * 217).unwrap();
            let all: Vec<_> = SymbolOrder::new(oti, plan, 0).collect();
            let distinct: BTreeSet<_> = all.iter().map(|place| (place.block, place.esi)).collect();
            assert_eq!(distinct.len(), all.len(), "{scheme}");
            let count = |number| plan.symbols(&oti, &oti.block(number).unwrap()) as usize;
            assert_eq!(all.len(), (0..oti.blocks()).map(count).sum::<usize>(), "{scheme}");
            let turns: Vec<_> = all[..16].iter().map(|place| place.block).collect();
            assert_eq!(turns, (0..16).collect::<Vec<_>>(), "{scheme}");
            let last: Vec<_> = all.iter().filter(|place| place.is_last).collect();
            assert_eq!(last, [all.last().unwrap()], "{scheme}");
        }
    }

    #[test]
    fn a_later_round_of_a_fountain_has_other_symbols() {
        let plan = FecPlan::new(FecScheme::RaptorQ, 100, Some(10), 20).unwrap();
        let oti = plan.oti(1000).unwrap();
        let of = |round| SymbolOrder::new(oti, plan, round).map(|place| place.esi);
        assert!(of(0).eq(0..12) && of(1).eq(12..24));
    }
}
