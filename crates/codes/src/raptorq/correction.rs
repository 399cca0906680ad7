//! Few symbols are missing: encode with zeros in their place, and solve a small system for the
//! difference.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::encoding_plan::EncodingPlan;
use super::intermediate::Intermediate;
use super::plan::Sums;
use super::received::Received;
use super::replay::{Residuals, replay};
use super::shortcut::{self, Shortcut};
use super::solution::Solution;
use super::strips::{Inputs, strips};
use super::work_area::WorkArea;
use crate::lines::Lines;
use crate::matrix::Matrix;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// What repair symbols say of the difference that missing symbols make.
pub(crate) struct Correction {
    level: Level,
    plan: Arc<EncodingPlan>,
    /// The symbols that were missing at the beginning.
    missing: Vec<u32>,
    /// What each of them contributes to every intermediate symbol.
    units: Intermediate,
    /// For each equation, its coefficients of these symbols.
    matrix: Matrix,
    /// Repair symbols whose equations have been taken.
    taken: usize,
    ahead: Option<Ahead>,
}

/// What was done before all symbols were there.
struct Ahead {
    /// The intermediate symbols with zeros for what was missing.
    base: Intermediate,
    /// The right-hand side of each equation.
    values: Vec<u8>,
}

impl Correction {
    pub(crate) fn new(level: Level, plan: Arc<EncodingPlan>, received: &Received) -> Self {
        // A block whose symbols are the rows of an identity.
        let count = received.missing.len();
        let mut identity = vec![0; received.k as usize * count];
        for (index, esi) in received.missing.iter().enumerate() {
            identity[*esi as usize * count + index] = 1;
        }
        let inputs = Inputs { symbol_size: count, first: &identity, second: &[] };
        let units = Intermediate::new(level, &plan.plan, received.k, inputs);
        let (missing, matrix) = (received.missing.to_vec(), Matrix::zero(0, count));
        Self { level, plan, missing, units, matrix, taken: 0, ahead: None }
    }

    /// One that does what can be done before all symbols are there.
    pub(crate) fn ahead(level: Level, plan: Arc<EncodingPlan>, received: &Received) -> Self {
        let Received { k, symbol_size, ref data, .. } = *received;
        let inputs = Inputs { symbol_size, first: data, second: &[] };
        let base = Intermediate::new(level, &plan.plan, k, inputs);
        let ahead = Ahead { base, values: Vec::new() };
        Self { ahead: Some(ahead), ..Self::new(level, plan, received) }
    }

    /// Takes the repair symbols that came since, and source symbols that were missing.
    pub(crate) fn take(&mut self, received: &Received, late: &mut Vec<u32>) {
        let Received { symbol_size, esis, repairs, .. } = *received;
        let (esis, repairs) = (&esis[self.taken..], &repairs[self.taken * symbol_size..]);
        let Matrix { columns, cells } = &mut self.matrix;
        let start = cells.len();
        cells.resize(start + esis.len() * *columns, 0);
        self.units.symbols(esis.iter().copied(), &mut cells[start..]);
        self.taken = received.esis.len();
        let Some(Ahead { base, values }) = &mut self.ahead else { return };
        let start = values.len();
        values.resize(start + esis.len() * symbol_size, 0);
        base.symbols(esis.iter().copied(), &mut values[start..]);
        values[start..].iter_mut().zip(repairs).for_each(|(value, repair)| *value ^= repair);
        for esi in late.drain(..) {
            let row = cells.len();
            cells.resize(row + *columns, 0);
            if let Ok(index) = self.missing.binary_search(&esi) {
                cells[row + index] = 1;
            }
            values.extend_from_slice(&received.data[esi as usize * symbol_size..][..symbol_size]);
        }
    }

    /// Restores what is missing; false if symbols are lacking, and then nothing was changed.
    pub(crate) fn run(&mut self, received: Received, late: &mut Vec<u32>) -> bool {
        self.take(&received, late);
        let level = self.level;
        let Some(Ahead { values, .. }) = &self.ahead else { return self.run_late(received) };
        let Some(solution) = Solution::new(level, &self.matrix) else { return false };
        let Received { symbol_size, data, .. } = received;
        let inputs = Inputs { symbol_size, first: values, second: &[] };
        for strip in strips(symbol_size, 0) {
            inputs.whole_lines(strip, |inputs, offset| {
                solution.write(level, inputs, offset, &self.missing, strip, symbol_size, data);
            });
        }
        true
    }

    /// The same if nothing was done ahead.
    fn run_late(&self, received: Received) -> bool {
        let Received { k, symbol_size, data, missing, esis, repairs, .. } = received;
        let (level, plan) = (self.level, &self.plan.plan);
        let Some(solution) = self.solution(missing) else { return false };
        let echoes = || self.plan.echoes();
        let shortcut = Shortcut::new(plan, esis.len(), symbol_size.div_ceil(LINE), echoes);
        let shortcut = shortcut.as_ref();
        let mut program = Sums::default();
        for (index, esi) in esis.iter().enumerate() {
            let columns = plan.parameters.neighbours(plan.parameters.isi(k, *esi));
            shortcut::push(shortcut, &mut program, index as u16, index as u32, columns.all());
        }
        let mut work = WorkArea::unfilled(symbol_size, plan, shortcut);
        let mut sums = Lines::unfilled(esis.len() * work.widest);
        for strip in strips(symbol_size, plan.slots()) {
            let lines = strip.lines;
            let slots = work.slots(lines);
            let sources = Inputs { symbol_size, first: data, second: &[] };
            replay(level, plan, shortcut, sources, strip, slots);
            let inputs = Inputs { symbol_size, first: repairs, second: &[] };
            let out = &mut sums.get_mut()[..esis.len() * lines];
            inputs.whole_lines(strip, |inputs, offset| {
                level.run(Residuals { program: &program.0, slots, inputs, offset, lines, out });
            });
            let sums = Inputs::of_lines(&sums.get()[..esis.len() * lines], lines);
            solution.write(level, sums, 0, missing, strip, symbol_size, data);
        }
        true
    }

    /// How the symbols follow that are missing still; `None` if repair symbols are lacking.
    fn solution(&self, missing: &[u32]) -> Option<Solution> {
        if missing.len() == self.missing.len() {
            return Solution::new(self.level, &self.matrix);
        }
        let is_missing: Vec<bool> =
            self.missing.iter().map(|esi| missing.binary_search(esi).is_ok()).collect();
        let cells = self.matrix.cells.iter().zip(is_missing.iter().cycle());
        let cells = cells.filter(|(_, is_missing)| **is_missing).map(|(cell, _)| *cell).collect();
        Solution::new(self.level, &Matrix { columns: missing.len(), cells })
    }
}
