use fontis_base::Duration;
use hdrhistogram::Histogram;

/// The lateness of packets: the time from their due time to their departure, which the machine adds
/// to the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// The mean.
    pub mean: Duration,
    /// The median.
    pub median: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The worst.
    pub max: Duration,
}

/// Gathers lateness in microseconds, to one percent.
#[derive(Debug)]
pub(crate) struct LatenessRecorder {
    histogram: Histogram<u64>,
    nanos: u128,
}

const ONE_MINUTE_IN_MICROS: u64 = 60_000_000;

impl LatenessRecorder {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_max(ONE_MINUTE_IN_MICROS, 2)
            .expect("two digits up to a minute are within the limits of the histogram");
        Self { histogram, nanos: 0 }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        self.histogram.saturating_record(late.as_micros());
        self.nanos += u128::from(late.as_nanos());
    }

    pub(crate) fn summary(&self) -> Lateness {
        let micros = Duration::from_micros;
        let mean = self.nanos / u128::from(self.histogram.len().max(1));
        Lateness {
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            median: micros(self.histogram.value_at_quantile(0.5)),
            p99: micros(self.histogram.value_at_quantile(0.99)),
            max: micros(self.histogram.max()),
        }
    }
}
