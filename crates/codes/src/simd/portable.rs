//! Lines in eight words of 64 bits: for processors without a kernel of their own, and as the twin
//! that every other kernel is tested against.

use super::lane::{LINE, Lane};
use crate::gf256;

#[derive(Clone, Copy)]
pub(crate) struct Words([u64; 8]);

const EACH: u64 = 0x0101_0101_0101_0101;

impl Lane for Words {
    /// The factor times 1, 2, 4, …, 128: one byte for each bit of a byte.
    type Factor = [u64; 8];

    #[inline(always)]
    fn load(bytes: &[u8; LINE]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(core::array::from_fn(|i| u64::from_le_bytes(words[i])))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; LINE]) {
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (word, value) in words.iter_mut().zip(self.0) {
            *word = value.to_le_bytes();
        }
    }

    #[inline(always)]
    fn zero() -> Self {
        Self([0; 8])
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    #[inline(always)]
    fn times_alpha(self) -> Self {
        Self(self.0.map(|word| {
            let carry = word >> 7 & EACH;
            (word & (0x7f * EACH)) << 1 ^ carry.wrapping_mul(u64::from(gf256::POLYNOMIAL))
        }))
    }

    #[inline(always)]
    fn factor(value: u8) -> Self::Factor {
        let mut power = value;
        core::array::from_fn(|_| {
            let this = u64::from(power);
            power = gf256::times_alpha(power);
            this
        })
    }

    #[inline(always)]
    fn mul(self, factor: Self::Factor) -> Self {
        Self(self.0.map(|word| {
            (0..8).fold(0, |sum, bit| sum ^ (word >> bit & EACH).wrapping_mul(factor[bit]))
        }))
    }
}
