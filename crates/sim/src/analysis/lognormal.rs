//! Log-normally distributed sizes.

use fontis_base::Stream;

use crate::analysis::normal;

/// A size in bytes drawn from the log-normal distribution with the given mean, whose logarithm has
/// the standard deviation `sigma`: the larger that is, the more of all bytes are in few large ones.
pub fn log_normal(stream: &mut Stream, mean: u64, sigma: f64) -> u64 {
    let mu = libm::log(mean as f64) - 0.5 * sigma * sigma;
    // Neither end of the unit interval has a finite quantile.
    let unit = stream.unit().clamp(1e-16, 1.0 - 1e-16);
    (libm::exp(mu + sigma * normal::quantile(unit)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_mean_and_their_quantiles() {
        for (seed, sigma) in [(1, 0.5), (2, 1.5)] {
            let mut stream = Stream::new(seed, "sizes");
            let sizes: Vec<u64> =
                (0..20_000).map(|_| log_normal(&mut stream, 100_000, sigma)).collect();
            let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            // A sample's mean scatters by √(e^σ² − 1)/√n of it.
            let error = 4.0 * (libm::exp(sigma * sigma) - 1.0).sqrt() / 20_000f64.sqrt();
            assert!((mean / 1e5 - 1.0).abs() < error, "seed {seed}: {mean}");
            let median = 1e5 * libm::exp(-0.5 * sigma * sigma);
            let below = sizes.iter().filter(|size| (**size as f64) < median).count();
            assert!((9_700..10_300).contains(&below), "seed {seed}: {below}");
        }
    }
}
