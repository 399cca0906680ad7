//! Encoding symbols straight from the source block, each a sum of all of its symbols times
//! coefficients: for few of them less work than to solve for the intermediate symbols.

use core::ops::Range;

use super::encoding_plan::{Coefficients, EncodingPlan};
use super::product::Product;
use super::received::Received;
use super::solution::Solution;
use super::strips::{Inputs, Strip, strips};
use crate::lines::Lines;
use crate::matrix::Matrix;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// Writes encoding symbols, one after another, into `out`.
pub(crate) fn encode(
    level: Level,
    plan: &EncodingPlan,
    k: u32,
    inputs: Inputs,
    esis: Range<u32>,
    out: &mut [u8],
) {
    let p = &plan.plan.parameters;
    let (symbol_size, count) = (inputs.symbol_size, esis.len());
    let coefficients = plan.coefficients(level, esis.map(|esi| p.isi(k, esi)));
    let mut sums = Lines::unfilled(count * WIDEST);
    for strip in strips(symbol_size, 0) {
        let sums = &mut sums.get_mut()[..count * strip.lines];
        sums.fill([0; LINE]);
        add(level, &coefficients, inputs, strip, sums);
        for (out, sum) in out.chunks_exact_mut(symbol_size).zip(sums.chunks_exact(strip.lines)) {
            out[strip.offset..][..strip.len].copy_from_slice(&sum.as_flattened()[..strip.len]);
        }
    }
}

/// Restores what is missing from the first [`LINE`] repair symbols; false if they do not suffice,
/// and then nothing was changed.
pub(crate) fn decode(level: Level, plan: &EncodingPlan, received: Received) -> bool {
    let Received { k, symbol_size, data, missing, esis, repairs, .. } = received;
    let p = &plan.plan.parameters;
    let esis = &esis[..esis.len().min(LINE)];
    let coefficients = plan.coefficients(level, esis.iter().map(|esi| p.isi(k, *esi)));
    let mut matrix = Matrix::zero(esis.len(), missing.len());
    for (row, column) in coefficients.columns.iter().enumerate() {
        for (cell, esi) in matrix.row_mut(row).iter_mut().zip(missing) {
            *cell = coefficients.lines[*esi as usize][usize::from(*column)];
        }
    }
    let Some(solution) = Solution::new(level, &matrix) else { return false };
    let mut sums = Lines::unfilled(esis.len() * WIDEST);
    for strip in strips(symbol_size, 0) {
        let lines = strip.lines;
        let sums = &mut sums.get_mut()[..esis.len() * lines];
        sums.fill([0; LINE]);
        for (sum, symbol) in sums.chunks_exact_mut(lines).zip(repairs.chunks_exact(symbol_size)) {
            let bytes = &symbol[strip.offset..][..strip.len];
            sum.as_flattened_mut()[..strip.len].copy_from_slice(bytes);
        }
        // What is missing is zero.
        let inputs = Inputs { symbol_size, first: data, second: &[] };
        add(level, &coefficients, inputs, strip, sums);
        let sums = Inputs::of_lines(sums, lines);
        solution.write(level, sums, 0, missing, strip, symbol_size, data);
    }
    true
}

/// Lines of the widest strip for few slots.
const WIDEST: usize = 4;

/// Adds what the symbols of a block contribute to encoding symbols.
fn add(
    level: Level,
    coefficients: &Coefficients,
    inputs: Inputs,
    strip: Strip,
    out: &mut [[u8; LINE]],
) {
    inputs.whole_lines(strip, |inputs, offset| {
        level.run(Product {
            coefficients: coefficients.lines.as_flattened(),
            stride: LINE,
            columns: &coefficients.columns,
            inputs,
            offset,
            lines: strip.lines,
            out,
        });
    });
}
