//! The number of packets that must be sent so that k arrive.

use fontis_proto::dfcp;

use crate::analysis::normal::quantile;

/// Random loss, as the report of 2011 models it (section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with probability p, whatever became of the others.
    Bernoulli {
        /// The probability.
        p: f64,
    },
    /// After a packet that arrived the next is lost with probability p; after a lost one, the next
    /// arrives with probability q.
    Gilbert {
        /// Good to bad.
        p: f64,
        /// Bad to good.
        q: f64,
    },
}

impl LossModel {
    /// p and q of the Gilbert process that it is.
    pub fn gilbert(self) -> (f64, f64) {
        match self {
            Self::Bernoulli { p } => (p, 1.0 - p),
            Self::Gilbert { p, q } => (p, q),
        }
    }

    /// Whether its probabilities are such, and packets can arrive at all.
    pub fn is_valid(self) -> bool {
        let (p, q) = self.gilbert();
        (0.0..=1.0).contains(&p) && q > 0.0 && q <= 1.0
    }

    /// The share of packets lost in the long run, p/(p+q).
    pub fn stationary_loss(self) -> f64 {
        let (p, q) = self.gilbert();
        p / (p + q)
    }

    /// Mean and standard deviation of how many packets are sent until k have arrived.
    pub fn sent(self, k: u32) -> (f64, f64) {
        let (p, q) = self.gilbert();
        let k = f64::from(k);
        (k * (p + q) / q, libm::sqrt(k * p * (2.0 - p - q).max(0.0)) / q)
    }

    /// n* by the central limit theorem, as the report has it: below the exact number where loss is
    /// bursty or the success probability high, though the report calls it a tight bound.
    pub fn n_star_clt(self, k: u32, success: f64) -> u32 {
        let (p, q) = self.gilbert();
        dfcp::n_star(k, p, q, quantile(success))
    }

