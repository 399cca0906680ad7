//! The failure probabilities of the codes, and how a code without bytes fails as often.
//! `tests/failure_rate.rs` measures them.

/// RaptorQ with h symbols beyond k: measured 5·10⁻³ with none, 2·10⁻⁵ with one (the RFC's bounds
/// are 10⁻² and 10⁻⁴), none seen with two.
pub(crate) fn raptorq(extra: u32) -> f64 {
    [5e-3, 2e-5].get(extra as usize).copied().unwrap_or(0.0)
}

/// R10: 0.85 · 0.567ʰ (Luby and others).
pub(crate) fn raptor10(extra: u32) -> f64 {
    0.85 * libm::pow(0.567, f64::from(extra))
}

/// The code of the 2015 prototype, whose blocks have 63,536 symbols: the overhead that a block
/// needs is normal, with the mean and the standard deviation of 500 measured blocks.
pub(crate) fn legacy_byte(k: u32, extra: u32) -> f64 {
    let overhead = f64::from(extra) / f64::from(k);
    0.5 * libm::erfc((overhead - MEAN) / DEVIATION * core::f64::consts::FRAC_1_SQRT_2)
}

const MEAN: f64 = 0.0394;
const DEVIATION: f64 = 0.0022;

/// The overhead that a block of the 2015 prototype needs, as a share of its 63,536 symbols, drawn
/// from the measured distribution; the same for the same `luck`.
pub fn prototype_overhead(luck: u64) -> f64 {
    // The sum of twelve uniform numbers is as good as normal, with a deviation of one.
    let uniform = |draw| (mix(luck ^ mix(draw)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    let normal = (1..=12).map(uniform).sum::<f64>() - 6.0;
    MEAN + DEVIATION * normal
}

/// An LT code with robust soliton (c = 0.03, δ = 0.5): the overhead that it needs is log-normal,
/// wider above its median than below. Fitted to thousands of blocks of 100 to 65,536 symbols;
/// medians are within a tenth, and what nine blocks in ten need within a quarter.
pub(crate) fn lt(k: u32, extra: u32) -> f64 {
    let size = f64::from(k) / 100.0;
    let median = 1.63 * libm::pow(f64::from(k), -0.39);
    log_normal(k, extra, median, 0.46 * libm::pow(size, -0.18), 0.62 * libm::pow(size, -0.05))
}

/// An LT code with ideal soliton: log-normal, too, but nearly as wide for large blocks as for small
/// ones. Fitted to 19,000 blocks of 100 to 65,536 symbols; of blocks of up to 3000 the probability
/// is within [`LT_IDEAL_ERROR`] everywhere, of larger ones as near as chance lets 500 to 2000
/// blocks tell.
pub(crate) fn lt_ideal(k: u32, extra: u32) -> f64 {
    let size = f64::from(k) / 100.0;
    log_normal(k, extra, 0.47 * libm::pow(f64::from(k), -0.024), 0.84 * libm::pow(size, 0.05), 1.05)
}

/// How far off [`lt_ideal`] may be.
#[cfg(test)]
pub(crate) const LT_IDEAL_ERROR: f64 = 0.035;

/// The probability that the overhead is more than `extra` of `k`, when its logarithm is normal with
/// one deviation below the median and another above it.
fn log_normal(k: u32, extra: u32, median: f64, below: f64, above: f64) -> f64 {
    let distance = libm::log(f64::from(extra) / f64::from(k) / median);
    let deviation = if distance > 0.0 { above } else { below };
    0.5 * libm::erfc(distance / deviation * core::f64::consts::FRAC_1_SQRT_2)
}

/// Whether a block fails whose decoder drew `luck`, when sets like its own fail with this
/// probability. A decoder draws once, so that more symbols make it succeed as often as with the
/// real code.
pub(crate) fn fails(luck: u64, probability: f64) -> bool {
    (mix(luck) >> 11) as f64 * (1.0 / (1u64 << 53) as f64) < probability
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
        for extra in 0..4 {
            let failed = (0..trials).filter(|i| fails(i * 77, raptor10(extra))).count() as f64;
            let expected = trials as f64 * raptor10(extra);
            assert!((failed - expected).abs() < 4.0 * expected.sqrt(), "{failed} of {trials}");
        }
        assert!((0..trials).all(|i| !fails(i, raptorq(2))));
    }

    #[test]
    fn drawn_overheads_have_the_measured_mean_and_deviation() {
        let draws: [f64; 20_000] = core::array::from_fn(|luck| prototype_overhead(luck as u64));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let squares = draws.iter().map(|draw| (draw - mean) * (draw - mean)).sum::<f64>();
        let deviation = libm::sqrt(squares / draws.len() as f64);
        assert!((mean - MEAN).abs() < 4.0 * DEVIATION / libm::sqrt(draws.len() as f64), "{mean}");
        assert!((deviation / DEVIATION - 1.0).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn a_decoder_that_succeeds_stays_so() {
        for luck in 0..20_000 {
            let mut failed = (0..40).map(|extra| fails(luck, raptor10(extra)));
            assert!(failed.by_ref().skip_while(|failed| *failed).all(|failed| !failed));
        }
    }
}
