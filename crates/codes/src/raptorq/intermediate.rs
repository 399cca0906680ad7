use alloc::vec::Vec;
use core::ops::Range;

use super::cost;
use super::direct;
use super::encoding_plan::EncodingPlan;
use super::parameters::Parameters;
use super::plan::{Plan, Sums};
use super::replay::{Gather, replay};
use super::rows::NO_INPUT;
use super::shortcut::{self, Shortcut};
use super::strips::{Inputs, Strip, strips};
use super::work_area::WorkArea;
use crate::lines::Lines;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// Symbols that are made by one list of instructions, which number them with 16 bits.
const TARGETS: usize = 1 << 15;

/// The intermediate symbols of a block, from which every encoding symbol follows.
pub(crate) struct Intermediate {
    parameters: Parameters,
    k: u32,
    symbol_size: usize,
    /// Slots of a replay: what decides how symbols are cut into strips.
    slots: usize,
    /// Strip after strip, in each the L symbols one after another.
    lines: Lines,
    level: Level,
}

impl Intermediate {
    /// Computes them from what a plan takes.
    pub(crate) fn new(level: Level, plan: &Plan, k: u32, inputs: Inputs) -> Self {
        let parameters = plan.parameters;
        let (symbol_size, slots) = (inputs.symbol_size, plan.slots());
        let all: Vec<_> = strips(symbol_size, slots).collect();
        let widest = all.iter().map(|strip| strip.lines).max().unwrap_or(0);
        let total: usize = all.iter().map(|strip| strip.lines).sum();
        // What a replay needs beyond the L symbols lies where the next strip will be, and behind
        // the last.
        let more = slots - parameters.intermediate + plan.table_slots();
        let mut lines = Lines::zero(total * parameters.intermediate + widest * more);
        let mut rest = lines.get_mut();
        for strip in all {
            replay(
                level,
                plan,
                None,
                inputs,
                strip,
                &mut rest[..(parameters.intermediate + more) * strip.lines],
            );
            rest = &mut rest[parameters.intermediate * strip.lines..];
        }
        Self { parameters, k, symbol_size, slots, lines, level }
    }

    /// Writes encoding symbols, one after another, into `out`, which must have room for just these.
    pub(crate) fn symbols(&self, esis: impl IntoIterator<Item = u32>, out: &mut [u8]) {
        let mut program = Sums::default();
        let mut esis = esis.into_iter();
        for out in out.chunks_mut(self.symbol_size * TARGETS) {
            program.0.clear();
            let count = out.len() / self.symbol_size;
            for (target, esi) in esis.by_ref().take(count).enumerate() {
                let columns = self.parameters.neighbours(self.parameters.isi(self.k, esi));
                program.push(target as u16, NO_INPUT, columns.all());
            }
            let mut lines = self.lines.get();
            for strip in strips(self.symbol_size, self.slots) {
                let slots = &lines[..self.parameters.intermediate * strip.lines];
                self.gather(&program, slots, strip, out);
                lines = &lines[slots.len()..];
            }
        }
    }

    fn gather(&self, program: &Sums, slots: &[[u8; 64]], strip: Strip, out: &mut [u8]) {
        let symbol_size = self.symbol_size;
        self.level.run(Gather { program: &program.0, slots, strip, symbol_size, out });
    }
}

/// Writes encoding symbols into `out`, as [`Intermediate::symbols`] does, but keeps no intermediate
/// symbols: it takes no more memory than one strip of them, and no time to write the others.
pub(crate) fn encode_once(
    level: Level,
    plan: &EncodingPlan,
    k: u32,
    inputs: Inputs,
    esis: Range<u32>,
    out: &mut [u8],
) {
    let symbol_size = inputs.symbol_size;
    if cost::is_direct(level, &plan.plan.parameters, esis.len(), symbol_size) {
        return direct::encode(level, plan, k, inputs, esis, out);
    }
    let (echoes, plan) = (|| plan.echoes(), &plan.plan);
    let shortcut = Shortcut::new(plan, esis.len(), symbol_size.div_ceil(LINE), echoes);
    let shortcut = shortcut.as_ref();
    let mut programs = Vec::new();
    for esi in esis {
        // Instructions number their targets with 16 bits.
        if programs.last().is_none_or(|(_, count)| *count == TARGETS) {
            programs.push((Sums::default(), 0));
        }
        let (program, count) = programs.last_mut().expect("one was just added");
        let columns = plan.parameters.neighbours(plan.parameters.isi(k, esi));
        shortcut::push(shortcut, program, *count as u16, NO_INPUT, columns.all());
        *count += 1;
    }
    let mut work = WorkArea::new(symbol_size, plan, shortcut);
    for strip in strips(symbol_size, plan.slots()) {
        let slots = work.slots(strip.lines);
        replay(level, plan, shortcut, inputs, strip, slots);
        for ((program, _), out) in programs.iter().zip(out.chunks_mut(TARGETS * symbol_size)) {
            level.run(Gather { program: &program.0, slots, strip, symbol_size, out });
        }
    }
}
