use alloc::vec;
use alloc::vec::Vec;

use super::product::Product;
use super::strips::{Inputs, Strip};
use crate::lines::Lines;
use crate::matrix::Matrix;
use crate::simd::Level;

/// How missing symbols follow from sums of them.
pub(crate) struct Solution {
    /// For each sum, its coefficient in each missing symbol.
    coefficients: Vec<u8>,
    columns: Vec<u16>,
}

impl Solution {
    /// From a matrix that has for each sum its coefficients of the missing symbols; `None` if its
    /// rank is too low.
    pub(crate) fn new(level: Level, matrix: &Matrix) -> Option<Self> {
        let inverse = matrix.left_inverse(level)?;
        let missing = matrix.columns;
        let mut coefficients = vec![0; inverse.cells.len()];
        for symbol in 0..missing {
            for (sum, cell) in inverse.row(symbol).iter().enumerate() {
                coefficients[sum * missing + symbol] = *cell;
            }
        }
        Some(Self { coefficients, columns: (0..missing as u16).collect() })
    }

    /// Writes a strip of the missing symbols to their places in `data`, from the same of the sums,
    /// which begins at `offset`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn write(
        &self,
        level: Level,
        sums: Inputs,
        offset: usize,
        missing: &[u32],
        strip: Strip,
        symbol_size: usize,
        data: &mut [u8],
    ) {
        let lines = strip.lines;
        let mut results = Lines::zero(missing.len() * lines);
        level.run(Product {
            coefficients: &self.coefficients,
            stride: self.columns.len(),
            columns: &self.columns,
            inputs: sums,
            offset,
            lines,
            out: results.get_mut(),
        });
        for (esi, result) in missing.iter().zip(results.get().chunks_exact(lines)) {
            let start = *esi as usize * symbol_size + strip.offset;
            data[start..][..strip.len].copy_from_slice(&result.as_flattened()[..strip.len]);
        }
    }
}
