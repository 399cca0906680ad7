//! What experiments are judged by, as the simulator computes it.

use fontis_sim::analysis;
use fontis_sim::recording::metrics;
use pyo3::prelude::*;

/// Jain's index: 1 if all are equal, 1/n if one of n has it all.
#[pyfunction]
pub(crate) fn jain(shares: Vec<f64>) -> f64 {
    metrics::jain(&shares)
}

/// Useful bytes per time, in bit/s.
#[pyfunction]
pub(crate) fn goodput(bytes: u64, seconds: f64) -> f64 {
    metrics::goodput(bytes, seconds)
}

/// The value that this share of all is no larger than; 0 for nothing.
#[pyfunction]
pub(crate) fn quantile(values: Vec<f64>, share: f64) -> f64 {
    metrics::quantile(&values, share)
}

/// How long after `start` two flows first have (1−δ)/2 of the capacity each; None if that never
/// comes. Samples are (time, first, second).
#[pyfunction]
pub(crate) fn delta_fair_convergence(
    samples: Vec<(f64, f64, f64)>,
    start: f64,
    capacity: f64,
    delta: f64,
) -> Option<f64> {
    metrics::delta_fair_convergence(&samples, start, capacity, delta)
}

/// Redundancy at which an ideal fountain would be as fast as this transfer: T·C/(D·N) − 1.
#[pyfunction]
pub(crate) fn equivalent_redundancy(seconds: f64, capacity: f64, bits: f64, flows: f64) -> f64 {
    analysis::fountain::equivalent_redundancy(seconds, capacity, bits, flows)
}

/// Max-min fair shares of a link among flows that can use no more than `limits`.
#[pyfunction]
pub(crate) fn max_min_shares(capacity: f64, limits: Vec<f64>) -> Vec<f64> {
    analysis::max_min_shares(capacity, &limits)
}
