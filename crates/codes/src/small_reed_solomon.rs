//! Reed-Solomon over GF(2⁸) for blocks of at most 255 symbols, as FLUTE and others send it
//! (RFC 5510).
//!
//! The encoding symbol `esi` is the value at the point xₑₛᵢ of the polynomial of a degree below k
//! whose values at x₀ … xₖ₋₁ are the source symbols: that is GM = V⁻¹ₖₖ · Vₖₙ of section 8.2.1, for
//! a Vandermonde matrix V of these points.

use alloc::vec;
use alloc::vec::Vec;

use crate::gf256::{EXP, inverse, mul};
use crate::multiples::add_multiple_of_symbol;
use crate::simd::Level;

/// The points of the Vandermonde matrix. Two that differ make different repair symbols, and no
/// receiver can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReedSolomonPoints {
    /// 0, 1, α, α², …: those of zfec and the crate `flute`, and so what others send.
    #[default]
    Reference,
    /// 1, α, α², …: the formula of RFC 5510, section 8.2.1, to the letter.
    Formula,
}

/// The code for blocks of k source symbols.
#[derive(Clone, Debug)]
pub struct SmallReedSolomon {
    points: ReedSolomonPoints,
    k: u8,
}

/// Symbols that a block has at most, source and repair: q - 1 (RFC 5510, section 6.1).
const MAX_SYMBOLS: u32 = 255;

impl SmallReedSolomon {
    /// Symbols that a block has at most, source and repair.
    pub const MAX_SYMBOLS: u32 = MAX_SYMBOLS;

    /// The code for blocks of `k` source symbols; `None` unless that is 1 to 255.
    pub fn new(k: u32, points: ReedSolomonPoints) -> Option<Self> {
        let k = u8::try_from(k).ok().filter(|k| *k > 0)?;
        Some(Self { points, k })
    }

    /// Repair symbols of a block, one after another: those in `esis`, of which others than repair
    /// symbols are zeros. `data` are the source symbols, of `symbol_size` bytes each; what lacks at
    /// its end counts as zeros.
    pub fn repair(&self, symbol_size: usize, data: &[u8], esis: core::ops::Range<u32>) -> Vec<u8> {
        let known: Vec<u8> = (0..u32::from(self.k)).map(|esi| self.point(esi)).collect();
        let weights = weights(&known);
        let mut out = vec![0; esis.len() * symbol_size];
        for (esi, out) in esis.zip(out.chunks_exact_mut(symbol_size.max(1))) {
            if (u32::from(self.k)..MAX_SYMBOLS).contains(&esi) {
                let sources = data.chunks(symbol_size.max(1));
                combine(self.point(esi), &known, &weights, sources, out);
            }
        }
        out
    }

    /// Restores source symbols in place; false if too few symbols are there. `data` are the k
    /// source symbols, of which those in `missing`, in ascending order, are not there; `repairs`
    /// are repair symbols, each once. All have `symbol_size` bytes.
    pub fn restore(
        &self,
        symbol_size: usize,
        data: &mut [u8],
        missing: &[u32],
        repairs: &[(u32, &[u8])],
    ) -> bool {
        let k = u32::from(self.k);
        let is_repair = |(esi, symbol): &&(u32, &[u8])| {
            (k..MAX_SYMBOLS).contains(esi) && symbol.len() == symbol_size
        };
        let repairs: Vec<_> = repairs.iter().filter(is_repair).take(missing.len()).collect();
        if repairs.len() < missing.len()
            || data.len() != self.k as usize * symbol_size
            || missing.iter().any(|esi| *esi >= k)
        {
            return false;
        }
        let present: Vec<u32> = (0..k).filter(|esi| missing.binary_search(esi).is_err()).collect();
        let known = present.iter().chain(repairs.iter().map(|(esi, _)| esi));
        let known: Vec<u8> = known.map(|esi| self.point(*esi)).collect();
        let weights = weights(&known);
        let mut restored = vec![0; missing.len() * symbol_size];
        for (esi, out) in missing.iter().zip(restored.chunks_exact_mut(symbol_size.max(1))) {
            let sources = present.iter().map(|esi| &data[*esi as usize * symbol_size..]);
            let sources = sources.map(|rest| &rest[..symbol_size]);
            let all = sources.chain(repairs.iter().map(|(_, symbol)| *symbol));
            combine(self.point(*esi), &known, &weights, all, out);
        }
        for (esi, symbol) in missing.iter().zip(restored.chunks_exact(symbol_size.max(1))) {
            data[*esi as usize * symbol_size..][..symbol_size].copy_from_slice(symbol);
        }
        true
    }

    /// The point of an encoding symbol.
    fn point(&self, esi: u32) -> u8 {
        let power = |exponent: u32| EXP[exponent as usize % 255];
        match (self.points, esi) {
            (ReedSolomonPoints::Reference, 0) => 0,
            (ReedSolomonPoints::Reference, esi) => power(esi - 1),
            (ReedSolomonPoints::Formula, esi) => power(esi),
        }
    }
}

