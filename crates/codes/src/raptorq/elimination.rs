//! Gaussian elimination over GF(2), one equation at a time, that remembers which equations each
//! result is made of.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u16 = u16::MAX;

/// Equations in echelon form. An equation that depends on those before it leaves no trace.
#[derive(Clone)]
pub(crate) struct Elimination {
    unknowns: usize,
    /// Words for the coefficients of a row, and as many for the accepted equations that it is the
    /// sum of.
    words: usize,
    rows: Vec<u64>,
    /// The row whose first coefficient is at an unknown.
    row_of: Vec<u16>,
}

/// The solution of what was accepted: each pivot unknown as a sum of accepted equations and of free
/// unknowns.
pub(crate) struct Reduced {
    words: usize,
    rows: Vec<u64>,
    /// The pivot unknown of each row.
    pub(crate) pivots: Vec<u16>,
    /// The unknowns that no equation determines.
    pub(crate) free: Vec<u16>,
}

impl Elimination {
    pub(crate) fn new(unknowns: usize) -> Self {
        let words = unknowns.div_ceil(64);
        Self {
            unknowns,
            words,
            rows: Vec::with_capacity(2 * words * unknowns),
            row_of: vec![NONE; unknowns],
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rows.len().checked_div(2 * self.words).unwrap_or(0)
    }

    /// Takes an equation; true if it was independent of those before it, and then it is number
    /// `rank() - 1`.
    pub(crate) fn insert(&mut self, coefficients: &[u64]) -> bool {
        let stride = 2 * self.words;
        let (index, start) = (self.rank(), self.rows.len());
        if index == self.unknowns {
            return false;
        }
        self.rows.extend_from_slice(coefficients);
        self.rows.resize(start + stride, 0);
        let (above, row) = self.rows.split_at_mut(start);
        row[self.words + index / 64] |= 1 << (index % 64);
        for word in 0..self.words {
            while row[word] != 0 {
                let unknown = word * 64 + row[word].trailing_zeros() as usize;
                let pivot = self.row_of[unknown];
                if pivot == NONE {
                    self.row_of[unknown] = index as u16;
                    return true;
                }
                let pivot = &above[usize::from(pivot) * stride..][..stride];
                // Coefficients before this word are zero in both.
                for (a, b) in row[word..].iter_mut().zip(&pivot[word..]) {
                    *a ^= b;
                }
            }
        }
        self.rows.truncate(start);
        false
    }

    /// Substitutes backwards.
    pub(crate) fn reduce(&self) -> Reduced {
        let stride = 2 * self.words;
        let mut rows = self.rows.clone();
        let mut row = vec![0; stride];
        for unknown in (0..self.unknowns).rev() {
            let index = usize::from(self.row_of[unknown]);
            if self.row_of[unknown] == NONE {
                continue;
            }
            row.copy_from_slice(&rows[index * stride..][..stride]);
            for word in unknown / 64..self.words {
                let after = if word == unknown / 64 { !0 << (unknown % 64) << 1 } else { !0 };
                let mut left = self.rows[index * stride + word] & after;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let other = self.row_of[word * 64 + bit as usize];
                    if other != NONE {
                        // Already reduced, so it has no pivot but its own and changes none that is
                        // still to come.
                        let other = &rows[usize::from(other) * stride..][..stride];
                        row.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
                    }
                }
            }
            rows[index * stride..][..stride].copy_from_slice(&row);
        }
        let mut pivots = vec![0; self.rank()];
        let mut free = Vec::new();
        for (unknown, row) in self.row_of.iter().enumerate() {
            match *row {
                NONE => free.push(unknown as u16),
                row => pivots[usize::from(row)] = unknown as u16,
            }
        }
        Reduced { words: self.words, rows, pivots, free }
    }
}

impl Reduced {
    /// Whether `unknown` is in the sum for the pivot of `row`.
    pub(crate) fn has_unknown(&self, row: usize, unknown: u16) -> bool {
        self.bit(row, 0, usize::from(unknown))
    }

    /// Bits `from..from + count` (at most 8) of the accepted equations in the sum for the pivot of
    /// `row`.
    pub(crate) fn equations(&self, row: usize, from: usize, count: usize) -> u8 {
        let part = &self.rows[(row * 2 + 1) * self.words..][..self.words];
        let (word, shift) = (from / 64, from % 64);
        let next = part.get(word + 1).map_or(0, |next| next << 1 << (63 - shift));
        // Beyond the last accepted equation all bits are zero.
        (part[word] >> shift | next) as u8 & (0xff >> (8 - count))
    }

    fn bit(&self, row: usize, part: usize, index: usize) -> bool {
        self.rows[row * 2 * self.words + part + index / 64] >> (index % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;

    #[test]
    fn what_is_reduced_solves_what_was_inserted() {
        for seed in 0..200u64 {
            let unknowns = 1 + (mix(seed) % 150) as usize;
            let truth: Vec<bool> =
                (0..unknowns).map(|i| mix(seed << 20 | i as u64) & 1 == 1).collect();
            let mut elimination = Elimination::new(unknowns);
            let mut values = Vec::new();
            for row in 0..unknowns + (seed % 5) as usize - 2.min(unknowns) {
                let mut coefficients = vec![0u64; unknowns.div_ceil(64)];
                for i in 0..unknowns {
                    let dense = mix(seed << 40 ^ (row as u64) << 20 ^ i as u64 ^ 77);
                    if dense.is_multiple_of(3) {
                        coefficients[i / 64] |= 1 << (i % 64);
                    }
                }
                let value = (0..unknowns)
                    .filter(|i| coefficients[i / 64] >> (i % 64) & 1 == 1)
                    .fold(false, |sum, i| sum ^ truth[i]);
                if elimination.insert(&coefficients) {
                    values.push(value);
                }
                assert!(!elimination.insert(&coefficients), "a row depends on itself");
            }
            let reduced = elimination.reduce();
            assert_eq!(reduced.pivots.len() + reduced.free.len(), unknowns);
            for (row, pivot) in reduced.pivots.iter().enumerate() {
                let mut sum = (0..values.len())
                    .filter(|i| reduced.equations(row, *i, 1) == 1)
                    .fold(false, |sum, i| sum ^ values[i]);
                for free in &reduced.free {
                    sum ^= reduced.has_unknown(row, *free) && truth[usize::from(*free)];
                }
                assert_eq!(sum, truth[usize::from(*pivot)], "seed {seed}");
                for other in reduced.pivots.iter().filter(|other| *other != pivot) {
                    assert!(!reduced.has_unknown(row, *other), "seed {seed}");
                }
            }
        }
    }
}
