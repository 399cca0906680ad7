use super::plan::Plan;
use super::shortcut::Shortcut;
use super::strips::strips;
use crate::lines::Lines;
use crate::simd::lane::LINE;

/// Slots for one strip after another.
pub(crate) struct WorkArea {
    lines: Lines,
    slots: usize,
    /// Lines of the widest strip.
    pub(crate) widest: usize,
}

impl WorkArea {
    /// An area of zeros.
    pub(crate) fn new(symbol_size: usize, plan: &Plan, shortcut: Option<&Shortcut>) -> Self {
        Self::with(symbol_size, plan, shortcut, Lines::zero)
    }

    /// An area with anything in it, for plans that write every slot before they read it, as a
    /// solver's do.
    pub(crate) fn unfilled(symbol_size: usize, plan: &Plan, shortcut: Option<&Shortcut>) -> Self {
        Self::with(symbol_size, plan, shortcut, Lines::unfilled)
    }

    fn with(
        symbol_size: usize,
        plan: &Plan,
        shortcut: Option<&Shortcut>,
        lines: impl FnOnce(usize) -> Lines,
    ) -> Self {
        let tables = plan.table_slots().max(shortcut.map_or(0, Shortcut::slots));
        let slots = plan.slots() + tables;
        let strips = strips(symbol_size, plan.slots());
        let widest = strips.map(|strip| strip.lines).max().unwrap_or(0);
        Self { lines: lines(slots * widest), slots, widest }
    }

    pub(crate) fn slots(&mut self, lines: usize) -> &mut [[u8; LINE]] {
        &mut self.lines.get_mut()[..self.slots * lines]
    }
}
