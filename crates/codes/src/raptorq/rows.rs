//! The sparse equations of a block: the LDPC relations and one for each encoding symbol that is
//! known.

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
    /// For each equation, how many LT columns it has, and the exclusive or of their numbers.
    sums: Vec<ColumnSum>,
}

/// How many columns, and the exclusive or of their numbers: one column less is one subtraction and
/// one exclusive or.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSum(u32);

impl ColumnSum {
    fn of(columns: &[u16]) -> Self {
        let sum = columns.iter().fold(0, |sum, column| sum ^ u32::from(*column));
        Self((columns.len() as u32) << 16 | sum)
    }

    /// Takes a column out; yields how many are left.
    #[inline(always)]
    pub(crate) fn remove(&mut self, column: u16) -> u32 {
        self.0 = (self.0 - (1 << 16)) ^ u32::from(column);
        self.count()
    }

    pub(crate) const fn count(self) -> u32 {
        self.0 >> 16
    }

    /// The column, if there is but one.
    pub(crate) const fn last(self) -> u16 {
        self.0 as u16
    }
}

/// Most equations have no more columns.
const SHORT: usize = 16;

impl Rows {
    /// None, with room for so many.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let columns = Vec::with_capacity(COLUMNS * rows);
        Self {
            columns,
            bounds: Vec::with_capacity(rows),
            inputs: Vec::with_capacity(rows),
            sums: Vec::with_capacity(rows),
        }
    }

    /// The relations among intermediate symbols that are over GF(2): the S LDPC relations of RFC
    /// 6330 (section 5.3.3.3), or the S LDPC and H half relations of RFC 5053 (section 5.4.2.3).
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
        let lt =
            |(start, end): &(u32, u32)| ColumnSum::of(&columns[*start as usize..*end as usize]);
        let sums = bounds.iter().map(lt).collect();
        let mut rows = Self { columns, bounds, inputs: vec![NO_INPUT; p.ldpc], sums };
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
        rows * (2 * COLUMNS + 8 + 4 + 4)
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.columns.reserve(COLUMNS * rows);
        self.bounds.reserve(rows);
        self.inputs.reserve(rows);
        self.sums.reserve(rows);
    }

    /// Adds the equation of the encoding symbol with internal identifier `isi`, whose value is
    /// input `input`.
    pub(crate) fn push(&mut self, p: &Parameters, isi: u32, input: u32) {
        let neighbours = p.neighbours(isi);
        self.push_columns(neighbours.all(), neighbours.lt().len(), input);
    }

    /// Adds an equation of `other`, whose value is input `input` here.
    pub(crate) fn push_row(&mut self, other: &Self, row: usize, input: u32) {
        let (start, middle) = other.bounds[row];
        let columns = other.all(row);
        let end = self.columns.len();
        self.bounds.push((end as u32, end as u32 + middle - start));
        self.inputs.push(input);
        self.sums.push(other.sums[row]);
        // A copy of so many that it needs no call.
        match other.columns[start as usize..].first_chunk::<SHORT>() {
            Some(more) if columns.len() <= SHORT => {
                self.columns.extend_from_slice(more);
                self.columns.truncate(end + columns.len());
            }
            _ => self.columns.extend_from_slice(columns),
        }
    }

    fn push_columns(&mut self, columns: &[u16], lt: usize, input: u32) {
        let start = self.columns.len() as u32;
        self.bounds.push((start, start + lt as u32));
        self.columns.extend_from_slice(columns);
        self.inputs.push(input);
        self.sums.push(ColumnSum::of(&columns[..lt]));
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// The columns of all of them, one after another.
    pub(crate) fn columns(&self) -> &[u16] {
        &self.columns
    }

    /// How many LT columns each has, and their sum.
    pub(crate) fn sums(&self) -> &[ColumnSum] {
        &self.sums
    }

    /// Bytes that they take in memory.
    pub(crate) fn memory(&self) -> usize {
        let four = self.inputs.capacity() + self.sums.capacity();
        2 * self.columns.capacity() + 8 * self.bounds.capacity() + 4 * four
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
