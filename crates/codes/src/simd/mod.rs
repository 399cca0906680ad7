//! Kernels over lines of 64 bytes, in the widest registers that the processor has.
//!
//! A kernel is written once, over [`Lane`], and compiled for each kind of register; [`Level::run`]
//! calls the one that fits. The portable one is the safe twin that the others are tested against.

pub(crate) mod lane;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
pub(crate) mod prefetch;
#[cfg(target_arch = "x86_64")]
mod x86;

use lane::Lane;

/// What the processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What no other is needed for: where NEON always is, only tests run it.
    #[cfg_attr(target_arch = "aarch64", allow(dead_code))]
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 with GFNI, which multiplies in a Galois field in one instruction.
    #[cfg(target_arch = "x86_64")]
    Gfni,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Work that is compiled once for each kind of register. `run` must be `#[inline(always)]`, and so
/// must everything that it calls with a [`Lane`]: not a closure, and so nothing like `array::map`,
/// for what is compiled by itself is compiled without the processor's feature, and calls a function
/// for each instruction.
pub(crate) trait Kernel {
    type Output;
    fn run<L: Lane>(self) -> Self::Output;
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
macro_rules! has {
    ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
}
/// Without the standard library nobody asks the processor: what the compiler was told counts.
#[cfg(all(target_arch = "x86_64", not(feature = "std")))]
macro_rules! has {
    ($($feature:tt),*) => { $(cfg!(target_feature = $feature))&&* };
}

impl Level {
    /// The best that this processor can do.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has!("avx512f", "avx512bw") {
                return if has!("gfni") { Self::Gfni } else { Self::Avx512 };
            }
            if has!("avx2") {
                return Self::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        return Self::Neon;
        #[cfg(not(target_arch = "aarch64"))]
        Self::Portable
    }

    /// All that this processor can do, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> alloc::vec::Vec<Self> {
        let mut levels = alloc::vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(has!("avx2").then_some(Self::Avx2));
            levels.extend(has!("avx512f", "avx512bw").then_some(Self::Avx512));
            levels.extend(has!("avx512f", "avx512bw", "gfni").then_some(Self::Gfni));
        }
        #[cfg(target_arch = "aarch64")]
        levels.push(Self::Neon);
        levels
    }

    /// Runs a kernel. The level must have come from [`detect`](Self::detect) or [`all`](Self::all).
    #[allow(unsafe_code)]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn avx2<K: Kernel>(kernel: K) -> K::Output {
                kernel.run::<x86::Avx2>()
            }
            #[target_feature(enable = "avx512f,avx512bw")]
            fn avx512<K: Kernel>(kernel: K) -> K::Output {
                kernel.run::<x86::Avx512>()
            }
            #[target_feature(enable = "avx512f,avx512bw,gfni")]
            fn gfni<K: Kernel>(kernel: K) -> K::Output {
                kernel.run::<x86::Gfni>()
            }
            // SAFETY: a level exists only where its features were found.
            unsafe {
                match self {
                    Self::Portable => {}
                    Self::Avx2 => return avx2(kernel),
                    Self::Avx512 => return avx512(kernel),
                    Self::Gfni => return gfni(kernel),
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if self == Self::Neon {
            return kernel.run::<neon::Neon>();
        }
        kernel.run::<portable::Words>()
    }
}

#[cfg(test)]
mod tests {
    use super::lane::LINE;
    use super::*;
    use crate::gf256;

    struct Everything<'a>(&'a [u8; LINE], &'a [u8; LINE], u8);

    impl Kernel for Everything<'_> {
        type Output = [[u8; LINE]; 4];

        #[inline(always)]
        fn run<L: Lane>(self) -> Self::Output {
            let (a, b) = (L::load(self.0), L::load(self.1));
            let results = [a.xor(b), a.times_alpha(), a.mul(L::factor(self.2)), L::zero().xor(b)];
            let mut bytes = [[0; LINE]; 4];
            for (bytes, result) in bytes.iter_mut().zip(results) {
                result.store(bytes);
            }
            bytes
        }
    }

    #[test]
    fn every_level_computes_what_the_field_says() {
        let levels = Level::all();
        assert!(levels.contains(&Level::detect()));
        let a: [u8; LINE] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        let b: [u8; LINE] = core::array::from_fn(|i| (i * 101 + 3) as u8);
        // Miri takes a thousand times as long.
        for factor in (0..=255).step_by(if cfg!(miri) { 15 } else { 1 }) {
            let expected = [
                core::array::from_fn(|i| a[i] ^ b[i]),
                a.map(gf256::times_alpha),
                a.map(|a| gf256::mul(a, factor)),
                b,
            ];
            for level in &levels {
                assert_eq!(level.run(Everything(&a, &b, factor)), expected, "{level:?} {factor}");
            }
        }
    }
}
