//! Which symbols are known decides how the intermediate symbols follow from them; this finds out how.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::elimination::Elimination;
use super::hdpc;
use super::peeling::Peeling;
use super::plan::{Dense, Plan, Sums};
use super::rows::Rows;
use super::template::Template;
use crate::gf256::{self, Matrix};
use crate::simd::Level;

/// Solves the equations of a block without touching a byte of it. If they lack rank, it takes further ones and goes
/// on from where it was.
pub(crate) struct Solver {
    template: Arc<Template>,
    rows: Rows,
    peeling: Peeling,
    /// For each column, which inactive columns it contains, as bits.
    echoes: Vec<u64>,
    elimination: Elimination,
    /// The equations that the elimination accepted.
    accepted: Vec<u32>,
    /// The HDPC equations in terms of inactive columns; made when first needed.
    hdpc: Option<Matrix>,
}

impl Solver {
    /// A solver that knows the symbols with these internal identifiers to be these inputs. The inputs of padding
    /// symbols are [`NO_INPUT`](super::rows::NO_INPUT). `None` if these symbols would take too long to solve.
    pub(crate) fn new(template: Arc<Template>, known: &[(u32, u32)]) -> Option<Self> {
        let parameters = template.parameters;
        let mut rows = template.precode.clone();
        rows.reserve(known.len());
        for (isi, input) in known {
            if (*isi as usize) < parameters.extended {
                rows.push_row(&template.sources, *isi as usize, *input);
            } else {
                rows.push(&parameters, *isi, *input);
            }
        }
        let peeling = Peeling::new(&parameters, &rows)?;
        let elimination = Elimination::new(peeling.inactive.len());
        let words = elimination.words();
        let mut solver = Self {
            template,
            rows,
            peeling,
            echoes: vec![0; parameters.intermediate * words],
            elimination,
            accepted: Vec::new(),
            hdpc: None,
        };
        for (index, column) in solver.peeling.inactive.iter().enumerate() {
            solver.echoes[usize::from(*column) * words + index / 64] |= 1 << (index % 64);
        }
        let mut echo = vec![0; words];
        for (row, column) in &solver.peeling.order {
            // The column itself is still zero, and so adds nothing.
            echo.fill(0);
            add_echoes(&mut echo, &solver.echoes, solver.rows.all(*row as usize));
            solver.echoes[usize::from(*column) * words..][..words].copy_from_slice(&echo);
        }
        for index in 0..solver.peeling.rest.len() {
            solver.eliminate(solver.peeling.rest[index]);
        }
        Some(solver)
    }

    /// Takes the equation of one more symbol.
    pub(crate) fn add(&mut self, isi: u32, input: u32) {
        self.rows.push(&self.template.parameters, isi, input);
        self.eliminate(self.rows.len() as u32 - 1);
    }

    fn eliminate(&mut self, row: u32) {
        let mut echo = vec![0; self.elimination.words()];
        add_echoes(&mut echo, &self.echoes, self.rows.all(row as usize));
        if self.elimination.insert(&echo) {
            self.accepted.push(row);
        }
    }

    /// At least so many more symbols are needed.
    pub(crate) fn missing(&self) -> usize {
        let free = self.peeling.inactive.len() - self.elimination.rank();
        free.saturating_sub(self.template.parameters.hdpc)
    }

    /// The plan, or `None` as long as the equations lack rank.
    pub(crate) fn plan(&mut self) -> Option<Plan> {
        if self.missing() > 0 {
            return None;
        }
        let dense = self.dense()?;
        let (forward, backward) = self.sums();
        Some(Plan { parameters: self.template.parameters, forward, dense, backward })
    }

