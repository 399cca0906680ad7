use super::plan::Plan;
use super::strips::strips;
use crate::lines::Lines;
use crate::simd::LINE;

/// Slots for one strip after another.
pub(crate) struct WorkArea {
    lines: Lines,
    slots: usize,
    /// Lines of the widest strip.
    pub(crate) widest: usize,
}

impl WorkArea {
    pub(crate) fn new(symbol_size: usize, plan: &Plan) -> Self {
        let slots = plan.slots() + plan.table_slots();
        let strips = strips(symbol_size, plan.slots());
        let widest = strips.map(|strip| strip.lines).max().unwrap_or(0);
        Self { lines: Lines::zero(slots * widest), slots, widest }
    }

    pub(crate) fn slots(&mut self, lines: usize) -> &mut [[u8; LINE]] {
        &mut self.lines.get_mut()[..self.slots * lines]
    }
}
