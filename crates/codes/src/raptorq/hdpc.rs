//! The H dense equations over GF(2⁸) (RFC 6330, section 5.3.3.3), never written out: with
//! Y[0] = C[0] and Y[j] = α·Y[j−1] + C[j] they are sums of two Y[j] for most j.

use alloc::vec;
use alloc::vec::Vec;

use super::echoes::Echoes;
use super::parameters::Parameters;
use super::tuple::rand;

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

/// Columns whose Y are computed before they are added up: few enough for a processor's first-level
/// cache.
pub(crate) const CHUNK: usize = 32;

/// The same by equation: for each chunk of columns, for each equation, how many of the chunk's Y it
/// takes, and which.
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

/// The most HDPC equations that there are (RFC 6330, table 2).
pub(crate) const MAX_EQUATIONS: usize = 16;

/// The H equations in terms of the inactive columns: for each, its coefficient in each equation.
pub(crate) fn coefficients(
    p: &Parameters,
    targets: &[[u8; 2]],
    echoes: &Echoes,
) -> Vec<[u8; MAX_EQUATIONS]> {
    let mut result = vec![[0; MAX_EQUATIONS]; echoes.inactive().len()];
    let words = echoes.words();
    let echoes = &echoes.bits()[..(p.extended + p.ldpc) * words];
    let mut from = 0;
    while from < words {
        let cells = &mut result[from * 64..];
        from += match words - from {
            1 => part::<1>(p, targets, echoes, words, from, cells),
            2 | 3 => part::<2>(p, targets, echoes, words, from, cells),
            _ => part::<4>(p, targets, echoes, words, from, cells),
        };
    }
    result
}

/// Coefficients of `W` words of unknowns: byte `i` of one is bit `i` of eight planes, in which
/// multiplying by α is three exclusive ors and a renaming.
type Planes<const W: usize> = [[u64; W]; 8];

/// The unknowns of words `from..from + W`; yields W.
fn part<const W: usize>(
    p: &Parameters,
    targets: &[[u8; 2]],
    echoes: &[u64],
    words: usize,
    from: usize,
    cells: &mut [[u8; MAX_EQUATIONS]],
) -> usize {
    let mut sums: Vec<Planes<W>> = vec![[[0; W]; 8]; p.hdpc];
    let mut planes = [[0; W]; STEPS + 8];
    let mut start = STEPS;
    for (j, echo) in echoes.chunks_exact(words).enumerate() {
        times_alpha(&mut planes, &mut start);
        add(&mut planes[start], &echo[from..]);
        let Some(pair) = targets.get(j) else { break };
        let y: &Planes<W> = planes[start..].first_chunk().expect("there are eight");
        for target in pair {
            add_planes(&mut sums[usize::from(*target)], y);
        }
    }
    for (equation, sum) in sums.iter_mut().enumerate() {
        let y: &Planes<W> = planes[start..].first_chunk().expect("there are eight");
        add_planes(sum, y);
        times_alpha(&mut planes, &mut start);
        for (word, cells) in (0..W).zip(cells.chunks_mut(64)) {
            for (byte, cells) in cells.chunks_mut(8).enumerate() {
                let bits = core::array::from_fn(|plane| (sum[plane][word] >> (8 * byte)) as u8);
                let column = transposed(u64::from_le_bytes(bits)).to_le_bytes();
                for (cell, value) in cells.iter_mut().zip(column) {
                    cell[equation] = value;
                }
            }
        }
    }
    W
}

/// Multiplications between moves of Y.
const STEPS: usize = 64;

/// Multiplies Y by α, which is eight planes from `start` on: what was plane i becomes plane i + 1,
/// and plane 7 becomes planes 0, 2, 3 and 4.
fn times_alpha<const W: usize>(planes: &mut [[u64; W]; STEPS + 8], start: &mut usize) {
    if *start == 0 {
        planes.copy_within(..8, STEPS);
        *start = STEPS;
    }
    *start -= 1;
    let last = planes[*start + 8];
    planes[*start] = last;
    for plane in [2, 3, 4] {
        add(&mut planes[*start + plane], &last);
    }
}

/// Eight bytes of eight bits, as a matrix, transposed (Warren, Hacker's Delight, section 7-3).
const fn transposed(mut x: u64) -> u64 {
    let mut t = (x ^ x >> 7) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000_cccc_0000_cccc;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ t << 28
}

fn add(sum: &mut [u64], other: &[u64]) {
    sum.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

fn add_planes<const W: usize>(sum: &mut Planes<W>, other: &Planes<W>) {
    sum.iter_mut().zip(other).for_each(|(a, b)| add(a, b));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;

    #[test]
    fn a_matrix_is_transposed() {
        for seed in 0..100 {
            let (x, y) = (mix(seed), transposed(mix(seed)));
            for bit in 0..64 {
                assert_eq!(x >> bit & 1, y >> (bit % 8 * 8 + bit / 8) & 1);
            }
        }
    }
}
