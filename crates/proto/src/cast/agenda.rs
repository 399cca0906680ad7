//! Which block is visited next, and with how many symbols.

use std::collections::{BTreeMap, BTreeSet};

use fontis_codes::BlockShape;

use super::loss::symbols_to_send;
use super::packet::Planned;
use super::shape::CastShape;
use super::visits::Visits;

/// Repairs of a block that any receiver may need at its turn. One that lacks more is a *straggler*
/// for this block: it was away, came late or has a far worse path, and waits until the others have
/// theirs.
const STRAGGLER_FACTOR: f64 = 1.5;
const STRAGGLER_SHARE: f64 = 0.03;
const STRAGGLER_DEVIATIONS: f64 = 4.0;
/// Symbols that any receiver may cause before first visits, however few those were.
const SOON_ALWAYS: u64 = 256;
/// Standard deviations of symbols beyond the mean while others wait, and when nothing does: the
/// last repairs are worth a few symbols too many, because a further round costs a round trip.
const MARGIN: f64 = 0.0;
const LAST_MARGIN: f64 = 1.5;

/// The blocks of a cast, in the order in which they are visited: repairs that receivers wait for,
/// then the first visits, then the repairs of stragglers, those with the least lacking first.
#[derive(Debug)]
pub(super) struct Agenda {
    shape: CastShape,
    visits: Vec<Visits>,
    /// The next block that was never visited.
    pass: u32,
    /// Symbols to send of blocks.
    repairs: BTreeMap<u32, u32>,
    /// The same for stragglers.
    later: BTreeMap<u32, u32>,
    /// The same, by how many.
    later_order: BTreeSet<(u32, u32)>,
}

/// Who lacks something: the share of packets that it loses, the median share of all receivers, and
/// whether all that it lacks waits for the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) loss: f64,
    pub(super) usual: f64,
    pub(super) waits: bool,
}

/// Symbols more that a need causes: before first visits, and after all else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Caused {
    pub(super) soon: u32,
    pub(super) later: u32,
}

/// A visit: a block, and how many symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) block: u32,
    pub(super) count: u32,
}

/// The most symbols that a receiver may have caused of so many that were visited, while this share
/// is lost as a rule.
pub(super) fn most_caused(visited: u64, usual: f64) -> u64 {
    let share = STRAGGLER_FACTOR * usual / (1.0 - usual.min(0.95)) + STRAGGLER_SHARE;
    (visited as f64 * share) as u64 + SOON_ALWAYS
}

impl Agenda {
    pub(super) fn new(shape: CastShape) -> Self {
        Self {
            visits: vec![Visits::default(); shape.blocks() as usize],
            shape,
            pass: 0,
            repairs: BTreeMap::new(),
            later: BTreeMap::new(),
            later_order: BTreeSet::new(),
        }
    }

    pub(super) const fn pass(&self) -> u32 {
        self.pass
    }

    /// Whether nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.pass >= self.shape.blocks() && self.repairs.is_empty() && self.later.is_empty()
    }

    /// Takes what a receiver lacked of a block after visit `seen`. Returns how many symbols more
    /// will be sent for it.
    pub(super) fn need(&mut self, block: u32, lacking: u32, seen: u32, whose: Whose) -> Caused {
        let Whose { loss, usual, waits } = whose;
        if block >= self.pass {
            return Caused::default();
        }
        let k = self.shape.source_symbols(block);
        let lacking = lacking.min(k + 64);
        let is_last = self.pass >= self.shape.blocks();
        let margin = if is_last { LAST_MARGIN } else { MARGIN };
        let sent = self.visits[block as usize].after(seen);
        let count = u64::from(symbols_to_send(lacking, loss, margin)).saturating_sub(sent) as u32;
        if count == 0 {
            return Caused::default();
        }
        let k = f64::from(k);
        let chance = STRAGGLER_DEVIATIONS * (usual * k).sqrt() + 2.0;
        let most = k * (STRAGGLER_FACTOR * usual + STRAGGLER_SHARE).min(0.6) + chance;
        let in_head = block < self.shape.head_blocks();
        let is_straggler = waits || (!in_head && f64::from(lacking) > most);
        let planned = self.repairs.get(&block).copied().unwrap_or(0);
        if !is_straggler {
            self.repairs.insert(block, planned.max(count));
            return Caused { soon: count.saturating_sub(planned), later: 0 };
        }
        let waiting = self.later.get(&block).copied().unwrap_or(0);
        let count = count.saturating_sub(planned);
        if count > waiting {
            self.later_order.remove(&(waiting, block));
            self.later_order.insert((count, block));
            self.later.insert(block, count);
        }
        Caused { soon: 0, later: count.saturating_sub(waiting) }
    }

    /// The most symbols that one receiver may have caused before first visits. Whoever lacks what
    /// others lack comes nowhere near it; beyond it, all that it lacks waits.
    pub(super) fn most_soon(&self, usual: f64) -> u64 {
        most_caused(self.shape.symbols_of(0, self.pass), usual)
    }

    /// The next visit, which gets this number; `first` gives the symbols of a block's first visit.
    /// One for stragglers has at most `most`: others may have a need meanwhile.
    pub(super) fn next(
        &mut self,
        number: u32,
        most: u32,
        first: impl Fn(u32) -> u32,
    ) -> Option<Turn> {
        let (block, count) = if let Some(repair) = self.repairs.pop_first() {
            repair
        } else if self.pass < self.shape.blocks() {
            let block = self.pass;
            self.pass += 1;
            (block, first(self.shape.source_symbols(block)))
        } else {
            let (count, block) = self.later_order.pop_first()?;
            self.later.remove(&block);
            if count > most {
                self.later.insert(block, count - most);
                self.later_order.insert((count - most, block));
            }
            (block, count.min(most))
        };
        self.visits[block as usize].add(number, count);
        Some(Turn { block, count })
    }

    /// Symbol `number` of a visit that has been noted. When a block's symbols have all been sent,
    /// they begin anew.
    pub(super) fn symbol(&self, turn: Turn, number: u32) -> u32 {
        let before = self.visits[turn.block as usize].total() - u64::from(turn.count);
        let limit = self.shape.block(turn.block).map_or(1, BlockShape::esi_limit);
        ((before + u64::from(number)) % u64::from(limit)) as u32
    }

    /// Blocks whose repairs come before all else.
    pub(super) fn repairs(&self) -> usize {
        self.repairs.len()
    }

    /// The repairs to come, at most `most`.
    pub(super) fn planned(&self, most: usize) -> Vec<Planned> {
        let repairs = self.repairs.iter().map(|(block, count)| (*block, *count));
        let later = self.later_order.iter().map(|(count, block)| (*block, *count));
        let all = repairs.chain(later).take(most);
        all.map(|(block, count)| Planned { block, count }).collect()
    }

    /// Forgets what stragglers wait for: nobody is there any more.
    pub(super) fn forget_repairs(&mut self) {
        self.repairs.clear();
        self.later.clear();
        self.later_order.clear();
    }
}
