//! Intervals by bootstrap.

use fontis_base::Stream;

/// The mean of values.
pub(crate) fn mean(values: &mut [f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The median of values, which it sorts.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Quantiles of the ratio of a statistic of two samples, each drawn anew with repetition; the draws
/// are the same each time.
pub(crate) fn ratio<T: Copy, const N: usize>(
    a: &[T],
    b: &[T],
    statistic: impl Fn(&mut [T]) -> f64,
    quantiles: [f64; N],
) -> [f64; N] {
    const DRAWS: usize = 2000;
    let mut stream = Stream::new(1, "bootstrap");
    let mut drawn = |sample: &[T]| {
        let count = sample.len() as u64;
        let place = |_: &T| sample[stream.below(count) as usize];
        statistic(&mut sample.iter().map(place).collect::<Vec<T>>())
    };
    let mut ratios: Vec<f64> = (0..DRAWS).map(|_| drawn(a) / drawn(b)).collect();
    ratios.sort_by(f64::total_cmp);
    quantiles.map(|quantile| ratios[((DRAWS - 1) as f64 * quantile) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_ratio_and_is_narrower_for_more_values() {
        let values = |count: usize, by: f64| -> Vec<f64> {
            (0..count).map(|place| by * (1.0 + (place % 7) as f64)).collect()
        };
        let width = |count: usize| {
            let (a, b) = (values(count, 2.0), values(count, 1.0));
            let [low, high] = ratio(&a, &b, mean, [0.025, 0.975]);
            assert!(low < 2.0 && 2.0 < high, "{low} to {high}");
            high - low
        };
        assert!(width(700) < width(70) && width(70) < width(14));
    }
}
