//! The failure probability of a real code without its bytes.

/// P(decoding fails) with h symbols beyond k, for RaptorQ: measured 5·10⁻³ with none, 2·10⁻⁵ with one
/// (the RFC's bounds are 10⁻² and 10⁻⁴), none seen with two. `tests/failure_rate.rs` measures it.
pub(crate) const RAPTORQ: [f64; 2] = [5e-3, 2e-5];

/// Whether a decoder that holds the symbols hashed into `digest`, `extra` of them beyond k, would fail. A real
/// code's success depends on nothing but which symbols arrived; so does this.
pub(crate) fn fails(digest: u64, extra: u32) -> bool {
    let Some(probability) = RAPTORQ.get(extra as usize) else { return false };
    (mix(digest) >> 11) as f64 * (1.0 / (1u64 << 53) as f64) < *probability
}

/// Spreads a value over 64 bits (the finaliser of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_come_as_often_as_the_real_codes() {
        let trials = 200_000u64;
        let failed = (0..trials).filter(|i| fails(i * 77, 0)).count() as f64;
        let expected = trials as f64 * RAPTORQ[0];
        assert!((failed - expected).abs() < 4.0 * expected.sqrt(), "{failed} of {trials}");
        assert!(!fails(1, 2));
    }
}
