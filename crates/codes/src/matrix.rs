use alloc::vec;
use alloc::vec::Vec;

use crate::gf256::inverse;
use crate::lines::Lines;
use crate::multiples::add_multiple_of_symbol;
use crate::simd::lane::{LINE, Lane};
use crate::simd::{Kernel, Level};

/// A matrix over GF(2⁸), row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) columns: usize,
    pub(crate) cells: Vec<u8>,
}

impl Matrix {
    /// A matrix of zeros.
    pub(crate) fn zero(rows: usize, columns: usize) -> Self {
        Self { columns, cells: vec![0; rows * columns] }
    }

    pub(crate) fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.columns..][..self.columns]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.cells[row * self.columns..][..self.columns]
    }

    /// The product with a matrix that has as many rows as this one has columns.
    pub(crate) fn times(&self, level: Level, other: &Self) -> Self {
        let stride = other.columns.div_ceil(LINE) * LINE;
        let mut padded = vec![0; self.columns * stride];
        for (row, padded) in padded.chunks_exact_mut(stride.max(1)).enumerate() {
            padded[..other.columns].copy_from_slice(other.row(row));
        }
        let rows = self.cells.len().checked_div(self.columns).unwrap_or(0);
        let mut result = Self::zero(rows, other.columns);
        let mut sum = vec![0; stride];
        for row in 0..rows {
            sum.fill(0);
            for (factor, other) in self.row(row).iter().zip(padded.chunks_exact(stride.max(1))) {
                add_multiple_of_symbol(level, &mut sum, other, *factor);
            }
            result.row_mut(row).copy_from_slice(&sum[..other.columns]);
        }
        result
    }

    /// For a matrix of `rows` × `columns` of full column rank, a left inverse of `columns` ×
    /// `rows`; `None` if the rank is less.
    pub(crate) fn left_inverse(&self, level: Level) -> Option<Self> {
        let rows = self.cells.len().checked_div(self.columns).unwrap_or(0);
        let stride = (self.columns + rows).div_ceil(LINE);
        let mut work = Lines::zero(rows * stride);
        for (row, lines) in work.get_mut().chunks_exact_mut(stride).enumerate() {
            let cells = lines.as_flattened_mut();
            cells[..self.columns].copy_from_slice(self.row(row));
            cells[self.columns + row] = 1;
        }
        let order = level.run(Eliminate { work: work.get_mut(), stride, columns: self.columns })?;
        let mut result = Self::zero(self.columns, rows);
        for (column, row) in order.into_iter().enumerate() {
            let cells = work.get()[row * stride..][..stride].as_flattened();
            result.row_mut(column).copy_from_slice(&cells[self.columns..][..rows]);
        }
        Some(result)
    }
}

/// Brings rows of `stride` lines to the identity in their first `columns` bytes; yields which row
/// has which 1.
struct Eliminate<'a> {
    work: &'a mut [[u8; LINE]],
    stride: usize,
    columns: usize,
}

impl Kernel for Eliminate<'_> {
    type Output = Option<Vec<usize>>;

    #[inline(always)]
    fn run<L: Lane>(self) -> Self::Output {
        let Self { work, stride, columns } = self;
        let rows = work.len() / stride;
        let mut order: Vec<usize> = (0..rows).collect();
        let mut pivot_row = vec![[0; LINE]; stride];
        for column in 0..columns {
            let (line, byte) = (column / LINE, column % LINE);
            let found = (column..rows).find(|at| work[order[*at] * stride + line][byte] != 0)?;
            order.swap(column, found);
            let pivot = order[column];
            let scale = L::factor(inverse(work[pivot * stride + line][byte]));
            // What is left of the column is zero already.
            for at in line..stride {
                let cells = &mut work[pivot * stride + at];
                L::load(cells).mul(scale).store(cells);
                pivot_row[at] = *cells;
            }
            for (row, lines) in work.chunks_exact_mut(stride).enumerate() {
                let value = lines[line][byte];
                if row != pivot && value != 0 {
                    let factor = L::factor(value);
                    for (cells, pivot) in lines[line..].iter_mut().zip(&pivot_row[line..]) {
                        L::load(cells).xor(L::load(pivot).mul(factor)).store(cells);
                    }
                }
            }
        }
        order.truncate(columns);
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;
    use crate::gf256::mul;

    #[test]
    fn a_left_inverse_undoes_its_matrix() {
        for level in Level::all() {
            let large: &[_] = if cfg!(miri) { &[(40, 30)] } else { &[(80, 70), (130, 130)] };
            for (rows, columns) in [(7, 4), (4, 4)].iter().chain(large).copied() {
                let mut matrix = Matrix::zero(rows, columns);
                for (i, cell) in matrix.cells.iter_mut().enumerate() {
                    *cell = (mix(i as u64) >> 3) as u8;
                }
                // A pivot that is not on the diagonal.
                matrix.row_mut(0)[0] = 0;
                let inverse = matrix.left_inverse(level).unwrap();
                let product = inverse.times(level, &matrix);
                for i in 0..columns {
                    for j in 0..columns {
                        let terms = (0..rows).map(|k| mul(inverse.row(i)[k], matrix.row(k)[j]));
                        assert_eq!(terms.fold(0, |sum, term| sum ^ term), u8::from(i == j));
                        assert_eq!(product.row(i)[j], u8::from(i == j));
                    }
                }
                for row in 0..rows {
                    matrix.row_mut(row)[3] = matrix.row(row)[1];
                }
                assert_eq!(matrix.left_inverse(level), None);
            }
        }
    }
}
