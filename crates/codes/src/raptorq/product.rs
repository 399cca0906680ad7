//! Symbols as sums of multiples of other symbols.

use super::replay::{load, store};
use super::strips::Inputs;
use crate::simd::Kernel;
use crate::simd::lane::{LINE, Lane};

/// Adds to each row of `out` the inputs times their coefficients.
pub(crate) struct Product<'a> {
    /// For each input, one after another, `stride` coefficients.
    pub(crate) coefficients: &'a [u8],
    pub(crate) stride: usize,
    /// Which of an input's coefficients each row of `out` takes.
    pub(crate) columns: &'a [u16],
    pub(crate) inputs: Inputs<'a>,
    pub(crate) offset: usize,
    /// Lines of a row.
    pub(crate) lines: usize,
    pub(crate) out: &'a mut [[u8; LINE]],
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(mut self) {
        let mut line = 0;
        while line < self.lines {
            line += match self.lines - line {
                4.. if L::MANY => self.lines::<L, 4>(line),
                2.. if L::MANY => self.lines::<L, 2>(line),
                _ => self.lines::<L, 1>(line),
            };
        }
    }
}

impl Product<'_> {
    /// `N` lines of all rows; yields N. What is added up stays in registers.
    #[inline(always)]
    fn lines<L: Lane, const N: usize>(&mut self, line: usize) -> usize {
        let mut row = 0;
        while row < self.columns.len() {
            row += match self.columns.len() - row {
                5.. => self.rows::<L, N, 5>(line, row),
                4 => self.rows::<L, N, 4>(line, row),
                2.. => self.rows::<L, N, 2>(line, row),
                _ => self.rows::<L, N, 1>(line, row),
            };
        }
        N
    }

    #[inline(always)]
    fn rows<L: Lane, const N: usize, const R: usize>(&mut self, line: usize, row: usize) -> usize {
        let columns: [usize; R] = core::array::from_fn(|i| usize::from(self.columns[row + i]));
        let at: [usize; R] = core::array::from_fn(|i| (row + i) * self.lines + line);
        let out = &mut *self.out;
        let mut sums = [[L::zero(); N]; R];
        for (sum, at) in sums.iter_mut().zip(at) {
            *sum = load(out[at..].first_chunk().expect("a row has its lines"));
        }
        let offset = self.offset + line * LINE;
        for (input, coefficients) in (0..).zip(self.coefficients.chunks_exact(self.stride)) {
            let Some(lines) = self.inputs.lines::<N>(input, offset) else { break };
            let lines = load::<L, N>(lines);
            for (sum, column) in sums.iter_mut().zip(columns) {
                let factor = L::factor(coefficients[column]);
                for (sum, line) in sum.iter_mut().zip(lines) {
                    *sum = sum.xor(line.mul(factor));
                }
            }
        }
        for (at, sum) in at.into_iter().zip(sums) {
            let lines = out[at..].first_chunk_mut().expect("a row has its lines");
            store::<L, N>(lines, sum);
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::counting::mix;
    use crate::multiples::add_multiple;
    use crate::simd::Level;

    #[test]
    fn sums_of_multiples_are_those_of_the_field_at_every_level() {
        for seed in 0..if cfg!(miri) { 3 } else { 60u64 } {
            let draw = |index: u64, below: u64| (mix(seed << 32 ^ index) % below) as usize;
            let (count, rows, lines) = (draw(1, 30), 1 + draw(2, 12), 1 + draw(3, 8));
            let (size, stride) = (lines * LINE, rows + draw(4, 5));
            let bytes = |from: u64, len: usize| -> Vec<u8> {
                (0..len as u64).map(|i| mix(seed << 32 ^ from ^ i) as u8).collect()
            };
            let (symbols, coefficients) =
                (bytes(1 << 20, count * size), bytes(1 << 21, count * stride));
            let columns: Vec<u16> =
                (0..rows as u64).map(|i| draw(100 + i, stride as u64) as u16).collect();
            let before = bytes(1 << 22, rows * size);
            let mut expected = before.clone();
            for (row, column) in expected.chunks_exact_mut(size).zip(&columns) {
                let inputs = symbols.chunks_exact(size).zip(coefficients.chunks_exact(stride));
                inputs.for_each(|(input, all)| add_multiple(row, input, all[usize::from(*column)]));
            }
            for level in Level::all() {
                let mut out = vec![[0; LINE]; rows * lines];
                out.as_flattened_mut().copy_from_slice(&before);
                level.run(Product {
                    coefficients: &coefficients,
                    stride,
                    columns: &columns,
                    inputs: Inputs { symbol_size: size, first: &symbols, second: &[] },
                    offset: 0,
                    lines,
                    out: &mut out,
                });
                assert!(out.as_flattened() == expected, "seed {seed}, {level:?}");
            }
        }
    }
}
