//! Sums of multiples of symbols over GF(2⁸).

use crate::gf256::{EXP, LOG};
use crate::simd::lane::{LINE, Lane};
use crate::simd::{Kernel, Level};

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
    use alloc::vec::Vec;

    use super::*;
    use crate::counting::mix;

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
}
