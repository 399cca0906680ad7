//! What a host of SCTP reads of its association while it runs.

use fontis_base::{Duration, Time};
use fontis_proto::sctp::SctpPath;

use crate::host::mean::TimeMean;

/// Means in time of what the sender believes.
#[derive(Clone, Debug, Default)]
pub(super) struct PathReadings {
    pub(super) in_flight: TimeMean,
    /// By path.
    pub(super) srtt: Vec<TimeMean>,
}

impl PathReadings {
    /// Reads the paths.
    pub(super) fn read(&mut self, now: Time, paths: impl Iterator<Item = SctpPath>) {
        let mut in_flight = 0;
        for (at, path) in paths.enumerate() {
            in_flight += path.in_flight;
            if self.srtt.len() <= at {
                self.srtt.push(TimeMean::default());
            }
            if let Some(srtt) = path.srtt {
                self.srtt[at].note(now, srtt.as_secs_f64());
            }
        }
        self.in_flight.note(now, in_flight as f64);
    }
}

/// The gaps between what the application gets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Releases {
    last: Option<Time>,
    gap: Option<Duration>,
    /// Differences of two successive gaps, and how many.
    sum: Duration,
    count: u64,
}

impl Releases {
    pub(super) fn note(&mut self, now: Time) {
        let next = self.last.map(|last| now.since(last));
        if let (Some(gap), Some(next)) = (self.gap, next) {
            self.sum += gap.max(next) - gap.min(next);
            self.count += 1;
        }
        (self.last, self.gap) = (Some(now), next);
    }

    /// The mean difference in milliseconds.
    pub(super) fn jitter(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() * 1e3 / self.count as f64)
    }
}

/// The names of the metrics of each path's smoothed round-trip time, as far as they are summed up.
pub(super) const SRTT: [&str; 4] = ["srtt_path_00", "srtt_path_01", "srtt_path_02", "srtt_path_03"];
