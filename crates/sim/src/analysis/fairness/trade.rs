//! Jain's index of two classes of users: what a preference costs in fairness.

/// Jain's index where a share `mix` of users has `ratio` times what each of the others has.
pub fn jain_of_classes(mix: f64, ratio: f64) -> f64 {
    let sum = 1.0 + mix * (ratio - 1.0);
    sum * sum / (1.0 + mix * (ratio * ratio - 1.0))
}

/// The least index that a ratio can have, whatever the mix, and the mix that has it.
pub fn least_jain(ratio: f64) -> (f64, f64) {
    let sum = 1.0 + ratio;
    (4.0 * ratio / (sum * sum), 1.0 / sum)
}

/// The largest ratio that keeps an index whatever the mix; infinite for an index of zero.
pub fn greatest_ratio(jain: f64) -> f64 {
    let jain = jain.clamp(0.0, 1.0);
    (2.0 - jain + 2.0 * libm::sqrt(1.0 - jain)) / jain
}

/// The weight that gives a ratio of shares under weighted α-fairness: r^α.
pub fn weight(ratio: f64, alpha: f64) -> f64 {
    libm::pow(ratio, alpha)
}
