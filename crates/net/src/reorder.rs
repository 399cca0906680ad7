use core::str::FromStr;

use fontis_base::{Duration, Probability, Stream};

use crate::error::SpecError;

/// Reordering: some packets are held back, so that later ones overtake them.
///
/// Reads `"P"`, `"P:BY"`, `"P:BY:SPREAD"` and `"P:BY:exponential"`, as in `"1%:10ms"`; BY is 10 ms
/// if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// How many packets are held back.
    pub probability: Probability,
    /// By how much; in the mean, if that varies.
    pub by: Duration,
    /// How that varies.
    pub times: HoldTimes,
}

/// How the times vary by which packets are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum HoldTimes {
    /// Not.
    #[default]
    Fixed,
    /// They are uniform within so much of the mean; none is below zero.
    Uniform(Duration),
    /// They are exponential.
    Exponential,
}

impl Reorder {
    /// By how much the next packet is held back.
    pub(crate) fn next(&self, stream: &mut Stream) -> Duration {
        match self.times {
            HoldTimes::Fixed => self.by,
            HoldTimes::Uniform(spread) => {
                let drawn = stream.below(spread.as_nanos().saturating_mul(2).saturating_add(1));
                let later = self.by.as_nanos().saturating_add(drawn);
                Duration::from_nanos(later.saturating_sub(spread.as_nanos()))
            }
            HoldTimes::Exponential => {
                Duration::from_secs_f64(-libm::log(1.0 - stream.unit()) * self.by.as_secs_f64())
            }
        }
    }
}

impl FromStr for Reorder {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.splitn(3, ':');
        let probability = parts.next().unwrap_or_default().parse()?;
        let by = parts.next().map_or(Ok(Duration::from_millis(10)), str::parse)?;
        let times = match parts.next() {
            None => HoldTimes::Fixed,
            Some("exponential") => HoldTimes::Exponential,
            Some(spread) => HoldTimes::Uniform(spread.parse()?),
        };
        Ok(Self { probability, by, times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_mean_and_the_bounds_that_are_asked_for() {
        let of = |text: &str| text.parse::<Reorder>().expect("a form");
        let mut stream = Stream::new(1, "reorder");
        let mut draw = |reorder: Reorder| -> Vec<f64> {
            (0..20_000).map(|_| reorder.next(&mut stream).as_secs_f64() * 1e3).collect()
        };
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        assert!(draw(of("5%")).iter().all(|time| *time == 10.0));
        let uniform = draw(of("5%:50ms:20ms"));
        assert!(uniform.iter().all(|time| (30.0..=70.0).contains(time)));
        assert!((mean(&uniform) - 50.0).abs() < 0.5, "{}", mean(&uniform));
        assert!(uniform.iter().any(|time| *time < 32.0) && uniform.iter().any(|t| *t > 68.0));
        let exponential = draw(of("5%:50ms:exponential"));
        assert!((mean(&exponential) - 50.0).abs() < 1.5, "{}", mean(&exponential));
        let above = exponential.iter().filter(|time| **time > 100.0).count() as f64 / 20_000.0;
        assert!((above - libm::exp(-2.0)).abs() < 0.01, "{above}");
        assert!("5%:50ms:now".parse::<Reorder>().is_err());
    }
}
