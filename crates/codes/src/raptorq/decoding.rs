//! The source symbols that are missing, from those that arrived and from repair symbols.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::cache;
use super::correction::Correction;
use super::cost::{Kind, Loss};
use super::direct;
use super::encoding_plan::EncodingPlan;
use super::parameters::{Family, Parameters};
use super::plan::{Plan, Sums};
use super::received::Received;
use super::replay::{Gather, replay};
use super::rows::NO_INPUT;
use super::shortcut::{self, Shortcut};
use super::solver::Solver;
use super::strips::{Inputs, strips};
use super::work_area::WorkArea;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// A decoding that can go on when it lacked symbols: further repair symbols may come, and source
/// symbols that were missing ([`came`](Self::came)).
pub(crate) struct Decoding {
    level: Level,
    parameters: Parameters,
    way: Method,
    /// Source symbols that came since it began and that nothing has been made of.
    late: Vec<u32>,
}

enum Method {
    /// Very few symbols are missing: the repair symbols are sums of source symbols, by their
    /// coefficients.
    Direct(Arc<EncodingPlan>),
    Correction(Box<Correction>),
    /// Many are: solve for the intermediate symbols from what there is. With the number of repair
    /// symbols that the solver knows.
    Solve(Box<Solver>, usize),
}

impl Decoding {
    /// `None` if these symbols would take too long to decode: others must come. No set of symbols
    /// that was not chosen for it does.
    pub(crate) fn new(received: &Received) -> Option<Self> {
        let level = Level::detect();
        let parameters = Parameters::of(received.family, received.k)?;
        let loss = Loss {
            level,
            parameters: &parameters,
            symbol_size: received.symbol_size,
            missing: received.missing.len(),
            repairs: received.esis.len(),
        };
        Self::by(level, loss.cheapest(), received)
    }

    /// In one of the ways.
    pub(crate) fn by(level: Level, kind: Kind, received: &Received) -> Option<Self> {
        let parameters = Parameters::of(received.family, received.k)?;
        let way = match kind {
            Kind::Direct => Method::Direct(cache::plan(&parameters)),
            Kind::Correction => {
                let plan = cache::plan(&parameters);
                Method::Correction(Box::new(Correction::new(level, plan, received)))
            }
            Kind::Solve => {
                Method::Solve(Box::new(solver(parameters, received)?), received.esis.len())
            }
        };
        Some(Self { level, parameters, way, late: Vec::new() })
    }

    /// One that begins before all symbols are there.
    pub(crate) fn ahead(received: &Received, beginning: Beginning) -> Option<Self> {
        let level = Level::detect();
        let parameters = Parameters::of(received.family, received.k)?;
        match beginning {
            Beginning::Solve => Self::by(level, Kind::Solve, received),
            Beginning::Correction => {
                let correction = Correction::ahead(level, cache::plan(&parameters), received);
                let way = Method::Correction(Box::new(correction));
                Some(Self { level, parameters, way, late: Vec::new() })
            }
        }
    }

    /// A source symbol came.
    pub(crate) fn came(&mut self, esi: u32) {
        self.late.push(esi);
    }

    /// At least so many more symbols are needed, as far as is known.
    pub(crate) fn lacking(&self) -> usize {
        match &self.way {
            Method::Direct(_) | Method::Correction(_) => 1,
            Method::Solve(solver, _) => solver.missing(),
        }
    }

    /// Makes of the symbols that came what can be made of them.
    pub(crate) fn advance(&mut self, received: &Received) {
        match &mut self.way {
            Method::Direct(_) => {}
            Method::Correction(correction) => correction.take(received, &mut self.late),
            Method::Solve(solver, taken) => {
                self.late.drain(..).for_each(|esi| solver.add(esi, esi));
                for (input, esi) in (received.k..).zip(received.esis).skip(*taken) {
                    solver.add(self.parameters.isi(received.k, *esi), input);
                }
                *taken = received.esis.len();
            }
        }
    }

    /// Restores the missing symbols in place; false if symbols are lacking, and then nothing was
    /// changed.
    pub(crate) fn run(&mut self, received: Received) -> bool {
        self.advance(&received);
        if let Method::Direct(plan) = &self.way {
            // More symbols than have a place in a line have come if somebody chose them so that
            // they lack rank.
            if received.esis.len() <= LINE {
                return direct::decode(self.level, plan, received);
            }
            let correction = Correction::new(self.level, Arc::clone(plan), &received);
            self.way = Method::Correction(Box::new(correction));
        }
        match &mut self.way {
            Method::Direct(_) => false,
            Method::Correction(correction) => correction.run(received, &mut self.late),
            Method::Solve(solver, _) => {
                let Some(plan) = solver.plan() else { return false };
                restore(self.level, &plan, solver, received);
                true
            }
        }
    }
}

/// What can be begun before all symbols are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    Correction,
    Solve,
}

impl Beginning {
    /// What is worth beginning when `missing` source symbols are missing and `needed` symbols are
    /// still to come.
    pub(crate) fn of(
        family: Family,
        k: u32,
        symbol_size: usize,
        missing: usize,
        needed: usize,
    ) -> Option<Self> {
        let parameters = &Parameters::of(family, k)?;
        let level = Level::detect();
        let loss = Loss { level, parameters, symbol_size, missing, repairs: missing };
        if loss.is_corrected_ahead() {
            return Some(Self::Correction);
        }
        // The fewer equations there are, the more columns are set aside.
        let is_soon = needed <= 1 + parameters.extended / 256;
        (is_soon && loss.cheapest() == Kind::Solve).then_some(Self::Solve)
    }
}

fn solver(parameters: Parameters, received: &Received) -> Option<Solver> {
    let mut is_missing = vec![false; received.k as usize];
    for esi in received.missing {
        is_missing[*esi as usize] = true;
    }
    let sources = (0..received.k).filter(|esi| !is_missing[*esi as usize]).map(|esi| (esi, esi));
    let padding = (received.k..parameters.extended as u32).map(|isi| (isi, NO_INPUT));
    let isi = |esi| parameters.isi(received.k, esi);
    let repairs = received.esis.iter().zip(received.k..).map(|(esi, input)| (isi(*esi), input));
    let known: Vec<_> = sources.chain(padding).chain(repairs).collect();
    Solver::new(cache::template(&parameters), &known)
}

fn restore(level: Level, plan: &Plan, solver: &Solver, received: Received) {
    let Received { symbol_size, data, missing, repairs, .. } = received;
    let echoes = || Cow::Borrowed(solver.echoes());
    let shortcut = Shortcut::new(plan, missing.len(), symbol_size.div_ceil(LINE), echoes);
    let shortcut = shortcut.as_ref();
    let mut program = Sums::default();
    for esi in missing {
        let columns = solver.template().sources.all(*esi as usize);
        shortcut::push(shortcut, &mut program, *esi as u16, NO_INPUT, columns);
    }
    let mut work = WorkArea::unfilled(symbol_size, plan, shortcut);
    for strip in strips(symbol_size, plan.slots()) {
        let slots = work.slots(strip.lines);
        let inputs = Inputs { symbol_size, first: data, second: repairs };
        replay(level, plan, shortcut, inputs, strip, slots);
        level.run(Gather { program: &program.0, slots, strip, symbol_size, out: data });
    }
}
