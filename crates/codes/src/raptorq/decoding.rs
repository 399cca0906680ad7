//! The source symbols that are missing, from those that arrived and from repair symbols.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::cache;
use super::encoding_plan::EncodingPlan;
use super::intermediate::{Intermediate, encode};
use super::parameters::{Family, Parameters};
use super::plan::{Plan, Sums};
use super::replay::{Correct, Gather, replay};
use super::rows::NO_INPUT;
use super::solver::Solver;
use super::strips::{Inputs, strips};
use super::template::Template;
use super::work_area::WorkArea;
use crate::gf256::Matrix;
use crate::lines::Lines;
use crate::simd::{LINE, Level};

/// What arrived of a block of `k` symbols.
pub(crate) struct Received<'a> {
    pub(crate) family: Family,
    pub(crate) k: u32,
    pub(crate) symbol_size: usize,
    /// The K source symbols; those that are missing are zero.
    pub(crate) data: &'a mut [u8],
    /// Which source symbols are missing.
    pub(crate) missing: &'a [u32],
    /// The repair symbols' identifiers.
    pub(crate) esis: &'a [u32],
    /// The repair symbols.
    pub(crate) repairs: &'a [u8],
}

/// A decoding that can go on when it lacked symbols. The missing source symbols must stay the same from one
/// [`run`](Self::run) to the next, and repair symbols only be added.
pub(crate) struct Decoding {
    level: Level,
    parameters: Parameters,
    way: Way,
    /// Repair symbols whose equations have been taken.
    taken: usize,
}

enum Way {
    /// Few symbols are missing: encode with zeros in their place, and solve a small system for the difference.
    Few { plan: Arc<EncodingPlan>, units: Intermediate, matrix: Matrix },
    /// Many are: solve for the intermediate symbols from what there is.
    Many(Box<Solver>),
}

impl Decoding {
    /// `None` if these symbols would take too long to decode: others must come. No set of symbols that was not
    /// chosen for it does.
    pub(crate) fn new(received: &Received) -> Option<Self> {
        let parameters = Parameters::of(received.family, received.k)?;
        let few = is_cheaper_by_correction(&parameters, received);
        Self::by(Level::detect(), few, received)
    }

    /// In one of the two ways.
    pub(crate) fn by(level: Level, few: bool, received: &Received) -> Option<Self> {
        let parameters = Parameters::of(received.family, received.k)?;
        let (way, taken) = if few {
            (Way::few(level, &parameters, received), 0)
        } else {
            (Way::many(parameters, received)?, received.esis.len())
        };
        Some(Self { level, parameters, way, taken })
    }

    /// At least so many more symbols are needed, as far as is known.
    pub(crate) fn lacking(&self) -> usize {
        match &self.way {
            Way::Few { matrix, .. } => {
                matrix.columns.saturating_sub(matrix.cells.len() / matrix.columns.max(1))
            }
            Way::Many(solver) => solver.missing(),
        }
    }

    /// Restores the missing symbols in place; false if symbols are lacking, and then nothing was changed.
    pub(crate) fn run(&mut self, received: Received) -> bool {
        let new = &received.esis[self.taken..];
        match &mut self.way {
            Way::Few { plan, units, matrix } => {
                let start = matrix.cells.len();
                matrix.cells.resize(start + new.len() * matrix.columns, 0);
                units.symbols(new.iter().copied(), &mut matrix.cells[start..]);
                self.taken = received.esis.len();
                let Some(inverse) = matrix.left_inverse(self.level) else { return false };
                correct(self.level, &plan.0, &inverse, received);
            }
            Way::Many(solver) => {
                for (index, esi) in (self.taken..).zip(new) {
                    solver.add(self.parameters.isi(received.k, *esi), received.k + index as u32);
                }
                self.taken = received.esis.len();
                let Some(plan) = solver.plan() else { return false };
                restore(self.level, &plan, solver.template(), received);
            }
        }
        true
    }
}