    /// How the inactive columns follow.
    fn dense(&mut self) -> Option<Dense> {
        let reduced = self.elimination.reduce();
        let equations = self.template.parameters.hdpc;
        let (rank, free) = (reduced.pivots.len(), reduced.free.len());
        let mut from_hdpc = Matrix::zero(0, 0);
        let mut from_solved = Matrix::zero(0, 0);
        if free > 0 {
            self.prepare_hdpc();
            let hdpc = self.hdpc.as_ref()?;
            // The free unknowns' coefficients, with the solved ones substituted.
            let mut system = Matrix::zero(equations, free);
            for equation in 0..equations {
                let row = hdpc.row(equation);
                for (index, unknown) in reduced.free.iter().enumerate() {
                    let own = row[usize::from(*unknown)];
                    let solved = reduced.pivots.iter().enumerate();
                    system.row_mut(equation)[index] = solved
                        .filter(|(at, _)| reduced.has_unknown(*at, *unknown))
                        .fold(own, |sum, (_, pivot)| sum ^ row[usize::from(*pivot)]);
                }
            }
            from_hdpc = system.left_inverse(Level::detect())?;
            from_solved = Matrix::zero(free, rank);
            let mut column_of_solved = vec![0; rank];
            for equation in 0..equations {
                for (cell, pivot) in column_of_solved.iter_mut().zip(&reduced.pivots) {
                    *cell = hdpc.row(equation)[usize::from(*pivot)];
                }
                for index in 0..free {
                    let factor = from_hdpc.row(index)[equation];
                    gf256::add_multiple(from_solved.row_mut(index), &column_of_solved, factor);
                }
            }
        }
        let table_bits = Dense::best_table_bits(rank);
        let mut tables = Vec::with_capacity(rank.div_ceil(table_bits) * rank);
        for from in (0..rank).step_by(table_bits) {
            tables.extend((0..rank).map(|row| reduced.equations(row, from, table_bits)));
        }
        let column = |unknown: &u16| self.peeling.inactive[usize::from(*unknown)];
        Some(Dense {
            solved: reduced.pivots.iter().map(column).collect(),
            table_bits,
            tables,
            free: reduced.free.iter().map(column).collect(),
            schedule: if free > 0 { self.template.schedule.clone() } else { Vec::new() },
            from_hdpc,
            from_solved,
            corrections: (0..rank)
                .map(|row| {
                    let free = reduced.free.iter().enumerate();
                    free.fold(0, |bits, (index, unknown)| {
                        bits | u16::from(reduced.has_unknown(row, *unknown)) << index
                    })
                })
                .collect(),
        })
    }

    fn prepare_hdpc(&mut self) {
        if self.hdpc.is_some() {
            return;
        }
        let p = &self.template.parameters;
        let words = self.elimination.words();
        let column = |j: usize| &self.echoes[j * words..][..words];
        let unknowns = self.peeling.inactive.len();
        let mut matrix = hdpc::coefficients(p, &self.template.targets, unknowns, column);
        // Each equation also has an HDPC symbol of its own; these are the last permanently inactive columns.
        for equation in 0..p.hdpc {
            matrix.row_mut(equation)[p.permanent - p.hdpc + equation] ^= 1;
        }
        self.hdpc = Some(matrix);
    }

    /// The instructions that are replayed before and after the dense part.
    fn sums(&self) -> (Sums, Sums) {
        let (mut forward, mut backward) = (Sums::default(), Sums::default());
        let p = &self.template.parameters;
        let size = 12 * p.extended;
        forward.0.reserve(size);
        backward.0.reserve(size);
        for (row, target) in &self.peeling.order {
            let input = self.rows.input(*row as usize);
            let (start, back) = (forward.begin(*target, input), backward.begin(*target, input));
            for column in self.rows.all(*row as usize).iter().filter(|column| *column != target) {
                backward.add(*column);
                if self.peeling.place(*column).is_none() {
                    forward.add(*column);
                }
            }
            forward.end(start);
            backward.end(back);
        }
        for (index, row) in self.accepted.iter().enumerate() {
            let target = (p.intermediate + index) as u16;
            let start = forward.begin(target, self.rows.input(*row as usize));
            for column in self.rows.all(*row as usize) {
                if self.peeling.place(*column).is_none() {
                    forward.add(*column);
                }
            }
            forward.end(start);
        }
        (forward, backward)
    }
}

fn add_echoes(echo: &mut [u64], echoes: &[u64], columns: &[u16]) {
    let words = echo.len();
    for column in columns {
        let other = &echoes[usize::from(*column) * words..][..words];
        echo.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
    }
}
