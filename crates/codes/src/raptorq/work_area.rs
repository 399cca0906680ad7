use super::plan::Plan;
use super::strips::strips;
use crate::lines::Lines;
use crate::simd::LINE;

/// A thread keeps the last area that was [reused](WorkArea::reused), if it has no more lines: fetching fresh pages for each small block
/// takes as long as solving it.
#[cfg(feature = "std")]
const MOST_KEPT: usize = 1 << 14;

#[cfg(feature = "std")]
std::thread_local! {
    static KEPT: core::cell::Cell<Option<Lines>> = const { core::cell::Cell::new(None) };
}

/// Slots for one strip after another.
pub(crate) struct WorkArea {
    lines: Lines,
    slots: usize,
    /// Lines of the widest strip.
    pub(crate) widest: usize,
}

impl WorkArea {
    /// An area of zeros.
    pub(crate) fn new(symbol_size: usize, plan: &Plan) -> Self {
        Self::with(symbol_size, plan, Lines::zero)
    }

    /// An area with anything in it, for plans that write every slot before they read it, as a solver's do.
    pub(crate) fn reused(symbol_size: usize, plan: &Plan) -> Self {
        #[cfg(feature = "std")]
        return Self::with(symbol_size, plan, |len| {
            KEPT.take().filter(|kept| kept.len() >= len).unwrap_or_else(|| Lines::zero(len))
        });
        #[cfg(not(feature = "std"))]
        Self::new(symbol_size, plan)
    }

    /// Keeps the area for the next that is reused.
    pub(crate) fn keep(self) {
        #[cfg(feature = "std")]
        if self.lines.len() <= MOST_KEPT {
            KEPT.set(Some(self.lines));
        }
    }

    fn with(symbol_size: usize, plan: &Plan, lines: impl FnOnce(usize) -> Lines) -> Self {
        let slots = plan.slots() + plan.table_slots();
        let strips = strips(symbol_size, plan.slots());
        let widest = strips.map(|strip| strip.lines).max().unwrap_or(0);
        Self { lines: lines(slots * widest), slots, widest }
    }

    pub(crate) fn slots(&mut self, lines: usize) -> &mut [[u8; LINE]] {
        &mut self.lines.get_mut()[..self.slots * lines]
    }
}