impl Way {
    fn few(level: Level, parameters: &Parameters, received: &Received) -> Self {
        let plan = cache::plan(parameters);
        // What each missing symbol contributes to every other: a block whose symbols are the rows of an identity.
        let count = received.missing.len();
        let mut identity = vec![0; received.k as usize * count];
        for (index, esi) in received.missing.iter().enumerate() {
            identity[*esi as usize * count + index] = 1;
        }
        let inputs = Inputs { symbol_size: count, first: &identity, second: &[] };
        let units = Intermediate::new(level, &plan.0, received.k, inputs);
        Self::Few { plan, units, matrix: Matrix::zero(0, count) }
    }

    fn many(parameters: Parameters, received: &Received) -> Option<Self> {
        let mut is_missing = vec![false; received.k as usize];
        for esi in received.missing {
            is_missing[*esi as usize] = true;
        }
        let sources =
            (0..received.k).filter(|esi| !is_missing[*esi as usize]).map(|esi| (esi, esi));
        let padding = (received.k..parameters.extended as u32).map(|isi| (isi, NO_INPUT));
        let isi = |esi| parameters.isi(received.k, esi);
        let repairs = received.esis.iter().zip(received.k..).map(|(esi, input)| (isi(*esi), input));
        let known: Vec<_> = sources.chain(padding).chain(repairs).collect();
        Some(Self::Many(Box::new(Solver::new(cache::template(&parameters), &known)?)))
    }
}

/// Whether solving for the missing symbols alone costs less than solving for the intermediate ones.
fn is_cheaper_by_correction(p: &Parameters, received: &Received) -> bool {
    let (missing, lines) = (received.missing.len(), received.symbol_size.div_ceil(LINE));
    let width = missing.div_ceil(LINE);
    // In units of about two nanoseconds.
    let unit = 20 * p.intermediate * width;
    let inversion = missing * missing * 2 * width;
    let product = missing * missing * lines;
    let solve = 65 * p.intermediate;
    unit + inversion + product < solve
}

fn restore(level: Level, plan: &Plan, template: &Template, received: Received) {
    let Received { symbol_size, data, missing, repairs, .. } = received;
    let mut program = Sums::default();
    for esi in missing {
        program.push(*esi as u16, NO_INPUT, template.sources.all(*esi as usize));
    }
    let mut work = WorkArea::unfilled(symbol_size, plan);
    for strip in strips(symbol_size, plan.slots()) {
        let slots = work.slots(strip.lines);
        replay(level, plan, Inputs { symbol_size, first: data, second: repairs }, strip, slots);
        level.run(Gather { program: &program.0, slots, strip, symbol_size, out: data });
    }
}

fn correct(level: Level, plan: &Plan, inverse: &Matrix, received: Received) {
    let Received { k, symbol_size, data, missing, esis, repairs, .. } = received;
    let p = &plan.parameters;
    let mut residuals = Sums::default();
    for (index, esi) in esis.iter().enumerate() {
        encode(&mut residuals, p, k, *esi, index as u16, index as u32);
    }
    let mut work = WorkArea::unfilled(symbol_size, plan);
    let mut scratch = Lines::zero((esis.len() + missing.len()) * work.widest);
    for strip in strips(symbol_size, plan.slots()) {
        let lines = strip.lines;
        let slots = work.slots(lines);
        replay(level, plan, Inputs { symbol_size, first: data, second: &[] }, strip, slots);
        let inputs = Inputs { symbol_size, first: repairs, second: &[] };
        let scratch = &mut scratch.get_mut()[..(esis.len() + missing.len()) * lines];
        inputs.whole_lines(strip, |inputs, offset| {
            let residuals = &residuals.0;
            level.run(Correct { residuals, slots, inputs, offset, lines, inverse, scratch });
        });
        let results = scratch[esis.len() * lines..].chunks_exact(lines);
        for (esi, result) in missing.iter().zip(results) {
            let start = *esi as usize * symbol_size + strip.offset;
            data[start..][..strip.len].copy_from_slice(&result.as_flattened()[..strip.len]);
        }
    }
}
