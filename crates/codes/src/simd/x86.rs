//! Lines in the registers of x86-64: AVX2, AVX-512, and AVX-512 with GFNI.
//!
//! Safety of all that is unsafe here: loads and stores are given references to 64 bytes, and the
//! instructions exist because these types are only used inside functions that
//! [`Level`](super::Level) calls after it found the features.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::lane::{LINE, Lane};
use super::prefetch::prefetch;
use crate::gf256;

/// Multiplication by a factor as the 8 × 8 bit matrix that `gf2p8affineqb` takes: byte 7−i is the
/// row that makes bit i.
const AFFINE: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut bit = 0;
        while bit < 8 {
            let product = gf256::mul(factor as u8, 1 << bit);
            let mut row = 0;
            while row < 8 {
                if product >> row & 1 == 1 {
                    matrices[factor] |= 1 << (8 * (7 - row) + bit);
                }
                row += 1;
            }
            bit += 1;
        }
        factor += 1;
    }
    matrices
};

static AFFINE_MATRICES: [u64; 256] = AFFINE;

#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256i; 2]);

impl Lane for Avx2 {
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    fn load(bytes: &[u8; LINE]) -> Self {
        // SAFETY: see the module.
        unsafe {
            let p = bytes.as_ptr().cast::<__m256i>();
            Self([_mm256_loadu_si256(p), _mm256_loadu_si256(p.add(1))])
        }
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; LINE]) {
        // SAFETY: see the module.
        unsafe {
            let p = bytes.as_mut_ptr().cast::<__m256i>();
            _mm256_storeu_si256(p, self.0[0]);
            _mm256_storeu_si256(p.add(1), self.0[1]);
        }
    }

    #[inline(always)]
    fn prefetch(line: &[u8; LINE]) {
        prefetch(line);
    }

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: see the module.
        unsafe { Self([_mm256_setzero_si256(); 2]) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe {
            Self([_mm256_xor_si256(self.0[0], other.0[0]), _mm256_xor_si256(self.0[1], other.0[1])])
        }
    }

    #[inline(always)]
    fn times_alpha(self) -> Self {
        // SAFETY: see the module.
        unsafe {
            let polynomial = _mm256_set1_epi8(gf256::POLYNOMIAL as i8);
            let mut result = self.0;
            for x in &mut result {
                let carry = _mm256_cmpgt_epi8(_mm256_setzero_si256(), *x);
                *x = _mm256_xor_si256(_mm256_add_epi8(*x, *x), _mm256_and_si256(carry, polynomial));
            }
            Self(result)
        }
    }

    #[inline(always)]
    fn factor(value: u8) -> Self::Factor {
        let (low, high) = &gf256::NIBBLES[value as usize];
        // SAFETY: see the module; each table has 16 bytes.
        unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(low.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(high.as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    fn mul(self, (low, high): Self::Factor) -> Self {
        // SAFETY: see the module.
        unsafe {
            let mask = _mm256_set1_epi8(0x0f);
            let mut result = self.0;
            for x in &mut result {
                let top = _mm256_and_si256(_mm256_srli_epi16::<4>(*x), mask);
                *x = _mm256_xor_si256(
                    _mm256_shuffle_epi8(low, _mm256_and_si256(*x, mask)),
                    _mm256_shuffle_epi8(high, top),
                );
            }
            Self(result)
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

impl Lane for Avx512 {
    type Factor = (__m512i, __m512i);
    const MANY: bool = true;

    #[inline(always)]
    fn load(bytes: &[u8; LINE]) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_loadu_si512(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; LINE]) {
        // SAFETY: see the module.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn prefetch(line: &[u8; LINE]) {
        prefetch(line);
    }

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see the module.
        unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    fn times_alpha(self) -> Self {
        // SAFETY: see the module.
        unsafe {
            let polynomial = _mm512_set1_epi8(gf256::POLYNOMIAL as i8);
            let carry = _mm512_movepi8_mask(self.0);
            let reduction = _mm512_maskz_mov_epi8(carry, polynomial);
            Self(_mm512_xor_si512(_mm512_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    fn factor(value: u8) -> Self::Factor {
        let (low, high) = &gf256::NIBBLES[value as usize];
        // SAFETY: see the module; each table has 16 bytes.
        unsafe {
            (
                _mm512_broadcast_i32x4(_mm_loadu_si128(low.as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_loadu_si128(high.as_ptr().cast())),
            )
        }
    }

    #[inline(always)]
    fn mul(self, (low, high): Self::Factor) -> Self {
        // SAFETY: see the module.
        unsafe {
            let mask = _mm512_set1_epi8(0x0f);
            let top = _mm512_and_si512(_mm512_srli_epi16::<4>(self.0), mask);
            Self(_mm512_xor_si512(
                _mm512_shuffle_epi8(low, _mm512_and_si512(self.0, mask)),
                _mm512_shuffle_epi8(high, top),
            ))
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Gfni(Avx512);

impl Lane for Gfni {
    type Factor = __m512i;
    const MANY: bool = true;

    #[inline(always)]
    fn load(bytes: &[u8; LINE]) -> Self {
        Self(Avx512::load(bytes))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; LINE]) {
        self.0.store(bytes);
    }

    #[inline(always)]
    fn prefetch(line: &[u8; LINE]) {
        prefetch(line);
    }

    #[inline(always)]
    fn zero() -> Self {
        Self(Avx512::zero())
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    #[inline(always)]
    fn times_alpha(self) -> Self {
        self.mul(Self::factor(2))
    }

    #[inline(always)]
    fn factor(value: u8) -> Self::Factor {
        // SAFETY: see the module.
        unsafe { _mm512_set1_epi64(AFFINE_MATRICES[value as usize] as i64) }
    }

    #[inline(always)]
    fn mul(self, factor: Self::Factor) -> Self {
        // SAFETY: see the module.
        unsafe { Self(Avx512(_mm512_gf2p8affine_epi64_epi8::<0>(self.0.0, factor))) }
    }
}
