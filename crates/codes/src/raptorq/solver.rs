//! Which symbols are known decides how the intermediate symbols follow from them; this finds out
//! how.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::echoes::Echoes;
use super::elimination::Elimination;
use super::hdpc::{self, MAX_EQUATIONS};
use super::peeling::Peeling;
use super::plan::{Dense, Plan, Sums};
use super::rows::Rows;
use super::template::Template;
use crate::matrix::Matrix;
use crate::simd::Level;

/// Solves the equations of a block without touching a byte of it. If they lack rank, it takes
/// further ones and goes on from where it was.
pub(crate) struct Solver {
    template: Arc<Template>,
    rows: Rows,
    peeling: Peeling,
    echoes: Echoes,
    elimination: Elimination,
    /// The equations that the elimination accepted.
    accepted: Vec<u32>,
    /// The HDPC equations' coefficients of each inactive column; made when first needed.
    hdpc: Option<Vec<[u8; MAX_EQUATIONS]>>,
    /// An equation in terms of inactive columns.
    echo: Vec<u64>,
}

impl Solver {
    /// A solver that knows the symbols with these internal identifiers to be these inputs. The
    /// inputs of padding symbols are [`NO_INPUT`](super::rows::NO_INPUT). `None` if these symbols
    /// would take too long to solve.
    pub(crate) fn new(template: Arc<Template>, known: &[(u32, u32)]) -> Option<Self> {
        let parameters = template.parameters;
        let mut rows = template.precode.clone();
        rows.reserve(known.len());
        for (isi, input) in known {
            if (*isi as usize) < parameters.extended {
                rows.push_row(&template.sources, *isi as usize, *input);
            } else {
                template.repairs.push(&mut rows, &parameters, *isi, *input);
            }
        }
        let peeling = Peeling::new(&parameters, &rows)?;
        let elimination = Elimination::new(peeling.inactive.len());
        let sums = peeling.order.iter().map(|(row, column)| (*column, rows.all(*row as usize)));
        let echoes = Echoes::new(parameters.intermediate, peeling.inactive.clone(), sums);
        let echo = vec![0; echoes.words()];
        let mut solver = Self {
            template,
            rows,
            peeling,
            echoes,
            elimination,
            accepted: Vec::new(),
            hdpc: None,
            echo,
        };
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
        self.echo.fill(0);
        self.echoes.add(&mut self.echo, self.rows.all(row as usize));
        if self.elimination.insert(&self.echo) {
            self.accepted.push(row);
        }
    }

    /// What each column takes of the inactive ones.
    pub(crate) fn echoes(&self) -> &Echoes {
        &self.echoes
    }

    /// What the block has in common with others.
    pub(crate) fn template(&self) -> &Template {
        &self.template
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
        let level = Level::detect();
        let reduced = self.elimination.reduce();
        let equations = self.template.parameters.hdpc;
        let (rank, free) = (reduced.pivots.len(), reduced.free.len());
        let corrections: Vec<u16> = (0..rank)
            .map(|row| {
                let free = reduced.free.iter().enumerate();
                free.fold(0, |bits, (index, unknown)| {
                    bits | u16::from(reduced.has_unknown(row, *unknown)) << index
                })
            })
            .collect();
        let mut from_hdpc = Matrix::zero(0, 0);
        let mut from_solved = Matrix::zero(0, 0);
        if free > 0 {
            self.prepare_hdpc();
            let hdpc = self.hdpc.as_ref()?;
            let coefficients = |unknown: &u16| u128::from_le_bytes(hdpc[usize::from(*unknown)]);
            // The free unknowns' coefficients, with the solved ones substituted.
            let mut substituted: Vec<u128> = reduced.free.iter().map(coefficients).collect();
            for (bits, pivot) in corrections.iter().zip(&reduced.pivots) {
                let (mut bits, solved) = (*bits, coefficients(pivot));
                while bits != 0 {
                    substituted[bits.trailing_zeros() as usize] ^= solved;
                    bits &= bits - 1;
                }
            }
            let mut system = Matrix::zero(equations, free);
            for (index, column) in substituted.iter().enumerate() {
                for (equation, cell) in column.to_le_bytes()[..equations].iter().enumerate() {
                    system.row_mut(equation)[index] = *cell;
                }
            }
            from_hdpc = system.left_inverse(level)?;
            let mut of_solved = Matrix::zero(equations, rank);
            for (index, pivot) in reduced.pivots.iter().enumerate() {
                let column = &hdpc[usize::from(*pivot)][..equations];
                for (equation, cell) in column.iter().enumerate() {
                    of_solved.row_mut(equation)[index] = *cell;
                }
            }
            from_solved = from_hdpc.times(level, &of_solved);
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
            corrections,
        })
    }

    fn prepare_hdpc(&mut self) {
        if self.hdpc.is_some() {
            return;
        }
        let p = &self.template.parameters;
        let mut hdpc = hdpc::coefficients(p, &self.template.targets, &self.echoes);
        // Each equation also has an HDPC symbol of its own; these are the last permanently inactive
        // columns.
        for equation in 0..p.hdpc {
            hdpc[p.permanent - p.hdpc + equation][equation] ^= 1;
        }
        self.hdpc = Some(hdpc);
    }

    /// The instructions that are replayed before and after the dense part.
    fn sums(&self) -> (Sums, Sums) {
        let p = &self.template.parameters;
        let is_peeled = |column: u16| self.peeling.place(column).is_none();
        let most = self.rows.columns().len() + 4 * (self.rows.len() + self.accepted.len());
        let (mut forward, mut backward) = (Program::new(most), Program::new(most));
        for (row, target) in &self.peeling.order {
            let (input, columns) = (self.rows.input(*row as usize), self.rows.all(*row as usize));
            let (ahead, back) = (forward.room(columns.len()), backward.room(columns.len()));
            let (mut ahead_len, mut back_len) = (0, 0);
            for column in columns {
                // Without a branch, for none could be predicted.
                let is_other = column != target;
                ahead[ahead_len] = *column;
                ahead_len += usize::from(is_other && is_peeled(*column));
                back[back_len] = *column;
                back_len += usize::from(is_other);
            }
            forward.push(*target, input, ahead_len);
            backward.push(*target, input, back_len);
        }
        for (index, row) in self.accepted.iter().enumerate() {
            let target = (p.intermediate + index) as u16;
            let (input, columns) = (self.rows.input(*row as usize), self.rows.all(*row as usize));
            let (room, mut len) = (forward.room(columns.len()), 0);
            for column in columns {
                room[len] = *column;
                len += usize::from(is_peeled(*column));
            }
            forward.push(target, input, len);
        }
        (forward.finish(), backward.finish())
    }
}

/// Sums that are written into room made before.
struct Program {
    words: Vec<u16>,
    len: usize,
}

impl Program {
    fn new(most: usize) -> Self {
        Self { words: vec![0; most], len: 0 }
    }

    /// Where the next sum's slots are written.
    #[inline(always)]
    fn room(&mut self, most: usize) -> &mut [u16] {
        &mut self.words[self.len + 4..][..most]
    }

    /// The first `count` slots that were written sum to slot `target`, together with an input.
    #[inline(always)]
    fn push(&mut self, target: u16, input: u32, count: usize) {
        let head = [target, count as u16, input as u16, (input >> 16) as u16];
        self.words[self.len..][..4].copy_from_slice(&head);
        self.len += 4 + count;
    }

    fn finish(mut self) -> Sums {
        self.words.truncate(self.len);
        Sums(self.words)
    }
}
