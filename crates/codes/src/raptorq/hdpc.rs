//! The H dense equations over GF(2⁸) (RFC 6330, section 5.3.3.3), never written out: with
//! Y[0] = C[0] and Y[j] = α·Y[j−1] + C[j] they are sums of two Y[j] for most j.

use alloc::vec;
use alloc::vec::Vec;

use super::parameters::Parameters;
use super::tuple::rand;
use crate::gf256::Matrix;

/// For each column j < K' + S − 1, the two equations to which Y[j] is added (the columns of MT).
pub(crate) fn targets(p: &Parameters) -> Vec<[u8; 2]> {
    let h = p.hdpc as u32;
    (1..(p.extended + p.ldpc) as u32)
        .map(|y| {
            let first = rand(y, 6, h);
            [first as u8, ((first + rand(y, 7, h - 1) + 1) % h) as u8]
        })
        .collect()
}

/// Columns whose Y are computed before they are added up: few enough for a processor's first-level cache.
pub(crate) const CHUNK: usize = 32;

/// The same by equation: for each chunk of columns, for each equation, how many of the chunk's Y it takes, and which.
pub(crate) fn schedule(p: &Parameters, targets: &[[u8; 2]]) -> Vec<u8> {
    let mut schedule = Vec::with_capacity(targets.len() * 3);
    for chunk in targets.chunks(CHUNK) {
        for equation in 0..p.hdpc as u8 {
            let start = schedule.len();
            schedule.push(0);
            let columns = chunk.iter().zip(0..).filter(|(pair, _)| pair.contains(&equation));
            schedule.extend(columns.map(|(_, column)| column));
            schedule[start] = (schedule.len() - start - 1) as u8;
        }
    }
    schedule
}

/// The H equations in terms of `unknowns`, when each column j < K' + S is, as far as unknowns go, the sum of those
/// whose bits `column(j)` has.
///
/// Coefficients are kept as eight planes of bits, in which multiplying by α is three exclusive ors and a renaming.
pub(crate) fn coefficients<'a>(
    p: &Parameters,
    targets: &[[u8; 2]],
    unknowns: usize,
    column: impl Fn(usize) -> &'a [u64],
) -> Matrix {
    let words = unknowns.div_ceil(64);
    let mut sums = vec![0u64; p.hdpc * 8 * words];
    let mut y = vec![0u64; 8 * words];
    // Plane i of Y is at (base + i) mod 8.
    let mut base = 0;
    for j in 0..p.extended + p.ldpc {
        base = times_alpha(&mut y, words, base);
        add(&mut y[base * words..][..words], column(j));
        let Some(pair) = targets.get(j) else { break };
        for target in pair {
            let sum = &mut sums[usize::from(*target) * 8 * words..][..8 * words];
            // Both are rings: the part before the wrap, then the part behind it.
            let (low, high) = sum.split_at_mut((8 - base) * words);
            add(low, &y[base * words..]);
            add(high, &y[..base * words]);
        }
    }
    for target in 0..p.hdpc {
        for plane in 0..8 {
            let sum = &mut sums[(target * 8 + plane) * words..][..words];
            add(sum, &y[(base + plane) % 8 * words..][..words]);
        }
        base = times_alpha(&mut y, words, base);
    }
    let mut matrix = Matrix::zero(p.hdpc, unknowns);
    for target in 0..p.hdpc {
        let planes = &sums[target * 8 * words..][..8 * words];
        for (unknown, cell) in matrix.row_mut(target).iter_mut().enumerate() {
            *cell = (0..8).fold(0, |byte, plane| {
                let bit = planes[plane * words + unknown / 64] >> (unknown % 64) & 1;
                byte | (bit as u8) << plane
            });
        }
    }
    matrix
}

/// Multiplies by α: what was plane i becomes plane i + 1, and plane 7 becomes planes 0, 2, 3 and 4.
fn times_alpha(y: &mut [u64], words: usize, base: usize) -> usize {
    let base = (base + 7) % 8;
    for plane in [2, 3, 4] {
        let (from, to) = (base * words, (base + plane) % 8 * words);
        for word in 0..words {
            y[to + word] ^= y[from + word];
        }
    }
    base
}

fn add(sum: &mut [u64], other: &[u64]) {
    sum.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}
