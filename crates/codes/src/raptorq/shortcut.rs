//! A replay's end for few sums of intermediate symbols.
//!
//! Before its last part a replay has the inactive columns, and the peeled ones as if these were
//! zero. What a peeled column lacks is a sum of inactive ones, its echo. To add them to all peeled
//! columns takes as long as the rest of the replay; a few sums of columns have echoes of their own,
//! which are looked up in tables of sums of inactive columns (the method of the four Russians).

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use super::echoes::Echoes;
use super::plan::{Plan, Sums};

/// Tables of all sums of some inactive columns, of the next ones, and so on, and the sums that use
/// them.
pub(crate) struct Shortcut<'a> {
    echoes: Cow<'a, Echoes>,
    /// For each column, whether the tables have it.
    is_inactive: Vec<bool>,
    /// Columns that a table serves: 1, 2, 4 or 8.
    bits: usize,
    /// The slot where the tables begin.
    first: usize,
}

impl<'a> Shortcut<'a> {
    /// The one for `count` sums of columns of so many lines; `None` if the whole replay is no more
    /// work.
    pub(crate) fn new(
        plan: &Plan,
        count: usize,
        lines: usize,
        echoes: impl FnOnce() -> Cow<'a, Echoes>,
    ) -> Option<Self> {
        let inactive = plan.dense.inactive().count();
        let (tables, slots) =
            (|bits| inactive.div_ceil(bits), |bits| inactive.div_ceil(bits) << bits);
        let work = |bits| slots(bits) + tables(bits) * count;
        let bits = [1, 2, 4, 8].into_iter().min_by_key(|bits| work(*bits))?;
        let first = plan.slots();
        // All in lines that are read; a word of an echo takes as long.
        let peeled = plan.parameters.intermediate - inactive;
        let whole = plan.backward.0.len().saturating_sub(4 * peeled);
        let pays = work(bits) * lines + whole * inactive.div_ceil(64) < whole * lines;
        let fits = first + slots(bits) <= 1 << 16;
        (pays && fits).then(|| {
            let echoes = echoes();
            let mut is_inactive = vec![false; plan.parameters.intermediate];
            echoes.inactive().iter().for_each(|column| is_inactive[usize::from(*column)] = true);
            Self { echoes, is_inactive, bits, first }
        })
    }

    /// The inactive columns, and how many of them a table serves.
    pub(crate) fn tables(&self) -> (&[u16], usize) {
        (self.echoes.inactive(), self.bits)
    }

    /// Slots that the tables take, behind those of the plan.
    pub(crate) fn slots(&self) -> usize {
        self.echoes.inactive().len().div_ceil(self.bits) << self.bits
    }

    /// Adds the instruction for the sum of these columns and an input.
    fn push(&self, program: &mut Sums, target: u16, input: u32, columns: &[u16]) {
        let mut echo = vec![0; self.echoes.words()];
        self.echoes.add(&mut echo, columns);
        let is_peeled = |column: &&u16| !self.is_inactive[usize::from(**column)];
        let peeled = columns.iter().filter(is_peeled).copied();
        let per_word = 64 / self.bits;
        let table = |index: usize| {
            let choice = echo[index / per_word] >> (index % per_word * self.bits);
            let choice = choice as usize & ((1 << self.bits) - 1);
            (choice > 0).then(|| (self.first + (index << self.bits) + choice) as u16)
        };
        let tables = (0..echo.len() * per_word).filter_map(table);
        let all: Vec<u16> = peeled.chain(tables).collect();
        program.push(target, input, &all);
    }
}

/// Adds the instruction for the sum of these columns and an input, at the end of the whole replay
/// or of a shorter one.
pub(crate) fn push(
    shortcut: Option<&Shortcut>,
    program: &mut Sums,
    target: u16,
    input: u32,
    columns: &[u16],
) {
    match shortcut {
        Some(shortcut) => shortcut.push(program, target, input, columns),
        None => program.push(target, input, columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;
    use crate::raptorq::encoding_plan::EncodingPlan;
    use crate::raptorq::intermediate::Intermediate;
    use crate::raptorq::replay;
    use crate::raptorq::rows::NO_INPUT;
    use crate::raptorq::strips::Inputs;
    use crate::raptorq::strips::strips;
    use crate::raptorq::work_area::WorkArea;
    use crate::simd::Level;

    /// Encoding symbols of a block, by a shortcut for so many.
    fn shortened(level: Level, plan: &Plan, inputs: Inputs, isis: &[u32]) -> Vec<u8> {
        let (symbol_size, strips) = (inputs.symbol_size, strips(inputs.symbol_size, plan.slots()));
        let shortcut = Shortcut::new(plan, isis.len(), 20, || Cow::Owned(plan.echoes()));
        let shortcut = shortcut.as_ref();
        assert!(shortcut.is_some(), "it pays for few symbols");
        let mut program = Sums::default();
        for (target, isi) in (0..).zip(isis) {
            let columns = plan.parameters.neighbours(*isi);
            push(shortcut, &mut program, target, NO_INPUT, columns.all());
        }
        let mut work = WorkArea::new(symbol_size, plan, shortcut);
        let mut out = vec![0; isis.len() * symbol_size];
        for strip in strips {
            let slots = work.slots(strip.lines);
            replay::replay(level, plan, shortcut, inputs, strip, slots);
            let (program, out) = (&program.0, &mut out);
            level.run(replay::Gather { program, slots, strip, symbol_size, out });
        }
        out
    }

    #[test]
    fn a_shortcut_leads_to_the_same_symbols() {
        let (raptorq, raptor10): (&[u32], &[u32]) =
            if cfg!(miri) { (&[101], &[]) } else { (&[101, 1002, 5000], &[100, 3000]) };
        let plans = raptorq.iter().map(|k| EncodingPlan::new(*k).unwrap());
        for plan in plans.chain(raptor10.iter().map(|k| EncodingPlan::raptor10(*k).unwrap())) {
            let plan = &plan.plan;
            let k = plan.parameters.extended as u32;
            let symbol_size = 300;
            let data: Vec<u8> =
                (0..u64::from(k) * symbol_size as u64).map(|i| mix(i) as u8).collect();
            let inputs = Inputs { symbol_size, first: &data, second: &[] };
            let isis: Vec<u32> = (0..k / 10).map(|i| if i < 3 { i } else { k + 5 * i }).collect();
            for level in Level::all() {
                let mut expected = vec![0; isis.len() * symbol_size];
                Intermediate::new(level, plan, k, inputs)
                    .symbols(isis.iter().copied(), &mut expected);
                assert!(shortened(level, plan, inputs, &isis) == expected, "K' = {k}, {level:?}");
            }
        }
    }

    #[test]
    fn many_symbols_and_short_ones_are_worth_the_whole_replay() {
        let plan = &EncodingPlan::new(1000).unwrap().plan;
        let pays = |count, lines| {
            Shortcut::new(plan, count, lines, || Cow::Owned(plan.echoes())).is_some()
        };
        assert!(pays(100, 20) && !pays(1000, 20) && !pays(100, 1));
    }
}
