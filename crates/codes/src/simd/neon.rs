//! Lines in the registers of aarch64, where NEON is always there.
#![allow(unsafe_code)]

use core::arch::aarch64::*;

use super::lane::{LINE, Lane};
use crate::gf256;

#[derive(Clone, Copy)]
pub(crate) struct Neon([uint8x16_t; 4]);

impl Lane for Neon {
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    fn load(bytes: &[u8; LINE]) -> Self {
        let (parts, _) = bytes.as_chunks::<16>();
        // SAFETY: each part has 16 bytes, and aarch64 has NEON.
        Self(core::array::from_fn(|i| unsafe { vld1q_u8(parts[i].as_ptr()) }))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; LINE]) {
        let (parts, _) = bytes.as_chunks_mut::<16>();
        for (part, value) in parts.iter_mut().zip(self.0) {
            // SAFETY: each part has 16 bytes, and aarch64 has NEON.
            unsafe { vst1q_u8(part.as_mut_ptr(), value) }
        }
    }

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: aarch64 has NEON.
        unsafe { Self([vdupq_n_u8(0); 4]) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: aarch64 has NEON.
        Self(core::array::from_fn(|i| unsafe { veorq_u8(self.0[i], other.0[i]) }))
    }

    #[inline(always)]
    fn times_alpha(self) -> Self {
        // SAFETY: aarch64 has NEON.
        Self(self.0.map(|x| unsafe {
            let carry = vreinterpretq_u8_s8(vshrq_n_s8::<7>(vreinterpretq_s8_u8(x)));
            veorq_u8(vshlq_n_u8::<1>(x), vandq_u8(carry, vdupq_n_u8(gf256::POLYNOMIAL)))
        }))
    }

    #[inline(always)]
    fn factor(value: u8) -> Self::Factor {
        let (low, high) = &gf256::NIBBLES[usize::from(value)];
        // SAFETY: each table has 16 bytes, and aarch64 has NEON.
        unsafe { (vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())) }
    }

    #[inline(always)]
    fn mul(self, (low, high): Self::Factor) -> Self {
        // SAFETY: aarch64 has NEON.
        Self(self.0.map(|x| unsafe {
            let bottom = vandq_u8(x, vdupq_n_u8(0x0f));
            veorq_u8(vqtbl1q_u8(low, bottom), vqtbl1q_u8(high, vshrq_n_u8::<4>(x)))
        }))
    }
}