    /// n* exactly: the least number of packets of which k arrive with probability `success` at
    /// least. `None` where that is more than [`MOST`](Self::MOST).
    pub fn n_star_exact(self, k: u32, success: f64) -> Option<u32> {
        if k == 0 {
            return Some(0);
        }
        let most = Self::MOST;
        let extra = |n: u32| n - k;
        if k > most || self.arrival_probability(k, extra(most)) < success {
            return None;
        }
        let (mut low, mut high) = (0, extra(most));
        // The normal approximation is near: what is far from it need not be looked at.
        let guess = self.n_star_clt(k, success).clamp(k, most) - k;
        let wide = guess.saturating_mul(2).saturating_add(64).min(high);
        if self.arrival_probability(k, wide) >= success {
            high = wide;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.arrival_probability(k, middle) >= success {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(k + low)
    }

    /// The most packets that [`n_star_exact`](Self::n_star_exact) looks at.
    pub const MOST: u32 = 4_000_000;

    /// The probability that k packets have arrived when `extra` more than k were sent: that the
    /// runs of losses before the k packets come to no more than `extra`. Each of the k is preceded
    /// by a run with probability p, whose length is geometric with parameter q; so M runs, binomial
    /// in k and p, must end within `extra` lost packets, and they do if of so many trials with
    /// parameter q at least M succeed.
    fn arrival_probability(self, k: u32, extra: u32) -> f64 {
        let (p, q) = self.gilbert();
        let runs = Binomial::new(k, p);
        let ends = Binomial::new(extra, q);
        // Σ_m P(M = m)·P(ends ≥ m), with the second factor summed up from above.
        let most = k.min(extra);
        let mut at_least: f64 = (most + 1..=extra).rev().map(|m| ends.mass(m)).sum();
        let mut sum = 0.0;
        for m in (0..=most).rev() {
            at_least += ends.mass(m);
            sum += runs.mass(m) * at_least.min(1.0);
        }
        sum
    }
}

/// A binomial distribution.
struct Binomial {
    n: u32,
    ln_p: f64,
    ln_q: f64,
    ln_factorial: f64,
}

impl Binomial {
    fn new(n: u32, p: f64) -> Self {
        let ln_factorial = libm::lgamma(f64::from(n) + 1.0);
        Self { n, ln_p: libm::log(p), ln_q: libm::log1p(-p), ln_factorial }
    }

    fn mass(&self, m: u32) -> f64 {
        // 0·ln 0 is nothing.
        let times = |count: u32, ln: f64| if count == 0 { 0.0 } else { f64::from(count) * ln };
        let ways = self.ln_factorial
            - libm::lgamma(f64::from(m) + 1.0)
            - libm::lgamma(f64::from(self.n - m) + 1.0);
        libm::exp(ways + times(m, self.ln_p) + times(self.n - m, self.ln_q))
    }
}

/// By how many packets Gilbert's n* exceeds Bernoulli's at the same p, from the report's closed
/// form with the sign of its second bracket put right (section 5.3).
pub fn n_difference(k: u32, p: f64, q: f64, success: f64) -> f64 {
    let (mean, spread) = difference_terms(k, p, q);
    libm::ceil(mean + quantile(success) * spread)
}

/// The same with the sign as it is printed, which contradicts the report's own formulas.
pub fn n_difference_printed(k: u32, p: f64, q: f64, success: f64) -> f64 {
    let (mean, spread) = difference_terms(k, p, q);
    libm::ceil(mean - quantile(success) * spread)
}

fn difference_terms(k: u32, p: f64, q: f64) -> (f64, f64) {
    let k = f64::from(k);
    let mean = k * p * (1.0 / q - 1.0 / (1.0 - p));
    let spread = libm::sqrt(k * p * (2.0 - p - q)) / q - libm::sqrt(k * p) / (1.0 - p);
    (mean, spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX_NINES: f64 = 1.0 - 1e-6;

    #[test]
    fn n_star_of_the_specification_s_vectors() {
        let bernoulli = |p| LossModel::Bernoulli { p };
        let gilbert = |p, q| LossModel::Gilbert { p, q };
        for (model, k, success, clt, exact) in [
            (bernoulli(0.1), 100, 0.99, 120, 120),
            (bernoulli(0.01), 1000, 0.99, 1018, 1018),
            (bernoulli(0.1), 1000, 0.99, 1137, 1138),
            (bernoulli(0.1), 1000, SIX_NINES, 1164, 1168),
            (bernoulli(0.5), 1000, SIX_NINES, 2213, 2223),
            (bernoulli(0.05), 10_000, SIX_NINES, 10_639, 10_642),
            (bernoulli(0.01), 100_000, SIX_NINES, 101_162, 101_166),
            (gilbert(0.01, 0.99), 1000, 0.99, 1018, 1018),
            (gilbert(0.01, 0.25), 1000, 0.99, 1079, 1086),
            (gilbert(0.01, 0.25), 1000, SIX_NINES, 1120, 1156),
            (gilbert(0.05, 0.5), 1000, 0.99, 1140, 1143),
            (gilbert(0.1, 0.5), 1000, 0.99, 1256, 1258),
            (gilbert(0.05, 0.25), 100, 0.99, 148, 154),
        ] {
            let case = format!("{model:?} k={k} success={success}");
            assert_eq!(model.n_star_clt(k, success), clt, "{case}");
            assert_eq!(model.n_star_exact(k, success), Some(exact), "{case}");
        }
        assert_eq!(gilbert(0.01, 0.2).n_star_clt(10_000, SIX_NINES), 10_818);
        // Without loss nothing more is needed; with nothing to send, nothing.
        assert_eq!(bernoulli(0.0).n_star_exact(1000, SIX_NINES), Some(1000));
        assert_eq!(bernoulli(0.5).n_star_exact(0, SIX_NINES), Some(0));
    }

    #[test]
    fn the_difference_is_right_with_the_sign_put_right_and_wrong_as_printed() {
        assert_eq!(n_difference(1000, 0.01, 0.25, 0.99), 62.0);
        assert_eq!(n_difference_printed(1000, 0.01, 0.25, 0.99), -1.0);
        assert_eq!(n_difference_printed(1000, 0.1, 0.5, 0.99), 60.0);
        let [gilbert, bernoulli] =
            [LossModel::Gilbert { p: 0.1, q: 0.5 }, LossModel::Bernoulli { p: 0.1 }]
                .map(|model| f64::from(model.n_star_clt(1000, 0.99)));
        assert_eq!(gilbert - bernoulli, 119.0);
        assert!((n_difference(1000, 0.1, 0.5, 0.99) - 119.0).abs() <= 1.0);
    }

    #[test]
    fn packets_sent_have_the_mean_and_deviation_of_the_formulas() {
        let mut stream = fontis_base::Stream::new(7, "loss model");
        for model in [LossModel::Bernoulli { p: 0.2 }, LossModel::Gilbert { p: 0.05, q: 0.4 }] {
            let (p, q) = model.gilbert();
            let (mut sum, mut squares, runs, k) = (0.0, 0.0, 4000, 200);
            for _ in 0..runs {
                let (mut sent, mut arrived, mut bad) = (0, 0, false);
                while arrived < k {
                    bad = if bad { stream.unit() >= q } else { stream.unit() < p };
                    sent += 1;
                    arrived += u32::from(!bad);
                }
                sum += f64::from(sent);
                squares += f64::from(sent) * f64::from(sent);
            }
            let mean = sum / f64::from(runs);
            let deviation = (squares / f64::from(runs) - mean * mean).sqrt();
            let (expected, spread) = model.sent(k);
            // Four standard errors of a mean; a deviation is known to 1/√(2·runs) ≈ 1.1 %.
            assert!((mean - expected).abs() < 4.0 * spread / f64::from(runs).sqrt(), "{mean}");
            assert!((deviation / spread - 1.0).abs() < 0.05, "{deviation} for {spread}");
        }
    }
}
