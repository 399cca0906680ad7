//! The normal distribution and its quantiles.

/// Φ(x), the standard normal distribution function.
pub fn distribution(x: f64) -> f64 {
    0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

/// R = Φ⁻¹(p), the standard normal quantile: −∞ at 0, ∞ at 1. Found by bisection, which needs no
/// constants.
pub fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // Beyond 40 standard deviations nothing is left in double precision. In the upper half the
    // other tail is looked for, where the numbers are small and exact.
    let (tail, sign) = if p > 0.5 { (1.0 - p, 1.0) } else { (p, -1.0) };
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if distribution(-middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    sign * 0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_specification_and_invert_the_distribution() {
        assert!((quantile(0.99) - 2.3263).abs() < 1e-4);
        assert!((quantile(1.0 - 1e-6) - 4.7534).abs() < 1e-4);
        for p in [1e-9, 0.01, 0.3, 0.5, 0.8, 0.999] {
            assert!((distribution(quantile(p)) / p - 1.0).abs() < 1e-9, "{p}");
        }
        assert_eq!([quantile(0.0), quantile(1.0)], [f64::NEG_INFINITY, f64::INFINITY]);
    }
}
