//! Arithmetic in GF(2⁸) with the polynomial x⁸ + x⁴ + x³ + x² + 1 (0x11d), whose generator is 2:
//! the field of RFC 6330, section 5.7.

use alloc::vec;
use alloc::vec::Vec;

use crate::lines::Lines;
use crate::simd::{Kernel, LINE, Lane, Level};

/// The low byte of the polynomial.
pub(crate) const POLYNOMIAL: u8 = 0x1d;

/// Powers of the generator, twice over, so that a sum of two logarithms needs no reduction
/// (`OCT_EXP`).
pub(crate) const EXP: [u8; 510] = {
    let mut table = [0; 510];
    let (mut i, mut power) = (0, 1u8);
    while i < 510 {
        table[i] = power;
        power = times_alpha(power);
        i += 1;
    }
    table
};

/// Logarithms; that of zero does not exist and reads 0 (`OCT_LOG`).
pub(crate) const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// The product with the generator α = 2.
pub(crate) const fn times_alpha(a: u8) -> u8 {
    (a << 1) ^ (POLYNOMIAL & (a >> 7).wrapping_neg())
}

/// The product, from which kernels make their tables.
#[cfg(any(test, target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// The products of a factor with every low and every high half of a byte, as the shuffles look them
/// up.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static NIBBLES: [([u8; 16], [u8; 16]); 256] = {
    let mut tables = [([0; 16], [0; 16]); 256];
    let mut factor = 0;
    while factor < 256 {
        let mut half = 0;
        while half < 16 {
            tables[factor].0[half] = mul(factor as u8, half as u8);
            tables[factor].1[half] = mul(factor as u8, (half << 4) as u8);
            half += 1;
        }
        factor += 1;
    }
    tables
};

/// The inverse of `a`, which must not be zero.
pub(crate) const fn inverse(a: u8) -> u8 {
    EXP[255 - LOG[a as usize] as usize]
}

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

/// `target` += `factor` · `source`, symbol by symbol; both have the same length.
pub(crate) fn add_multiple_of_symbol(level: Level, target: &mut [u8], source: &[u8], factor: u8) {
    let len = target.len().min(source.len()) / LINE * LINE;
    let (lines, rest) = target.split_at_mut(len);
    level.run(AddMultiple {
        target: lines.as_chunks_mut().0,
        source: source[..len].as_chunks().0,
        factor,
    });
    add_multiple(rest, &source[len..], factor);
}

struct AddMultiple<'a> {
    target: &'a mut [[u8; LINE]],
    source: &'a [[u8; LINE]],
    factor: u8,
}

impl Kernel for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(self) {
        let factor = L::factor(self.factor);
        for (target, source) in self.target.iter_mut().zip(self.source) {
            L::load(target).xor(L::load(source).mul(factor)).store(target);
        }
    }
}

/// `target` += `factor` · `source`, byte by byte.
pub(crate) fn add_multiple(target: &mut [u8], source: &[u8], factor: u8) {
    let log = LOG[factor as usize] as usize;
    if factor == 0 {
        return;
    }
    for (target, source) in target.iter_mut().zip(source) {
        if *source != 0 {
            *target ^= EXP[log + LOG[*source as usize] as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;
    use crate::fnv1a;

    #[test]
    fn the_tables_are_the_rfcs() {
        // Sections 5.7.3 and 5.7.4: the first and last entries as printed, and the whole by
        // checksum.
        assert_eq!(EXP[..10], [1, 2, 4, 8, 16, 32, 64, 128, 29, 58]);
        assert_eq!(EXP[505..], [108, 216, 173, 71, 142][..]);
        assert_eq!(LOG[1..9], [0, 1, 25, 2, 50, 26, 198, 3]);
        assert_eq!(LOG[253..], [80, 88, 175]);
        assert_eq!(
            fnv1a(EXP),
            fnv1a((0..510).map(|i| (0..i % 255).fold(1, |a, _| times_alpha(a))))
        );
    }

    #[test]
    fn products_are_those_of_polynomials() {
        let step = if cfg!(miri) { 17 } else { 1 };
        for a in (0..=255u8).step_by(step) {
            for b in (0..=255u8).step_by(step) {
                let mut product = 0;
                for bit in 0..8 {
                    if b >> bit & 1 == 1 {
                        product ^= (0..bit).fold(a, |a, _| times_alpha(a));
                    }
                }
                assert_eq!(mul(a, b), product);
            }
            assert!(a == 0 || mul(a, inverse(a)) == 1);
        }
    }

    #[test]
    fn multiples_of_symbols_are_added_at_every_level() {
        let source: Vec<u8> = (0..200).map(|i| mix(i) as u8).collect();
        for factor in [0, 1, 2, 29, 255] {
            let mut expected = source[..150].to_vec();
            add_multiple(&mut expected, &source[50..], factor);
            for level in Level::all() {
                let mut target = source[..150].to_vec();
                add_multiple_of_symbol(level, &mut target, &source[50..], factor);
                assert_eq!(target, expected, "{level:?} {factor}");
            }
        }
    }

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
