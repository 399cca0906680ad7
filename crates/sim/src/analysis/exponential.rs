//! Exponentially distributed times.

use fontis_base::{Duration, Stream};

/// A time drawn from the exponential distribution with the given mean.
pub(crate) fn exponential(stream: &mut Stream, mean: Duration) -> Duration {
    Duration::from_secs_f64(-libm::log(1.0 - stream.unit()) * mean.as_secs_f64())
}
