//! Sums of a few symbols of any lengths, and what follows from several of them.

use alloc::vec;
use alloc::vec::Vec;

use super::code::WindowCode;
use crate::gf256::inverse;
use crate::multiples::{add_multiple, add_multiple_of_symbol};
use crate::simd::Level;

/// A summand that sums determine: the sum of sum `i` times `weights[i]` is that summand alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolvedSummand {
    /// The place of the summand in each row.
    pub summand: usize,
    /// A weight for each sum.
    pub weights: Vec<u8>,
}

/// The factors of `count` summands in sum number `id`: those of RFC 8681 (section 3.6), of which
/// none is zero.
pub fn sum_factors(id: u32, count: usize) -> Vec<u8> {
    WindowCode::Tetrys { limit: u16::MAX }.coefficients(id, count)
}

/// `sum` += `factor` · `symbol`, which may be shorter: what it lacks is zero.
///
/// # Panics
/// If the symbol is longer than the sum.
pub fn add_to_sum(sum: &mut [u8], symbol: &[u8], factor: u8) {
    add_multiple_of_symbol(Level::detect(), &mut sum[..symbol.len()], symbol, factor);
}

/// Which summands follow from sums whose factors are `rows`, all of one length.
pub fn solve_sums(rows: &[Vec<u8>]) -> Vec<SolvedSummand> {
    let len = rows.first().map_or(0, Vec::len);
    // Beside each row stands how it is made of the given ones.
    let identity = |at: usize| {
        let mut weights = vec![0; rows.len()];
        weights[at] = 1;
        weights
    };
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> =
        rows.iter().enumerate().map(|(at, row)| (row.clone(), identity(at))).collect();
    let mut solved = 0;
    for summand in 0..len {
        let Some(pivot) = (solved..rows.len()).find(|at| rows[*at].0[summand] != 0) else {
            continue;
        };
        rows.swap(solved, pivot);
        let (own, weights) = core::mem::take(&mut rows[solved]);
        let scale = inverse(own[summand]);
        let scaled = |row: &[u8]| {
            let mut result = vec![0; row.len()];
            add_multiple(&mut result, row, scale);
            result
        };
        let (own, weights) = (scaled(&own), scaled(&weights));
        for (row, made_of) in &mut rows {
            let factor = row.get(summand).copied().unwrap_or(0);
            if factor != 0 {
                add_multiple(row, &own, factor);
                add_multiple(made_of, &weights, factor);
            }
        }
        rows[solved] = (own, weights);
        solved += 1;
    }
    let alone = |(row, weights): (Vec<u8>, Vec<u8>)| {
        let summand = row.iter().position(|factor| *factor != 0)?;
        let is_alone = row[summand + 1..].iter().all(|factor| *factor == 0);
        is_alone.then_some(SolvedSummand { summand, weights })
    };
    rows.into_iter().take(solved).filter_map(alone).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counting::mix;

    #[test]
    fn what_sums_determine_is_found_and_nothing_else() {
        // a + 2b, 3a + b, c + d: two summands follow, two do not.
        let rows = [vec![1, 2, 0, 0], vec![3, 1, 0, 0], vec![0, 0, 1, 1]];
        let solved = solve_sums(&rows);
        assert_eq!(solved.iter().map(|one| one.summand).collect::<Vec<_>>(), [0, 1]);
        assert!(solve_sums(&[]).is_empty());
        assert!(solve_sums(&[vec![0, 0]]).is_empty(), "a sum of nothing");
        // The same sum twice says no more than once.
        assert!(solve_sums(&[vec![1, 2], vec![1, 2]]).is_empty());
    }

    proptest! {
        #[test]
        fn lost_symbols_of_any_length_follow_from_as_many_sums(
            lengths in prop::collection::vec(0usize..200, 1..40),
            lost in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
            id: u32,
        ) {
            let symbol = |at: usize| -> Vec<u8> {
                (0..lengths[at]).map(|byte| mix((at * 1000 + byte) as u64) as u8).collect()
            };
            let mut lost: Vec<usize> = lost.iter().map(|at| at.index(lengths.len())).collect();
            lost.sort_unstable();
            lost.dedup();
            let longest = lengths.iter().copied().max().unwrap_or(0);
            // A sum more than is needed: random factors may depend on each other.
            let ids = (0..=lost.len() as u32).map(|more| id.wrapping_add(more));
            let mut sums = Vec::new();
            let mut rows = Vec::new();
            for id in ids {
                let factors = sum_factors(id, lengths.len());
                let mut sum = vec![0; longest];
                for (at, factor) in factors.iter().enumerate() {
                    add_to_sum(&mut sum, &symbol(at), *factor);
                }
                // What has arrived is taken out again.
                for (at, factor) in factors.iter().enumerate().filter(|(at, _)| !lost.contains(at)) {
                    add_to_sum(&mut sum, &symbol(at), *factor);
                }
                rows.push(lost.iter().map(|at| factors[*at]).collect::<Vec<u8>>());
                sums.push(sum);
            }
            let solved = solve_sums(&rows);
            prop_assert_eq!(solved.len(), lost.len());
            for SolvedSummand { summand, weights } in solved {
                let mut restored = vec![0; longest];
                for (sum, weight) in sums.iter().zip(weights) {
                    add_to_sum(&mut restored, sum, weight);
                }
                let mut expected = symbol(lost[summand]);
                expected.resize(longest, 0);
                prop_assert_eq!(restored, expected);
            }
        }
    }
}
