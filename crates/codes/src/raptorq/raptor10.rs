//! The first generation, R10 (RFC 5053): the same machinery over GF(2) alone. In place of HDPC
//! equations it has *half* equations, each of half of the symbols, and no symbol is permanently
//! inactive.

use alloc::vec::Vec;

use super::parameters::{Family, Parameters, next_prime};
use super::random_tables::{V0, V1};
use super::raptor10_table::SYSTEMATIC_INDICES;
use super::tuple::Neighbours;

/// Source symbols in a block (RFC 5053, section 5.1.1).
pub const RAPTOR10_SOURCE_SYMBOLS: core::ops::RangeInclusive<u32> = 4..=8192;

/// The largest prime below 2¹⁶.
const Q: u32 = 65_521;

/// The cumulative degree distribution, times 2²⁰ (section 5.4.4.2), and the degrees.
const DEGREES: [(u32, u32); 7] = [
    (10_241, 1),
    (491_582, 2),
    (712_794, 3),
    (831_695, 4),
    (948_446, 10),
    (1_032_189, 11),
    (1_048_576, 40),
];

/// The parameters of a block of `k` symbols (section 5.4.2.3); `None` if there are none.
pub(crate) fn parameters(k: u32) -> Option<Parameters> {
    let index =
        RAPTOR10_SOURCE_SYMBOLS.contains(&k).then(|| k - RAPTOR10_SOURCE_SYMBOLS.start())?;
    let x = (1..).find(|x| x * (x - 1) >= 2 * k)?;
    let ldpc = next_prime(k.div_ceil(100) + x);
    let half = (1..).find(|h| binomial(*h, h.div_ceil(2)) >= u64::from(k + ldpc))?;
    let intermediate = (k + ldpc + half) as usize;
    Some(Parameters {
        family: Family::Raptor10,
        extended: k as usize,
        systematic_index: u32::from(SYSTEMATIC_INDICES[index as usize]),
        ldpc: ldpc as usize,
        hdpc: 0,
        half: half as usize,
        lt: intermediate,
        intermediate,
        permanent: 0,
        prime: next_prime(intermediate as u32),
    })
}

fn binomial(n: u32, k: u32) -> u64 {
    (0..u64::from(k)).fold(1, |product, i| product * (u64::from(n) - i) / (i + 1))
}

/// The three LDPC equations that source symbol `i` is in (section 5.4.2.3).
pub(crate) fn checks(p: &Parameters, i: usize) -> [usize; 3] {
    let (a, b) = (1 + i / p.ldpc % (p.ldpc - 1), i % p.ldpc);
    [b, (b + a) % p.ldpc, (b + 2 * a) % p.ldpc]
}

/// For each of the first K + S intermediate symbols, the half equations that it is in, as bits:
/// m[j, ⌈H/2⌉], the Gray codes of that many ones in order.
pub(crate) fn half_members(p: &Parameters) -> impl Iterator<Item = u32> {
    let ones = (p.half as u32).div_ceil(2);
    let gray = (0..1u32 << p.half).map(|i| i ^ i >> 1);
    gray.filter(move |g| g.count_ones() == ones).take(p.extended + p.ldpc)
}

/// Rand[X, i, m] (section 5.4.4.1).
fn rand(x: u32, i: u32, m: u32) -> u32 {
    let at = |value: u32| (value.wrapping_add(i) % 256) as usize;
    (V0[at(x)] ^ V1[at(x >> 8)]) % m
}

/// The intermediate symbols of encoding symbol `isi` (sections 5.4.4.3 and 5.4.4.4).
pub(crate) fn neighbours(p: &Parameters, isi: u32) -> Neighbours {
    let (l, prime) = (p.intermediate as u32, p.prime);
    let a = (53_591 + p.systematic_index * 997) % Q;
    let b = 10_267 * (p.systematic_index + 1) % Q;
    let y = ((u64::from(b) + u64::from(isi) * u64::from(a)) % u64::from(Q)) as u32;
    let v = rand(y, 0, 1 << 20);
    let index: usize = DEGREES.iter().map(|(bound, _)| usize::from(v >= *bound)).sum();
    let d = DEGREES[index].1.min(l);
    let (step, mut at) = (1 + rand(y, 1, prime - 1), rand(y, 2, prime));
    let mut columns = Vec::with_capacity(d as usize);
    for _ in 0..d {
        while at >= l {
            at = (at + step) % prime;
        }
        columns.push(at as u16);
        at = (at + step) % prime;
    }
    Neighbours::all_lt(&columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fnv1a;

    #[test]
    fn the_indices_are_the_rfcs() {
        let bytes = SYSTEMATIC_INDICES.iter().flat_map(|index| index.to_be_bytes());
        assert_eq!(fnv1a(bytes), 0xb090_0236_c46b_9635);
        assert_eq!(SYSTEMATIC_INDICES[..5], [18, 14, 61, 46, 14]);
        assert_eq!(SYSTEMATIC_INDICES[8184..], [1474, 2665, 235, 1474, 2665]);
    }

    #[test]
    fn parameters_are_those_of_the_specification() {
        for (k, s, h, l, prime) in [
            (4, 5, 5, 14, 17),
            (44, 11, 8, 63, 67),
            (100, 17, 9, 126, 127),
            (1024, 59, 13, 1096, 1097),
            (4096, 137, 15, 4248, 4253),
            (8192, 211, 16, 8419, 8419),
        ] {
            let p = parameters(k).unwrap();
            assert_eq!((p.ldpc, p.half, p.intermediate, p.prime), (s, h, l, prime), "K = {k}");
        }
        assert_eq!((parameters(3), parameters(8193)), (None, None));
    }
}
