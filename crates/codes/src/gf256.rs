//! Arithmetic in GF(2⁸) with the polynomial x⁸ + x⁴ + x³ + x² + 1 (0x11d), whose generator is 2:
//! the field of RFC 6330, section 5.7.

/// The low byte of the polynomial.
pub(crate) const POLYNOMIAL: u8 = 0x1d;

/// Powers of the generator, twice over, so that a sum of two logarithms needs no reduction
/// (`OCT_EXP`).
pub(crate) const EXP: [u8; 510] = {
    let mut table = [0; 510];
    let (mut i, mut power) = (0, 1u8);
    while i < 510 {
        table[i] = power;
        power = times_alpha(power);
        i += 1;
    }
    table
};

/// Logarithms; that of zero does not exist and reads 0 (`OCT_LOG`).
pub(crate) const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// The product with the generator α = 2.
pub(crate) const fn times_alpha(a: u8) -> u8 {
    (a << 1) ^ (POLYNOMIAL & (a >> 7).wrapping_neg())
}

/// The product.
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// The products of a factor with every low and every high half of a byte, as the shuffles look them
/// up.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static NIBBLES: [([u8; 16], [u8; 16]); 256] = {
    let mut tables = [([0; 16], [0; 16]); 256];
    let mut factor = 0;
    while factor < 256 {
        let mut half = 0;
        while half < 16 {
            tables[factor].0[half] = mul(factor as u8, half as u8);
            tables[factor].1[half] = mul(factor as u8, (half << 4) as u8);
            half += 1;
        }
        factor += 1;
    }
    tables
};

/// The inverse of `a`, which must not be zero.
pub(crate) const fn inverse(a: u8) -> u8 {
    EXP[255 - LOG[a as usize] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fnv1a;

    #[test]
    fn the_tables_are_the_rfcs() {
        // Sections 5.7.3 and 5.7.4: the first and last entries as printed, and the whole by
        // checksum.
        assert_eq!(EXP[..10], [1, 2, 4, 8, 16, 32, 64, 128, 29, 58]);
        assert_eq!(EXP[505..], [108, 216, 173, 71, 142][..]);
        assert_eq!(LOG[1..9], [0, 1, 25, 2, 50, 26, 198, 3]);
        assert_eq!(LOG[253..], [80, 88, 175]);
        assert_eq!(
            fnv1a(EXP),
            fnv1a((0..510).map(|i| (0..i % 255).fold(1, |a, _| times_alpha(a))))
        );
    }

    #[test]
    fn products_are_those_of_polynomials() {
        let step = if cfg!(miri) { 17 } else { 1 };
        for a in (0..=255u8).step_by(step) {
            for b in (0..=255u8).step_by(step) {
                let mut product = 0;
                for bit in 0..8 {
                    if b >> bit & 1 == 1 {
                        product ^= (0..bit).fold(a, |a, _| times_alpha(a));
                    }
                }
                assert_eq!(mul(a, b), product);
            }
            assert!(a == 0 || mul(a, inverse(a)) == 1);
        }
    }
}
