//! How many symbols to send so that enough arrive.

/// Standard normal quantile of 0.999: the success probability asked of a tail's first flight.
const TAIL_QUANTILE: f64 = 3.0902;

/// Packets after which half of what was measured has been forgotten.
const MEMORY: f64 = 4096.0;

/// Loss measured on a path, as a two-state Gilbert process: p good→bad and q bad→good per packet.
#[derive(Clone, Debug)]
pub(super) struct LossModel {
    received: f64,
    lost: f64,
    bursts: f64,
    ever_lost: bool,
    observed: u64,
}

impl LossModel {
    pub(super) const fn new() -> Self {
        Self { received: 0.0, lost: 0.0, bursts: 0.0, ever_lost: false, observed: 0 }
    }

    /// Adds what a feedback decided: packets received and lost, and how many runs the losses made.
    pub(super) fn observe(&mut self, received: u64, lost: u64, bursts: u64) {
        let count = (received + lost) as f64;
        let keep = libm::exp2(-count / MEMORY);
        self.received = self.received * keep + received as f64;
        self.lost = self.lost * keep + lost as f64;
        self.bursts = self.bursts * keep + bursts as f64;
        self.ever_lost |= lost > 0;
        self.observed += received + lost;
    }

    /// A packet that had been counted as lost came after all.
    pub(super) fn correct(&mut self) {
        self.received += 1.0;
        self.lost = (self.lost - 1.0).max(0.0);
        self.bursts = self.bursts.min(self.lost);
    }

    /// The measured share of packets lost; until something is measured, zero.
    pub(super) fn loss(&self) -> f64 {
        let total = self.received + self.lost;
        if total < 1.0 { 0.0 } else { self.lost / total }
    }

    /// The mean length of a run of losses; one if none was seen.
    pub(super) fn mean_burst(&self) -> f64 {
        if self.bursts < 1.0 { 1.0 } else { (self.lost / self.bursts).max(1.0) }
    }

    /// (p, q) of the Gilbert process, pulled towards a loss of `PRIOR` while little has been seen. On a path that has
    /// shown hundreds of packets and no loss, p is zero: there nothing should ever be encoded.
    fn gilbert(&self) -> (f64, f64) {
        const PRIOR_PACKETS: f64 = 20.0;
        const PRIOR_LOSS: f64 = 0.08;
        if !self.ever_lost && self.observed >= 200 {
            return (0.0, 1.0);
        }
        let received = self.received + PRIOR_PACKETS * (1.0 - PRIOR_LOSS);
        let lost = self.lost + PRIOR_PACKETS * PRIOR_LOSS;
        let bursts = self.bursts + PRIOR_PACKETS * PRIOR_LOSS * (1.0 - PRIOR_LOSS);
        ((bursts / received).min(1.0), (bursts / lost).clamp(0.01, 1.0))
    }

    /// How many packets to send so that on average `needed` arrive, by what has been measured and nothing else.
    pub(super) fn packets_on_average(&self, needed: u32) -> u32 {
        libm::ceil(f64::from(needed) / (1.0 - self.loss()).max(0.02) - 1e-9) as u32
    }

    /// n*: how many packets to send so that `needed` arrive almost surely (specs: Gilbert loss; it reduces to
    /// Bernoulli's formula where p = 1 − q). Zero if none is needed.
    pub(super) fn packets_almost_surely(&self, needed: u32) -> u32 {
        if needed == 0 {
            return 0;
        }
        let (p, q) = self.gilbert();
        n_star(needed, p, q, TAIL_QUANTILE)
    }
}

/// n* = ⌈k(p+q)/q + R·√(kp(2−p−q))/q⌉ for k packets over a Gilbert channel (report of 2011, section 5.2).
pub(super) fn n_star(k: u32, p: f64, q: f64, quantile: f64) -> u32 {
    let k = f64::from(k);
    let mean = k * (p + q) / q;
    let deviation = libm::sqrt(k * p * (2.0 - p - q).max(0.0)) / q;
    // The margin keeps a mean that is whole but for rounding from costing a packet.
    libm::ceil(mean + quantile * deviation - 1e-9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_star_matches_the_published_vectors() {
        const R99: f64 = 2.326_347_874;
        const R6: f64 = 4.753_424_309;
        for (k, p, q, quantile, expected) in [
            (100, 0.1, 0.9, R99, 120),
            (1000, 0.01, 0.99, R99, 1018),
            (1000, 0.1, 0.9, R99, 1137),
            (1000, 0.1, 0.9, R6, 1164),
            (1000, 0.5, 0.5, R6, 2213),
            (10_000, 0.05, 0.95, R6, 10_639),
            (1000, 0.01, 0.25, R99, 1079),
            (1000, 0.01, 0.25, R6, 1120),
            (1000, 0.05, 0.5, R99, 1140),
            (1000, 0.1, 0.5, R99, 1256),
            (100, 0.05, 0.25, R99, 148),
            (10_000, 0.01, 0.2, R6, 10_818),
        ] {
            assert_eq!(n_star(k, p, q, quantile), expected, "k={k} p={p} q={q}");
        }
    }

    #[test]
    fn a_clean_path_needs_no_redundancy() {
        let mut model = LossModel::new();
        assert!(model.packets_almost_surely(9) > 9, "an unknown path may lose packets");
        assert_eq!(model.packets_on_average(9), 9);
        model.observe(300, 0, 0);
        assert_eq!(model.packets_almost_surely(1000), 1000);
    }

    #[test]
    fn the_model_follows_what_it_sees() {
        let mut model = LossModel::new();
        for _ in 0..100 {
            model.observe(90, 10, 9);
        }
        let sent = model.packets_on_average(1000);
        assert!((1108..=1116).contains(&sent), "{sent}");
        assert!((model.loss() - 0.1).abs() < 1e-9);
    }
}
