//! The sparse equations of a block: the LDPC relations and one for each encoding symbol that is known.

use alloc::vec;
use alloc::vec::Vec;

use super::parameters::{Family, Parameters};
use super::raptor10;

/// The input of an equation whose right-hand side is zero.
pub(crate) const NO_INPUT: u32 = u32::MAX;

/// Columns of an encoding symbol to make room for: the mean degree is 4.8 + 2.5.
const COLUMNS: usize = 8;

/// Equations over GF(2): the sum of some intermediate symbols is an input.
#[derive(Clone)]
pub(crate) struct Rows {
    /// LT columns first, then permanently inactive ones, equation after equation.
    columns: Vec<u16>,
    /// Where each equation begins and where its permanently inactive columns begin.
    bounds: Vec<(u32, u32)>,
    inputs: Vec<u32>,
}

impl Rows {
    /// None, with room for so many.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let columns = Vec::with_capacity(COLUMNS * rows);
        Self { columns, bounds: Vec::with_capacity(rows), inputs: Vec::with_capacity(rows) }
    }

    /// The relations among intermediate symbols that are over GF(2): the S LDPC relations of RFC 6330 (section 5.3.3.3), or
    /// the S LDPC and H half relations of RFC 5053 (section 5.4.2.3).
    pub(crate) fn precode(p: &Parameters) -> Self {
        let first = match p.family {
            Family::RaptorQ => p.lt - p.ldpc,
            Family::Raptor10 => p.extended,
        };
        let checks = |i: usize| match p.family {
            Family::RaptorQ => {
                let (a, b) = (1 + i / p.ldpc, i % p.ldpc);
                [b, (b + a) % p.ldpc, (b + 2 * a) % p.ldpc]
            }
            Family::Raptor10 => raptor10::checks(p, i),
        };
        let permanent = if p.permanent > 0 { 2 } else { 0 };
        let mut degrees = vec![1 + permanent; p.ldpc];
        for i in 0..first {
            for check in checks(i) {
                degrees[check] += 1;
            }
        }
        let total: u32 = degrees.iter().sum();
        let mut columns = vec![0; total as usize];
        let mut bounds = Vec::with_capacity(p.ldpc);
        let mut start = 0;
        for degree in degrees {
            bounds.push((start, start + degree - permanent));
            start += degree;
        }
        let mut at: Vec<_> = bounds.iter().map(|(start, _)| *start as usize).collect();
        for i in 0..first {
            for check in checks(i) {
                columns[at[check]] = i as u16;
                at[check] += 1;
            }
        }
        for (check, at) in at.into_iter().enumerate() {
            columns[at] = (first + check) as u16;
            if p.permanent > 0 {
                columns[at + 1] = (p.lt + check % p.permanent) as u16;
                columns[at + 2] = (p.lt + (check + 1) % p.permanent) as u16;
            }
        }
        let mut rows = Self { columns, bounds, inputs: vec![NO_INPUT; p.ldpc] };
        let members: Vec<_> = raptor10::half_members(p).collect();
        for half in 0..p.half {
            let chosen = members.iter().zip(0..).filter(|(member, _)| **member >> half & 1 == 1);
            let own = (p.extended + p.ldpc + half) as u16;
            let columns: Vec<u16> = chosen.map(|(_, column)| column).chain([own]).collect();
            rows.push_columns(&columns, columns.len(), NO_INPUT);
        }
        rows
    }

    /// Bytes that so many take in memory.
    #[cfg(feature = "std")]
    pub(crate) const fn bytes_of(rows: usize) -> usize {
        rows * (2 * COLUMNS + 8 + 4)
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.columns.reserve(COLUMNS * rows);
        self.bounds.reserve(rows);
        self.inputs.reserve(rows);
    }

    /// Adds the equation of the encoding symbol with internal identifier `isi`, whose value is input `input`.
    pub(crate) fn push(&mut self, p: &Parameters, isi: u32, input: u32) {
        let neighbours = p.neighbours(isi);
        self.push_columns(neighbours.all(), neighbours.lt().len(), input);
    }

    /// Adds an equation of `other`, whose value is input `input` here.
    pub(crate) fn push_row(&mut self, other: &Self, row: usize, input: u32) {
        self.push_columns(other.all(row), other.lt(row).len(), input);
    }

    fn push_columns(&mut self, columns: &[u16], lt: usize, input: u32) {
        let start = self.columns.len() as u32;
        self.bounds.push((start, start + lt as u32));
        self.columns.extend_from_slice(columns);
        self.inputs.push(input);
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Columns of all of them together.
    pub(crate) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Bytes that they take in memory.
    pub(crate) fn memory(&self) -> usize {
        2 * self.columns.capacity() + 8 * self.bounds.capacity() + 4 * self.inputs.capacity()
    }

    pub(crate) fn input(&self, row: usize) -> u32 {
        self.inputs[row]
    }

    /// The LT columns of an equation.
    pub(crate) fn lt(&self, row: usize) -> &[u16] {
        let (start, middle) = self.bounds[row];
        &self.columns[start as usize..middle as usize]
    }

    /// All columns of an equation.
    pub(crate) fn all(&self, row: usize) -> &[u16] {
        let end = self.bounds.get(row + 1).map_or(self.columns.len(), |next| next.0 as usize);
        &self.columns[self.bounds[row].0 as usize..end]
    }
}
