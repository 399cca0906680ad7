//! What experiments are judged by, as the simulator computes it.

use fontis_sim::analysis;
use fontis_sim::analysis::energy::{RadioPower, RadioUse};
use fontis_sim::recording::metrics;
use pyo3::prelude::*;

use crate::error::usage;

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

/// The energy of a radio that receives `received` bytes and sends `sent` bytes up to each time:
/// joules, seconds with data, seconds of tails, promotions.
#[pyfunction]
pub(crate) fn radio_energy(
    times: Vec<f64>,
    received: Vec<f64>,
    sent: Vec<f64>,
    radio: &str,
) -> PyResult<(f64, f64, f64, u64)> {
    let radio: RadioPower = radio.parse().map_err(usage)?;
    if times.len() != received.len() || times.len() != sent.len() {
        return Err(usage("there must be as many times as numbers of bytes".to_owned()));
    }
    let mut before = [0.0; 3];
    let uses = times.iter().zip(received).zip(sent).map(|((time, received), sent)| {
        let [begin, old_received, old_sent] = before;
        before = [*time, received, sent];
        let bits = |new: f64, old: f64| 8.0 * (new - old).max(0.0);
        let seconds = (time - begin).max(0.0);
        RadioUse { seconds, down: bits(received, old_received), up: bits(sent, old_sent) }
    });
    let energy = radio.energy(uses);
    Ok((energy.joules, energy.active, energy.tails, energy.promotions))
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
