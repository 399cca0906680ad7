use alloc::vec::Vec;

use crate::taus88::Taus88;

/// A degree distribution of LT codes: how many of k symbols an encoded one is the sum of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Ω(1) = 1/k, Ω(d) = 1/(d(d − 1)): optimal on average, and useless in practice.
    IdealSoliton,
    /// Luby 2002, with the parameters c and δ.
    RobustSoliton {
        /// c, above zero.
        c: f64,
        /// δ, between zero and one.
        delta: f64,
    },
    /// The distribution that Shokrollahi (2006) lists for 65,536 symbols, for use behind a precode.
    Shokrollahi,
}

/// Degree and probability; the sum is 0.999998, and sampling scales it to one.
const SHOKROLLAHI: [(usize, f64); 10] = [
    (1, 0.007969),
    (2, 0.493570),
    (3, 0.166220),
    (4, 0.072646),
    (5, 0.082558),
    (8, 0.056058),
    (9, 0.037229),
    (19, 0.055590),
    (65, 0.025023),
    (66, 0.003135),
];

impl Distribution {
    /// Degrees with their weights, for `k` symbols. Weights need not sum to one.
    fn weights(self, k: usize) -> Vec<(usize, f64)> {
        let ideal = |d: usize| {
            if d == 1 { 1.0 / k as f64 } else { 1.0 / (d as f64 * (d - 1) as f64) }
        };
        match self {
            Self::IdealSoliton => (1..=k).map(|d| (d, ideal(d))).collect(),
            Self::RobustSoliton { c, delta } => {
                let (r, spike) = robust_soliton(k, c, delta);
                let tau = |d: usize| {
                    if d < spike {
                        r / (d as f64 * k as f64)
                    } else if d == spike {
                        r * libm::log(r / delta).max(0.0) / k as f64
                    } else {
                        0.0
                    }
                };
                (1..=k).map(|d| (d, ideal(d) + tau(d))).collect()
            }
            Self::Shokrollahi => {
                let mut weights = Vec::new();
                for (d, weight) in SHOKROLLAHI {
                    weights.push((d.min(k), weight));
                }
                weights
            }
        }
    }
}

/// R, and the degree of the spike, k/R rounded down and within 1..=k.
fn robust_soliton(k: usize, c: f64, delta: f64) -> (f64, usize) {
    let k = k as f64;
    let r = c * libm::log(k / delta) * libm::sqrt(k);
    (r, (libm::floor(k / r) as usize).clamp(1, k as usize))
}

/// A distribution for so many symbols, ready to be drawn from: cumulated, in 32 bits.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    bounds: Vec<u32>,
    degrees: Vec<u16>,
    /// For each value of the top eight bits, the first entry that can be drawn.
    first: Vec<u16>,
}

impl Sampler {
    /// # Panics
    /// If `k` is zero, or beyond 65,536.
    pub(crate) fn new(distribution: Distribution, k: usize) -> Self {
        assert!((1..=1 << 16).contains(&k), "degrees and symbols have 16 bits");
        let weights = distribution.weights(k);
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let (mut bounds, mut degrees) = (Vec::new(), Vec::new());
        for (degree, weight) in weights {
            sum += weight;
            let bound = libm::round(sum / total * 4_294_967_296.0).min(f64::from(u32::MAX)) as u32;
            // A degree that 32 bits cannot tell from none is never drawn.
            if bounds.last() != Some(&bound) {
                bounds.push(bound);
                degrees.push(degree.min(usize::from(u16::MAX)) as u16);
            }
        }
        if let Some(last) = bounds.last_mut() {
            *last = u32::MAX;
        }
        let first = (0..256u32)
            .map(|top| bounds.partition_point(|bound| *bound < top << 24) as u16)
            .collect();
        Self { bounds, degrees, first }
    }

    /// Draws a degree, with one number.
    #[inline(always)]
    pub(crate) fn draw(&self, generator: &mut Taus88) -> usize {
        let value = generator.next_u32();
        let mut index = usize::from(self.first[(value >> 24) as usize]);
        while self.bounds[index] < value {
            index += 1;
        }
        usize::from(self.degrees[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(distribution: Distribution, k: usize) -> f64 {
        let weights = distribution.weights(k);
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        weights.iter().map(|(d, weight)| *d as f64 * weight / total).sum()
    }

    #[test]
    fn the_robust_soliton_is_that_of_the_specification() {
        for (k, c, delta, r, spike, beta, degree) in [
            (1000, 0.03, 0.5, 7.21, 138, 1.05891, 10.510),
            (1000, 0.1, 0.5, 24.04, 41, 1.19592, 10.254),
            (10_000, 0.03, 0.5, 29.71, 336, 1.03113, 14.412),
            (65_536, 0.03, 0.5, 90.50, 724, 1.01707, 17.563),
            (65_536, 0.1, 0.5, 301.66, 217, 1.05688, 18.031),
            (65_536, 0.05, 0.05, 180.30, 363, 1.04033, 20.035),
        ] {
            let (got_r, got_spike) = robust_soliton(k, c, delta);
            assert!((got_r - r).abs() < 0.006 && got_spike == spike, "{got_r} {got_spike}");
            let distribution = Distribution::RobustSoliton { c, delta };
            let total: f64 = distribution.weights(k).iter().map(|(_, weight)| weight).sum();
            assert!((total - beta).abs() < 6e-6, "beta {total}");
            assert!((mean(distribution, k) - degree).abs() < 6e-4);
        }
    }

    #[test]
    fn mean_degrees_are_those_of_the_specification() {
        assert!((mean(Distribution::IdealSoliton, 65_536) - 11.67).abs() < 0.005);
        assert!((mean(Distribution::Shokrollahi, 65_536) - 5.8703).abs() < 1e-4);
    }

    #[test]
    fn degrees_are_drawn_as_often_as_they_should() {
        for distribution in [
            Distribution::IdealSoliton,
            Distribution::RobustSoliton { c: 0.03, delta: 0.5 },
            Distribution::Shokrollahi,
        ] {
            let k = 1000;
            let sampler = Sampler::new(distribution, k);
            let mut generator = Taus88::new([1, 2, 3]);
            let draws = 200_000;
            let mut counts = [0u32; 1001];
            for _ in 0..draws {
                counts[sampler.draw(&mut generator)] += 1;
            }
            let weights = distribution.weights(k);
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            for (degree, weight) in weights {
                let expected = f64::from(draws) * weight / total;
                let deviation = (f64::from(counts[degree]) - expected).abs();
                assert!(deviation < 5.0 * libm::sqrt(expected) + 2.0, "{distribution:?} {degree}");
            }
        }
    }

    #[test]
    fn small_codes_have_small_degrees() {
        for k in 1..70 {
            for distribution in [
                Distribution::IdealSoliton,
                Distribution::RobustSoliton { c: 0.03, delta: 0.5 },
                Distribution::Shokrollahi,
            ] {
                let sampler = Sampler::new(distribution, k);
                let mut generator = Taus88::new([4, 5, 6]);
                assert!((0..2000).all(|_| (1..=k).contains(&sampler.draw(&mut generator))));
            }
        }
    }
}