/// The barycentric weights of points that differ: 1 / ∏ (xᵢ - xⱼ).
fn weights(points: &[u8]) -> Vec<u8> {
    let weight = |(i, x): (usize, &u8)| {
        let others = points.iter().enumerate().filter(|(j, _)| *j != i);
        inverse(others.fold(1, |product, (_, other)| mul(product, x ^ other)))
    };
    points.iter().enumerate().map(weight).collect()
}

/// The value at a further point of the polynomial that has these symbols at the known points.
fn combine<'a>(
    point: u8,
    known: &[u8],
    weights: &[u8],
    symbols: impl Iterator<Item = &'a [u8]>,
    out: &mut [u8],
) {
    let all = known.iter().fold(1, |product, x| mul(product, point ^ x));
    let level = Level::detect();
    for ((x, weight), symbol) in known.iter().zip(weights).zip(symbols) {
        let factor = mul(mul(all, inverse(point ^ x)), *weight);
        add_multiple_of_symbol(level, &mut out[..symbol.len()], symbol, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;

    /// The source symbols of the golden values.
    fn source(k: u32, size: usize) -> Vec<u8> {
        let byte = |i: usize, j: usize| (i * 31 + j * 7 + (i * j) % 5) as u8;
        (0..k as usize).flat_map(|i| (0..size).map(move |j| byte(i, j))).collect()
    }

    #[test]
    fn repair_symbols_are_those_of_zfec() {
        // zfec 1.6.0.0: `zfec.Encoder(k, n).encode(source)`.
        let of = |k, n, size| {
            let code = SmallReedSolomon::new(k, ReedSolomonPoints::Reference).unwrap();
            code.repair(size, &source(k, size), k..n)
        };
        assert_eq!(
            of(4, 7, 8),
            [
                [43, 51, 140, 139, 250, 12, 39, 56],
                [128, 58, 218, 194, 193, 163, 163, 234],
                [75, 77, 166, 117, 130, 249, 109, 30]
            ]
            .concat()
        );
        assert_eq!(of(1, 3, 5), [0, 7, 14, 21, 28, 0, 7, 14, 21, 28]);
        let last = of(200, 255, 3);
        assert_eq!(last[..9], [44, 126, 93, 1, 214, 242, 253, 201, 152]);
        assert_eq!(last[last.len() - 3..], [69, 96, 217]);
    }

    #[test]
    fn the_formulas_points_are_powers_from_the_first_on() {
        // For k = 2 the line through (1, a) and (α, b), at α²: a + (a + b) (1 + α²) / (1 + α), and
        // (1 + α²) / (1 + α) = 1 + α = 3.
        let code = SmallReedSolomon::new(2, ReedSolomonPoints::Formula).unwrap();
        let (a, b) = (0x53, 0xca);
        assert_eq!(code.repair(1, &[a, b], 2..3), [a ^ mul(a ^ b, 3)]);
        let other = SmallReedSolomon::new(2, ReedSolomonPoints::Reference).unwrap();
        assert_eq!(other.repair(1, &[a, b], 2..3), [a ^ mul(a ^ b, 2)]);
    }

    #[test]
    fn any_k_symbols_restore_the_block() {
        for seed in 0..if cfg!(miri) { 3 } else { 300 } {
            let draw = |n: u64, below: u64| mix(seed * 1000 + n) % below;
            let points = match seed % 2 {
                0 => ReedSolomonPoints::Reference,
                _ => ReedSolomonPoints::Formula,
            };
            let k = 1 + draw(0, 255) as u32;
            let size = 1 + draw(1, 200) as usize;
            let code = SmallReedSolomon::new(k, points).unwrap();
            let data: Vec<u8> = (0..k as usize * size).map(|i| mix(i as u64) as u8).collect();
            let all = code.repair(size, &data, k..MAX_SYMBOLS);
            let missing: Vec<u32> =
                (0..k).filter(|esi| draw(10 + u64::from(*esi), 3) == 0).collect();
            let symbols = (k..MAX_SYMBOLS).zip(all.chunks_exact(size));
            let repairs: Vec<_> =
                symbols.filter(|(esi, _)| draw(400 + u64::from(*esi), 4) > 0).collect();
            let mut damaged = data.clone();
            for esi in &missing {
                damaged[*esi as usize * size..][..size].fill(0x55);
            }
            let done = code.restore(size, &mut damaged, &missing, &repairs);
            assert_eq!(done, repairs.len() >= missing.len(), "seed {seed}");
            assert!(!done || damaged == data, "seed {seed}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        let new = |k| SmallReedSolomon::new(k, ReedSolomonPoints::Reference);
        assert!(new(0).is_none() && new(256).is_none() && new(255).is_some());
        let code = new(3).unwrap();
        assert!(!code.restore(2, &mut [0; 5], &[], &[]), "no whole symbols");
        assert!(!code.restore(2, &mut [0; 6], &[3], &[(3, &[0, 0])]), "no source symbol");
        assert!(!code.restore(2, &mut [0; 6], &[0], &[(3, &[0])]), "a short repair symbol");
        assert!(!code.restore(2, &mut [0; 6], &[0], &[(255, &[0, 0])]), "beyond the limit");
    }
}
