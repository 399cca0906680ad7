//! The formulas of transfers over several paths at once.

use fontis_proto::scheduler::plan::PlanPath;
use fontis_sim::analysis::blocking::{
    BlockingPath, blocking_time, round_robin_arrivals, unblocked_buffer,
};
use fontis_sim::analysis::concurrent::{redundancy, residual_loss};
use fontis_sim::analysis::schedule::model_path;

/// The value of a formula; `None` if there is none of this name and number of arguments. Rates are
/// in Mbit/s, times in ms, sizes in bytes unless said otherwise, losses are shares.
pub(super) fn formula(name: &str, numbers: &[f64]) -> Option<f64> {
    Some(match (name, numbers) {
        // The wait for a packet on the second path, one packet on each.
        ("blocking", [rate, rtt, second_rate, second_rtt, bytes]) => {
            let paths = [path(*second_rate, *second_rtt), path(*rate, *rtt)];
            blocking_time(&round_robin_arrivals(&paths, *bytes as u32, 1)) * 1e3
        }
        // The receive buffer that avoids blocking, in kB: of one path that is its product of rate
        // and round-trip time.
        ("unblocked", [rate, rtt]) => unblocked_buffer(&[path(*rate, *rtt)]) * 1e-3,
        ("unblocked", [rate, rtt, second_rate, second_rtt]) => {
            unblocked_buffer(&[path(*rate, *rtt), path(*second_rate, *second_rtt)]) * 1e-3
        }
        // Packets that a path sends in its delay.
        ("packets_in_delay", [rate, rtt, bytes]) => {
            let PlanPath { units, .. } = model_path(&path(*rate, *rtt), *bytes as u32);
            units
        }
        ("residual_loss", [n, k, loss]) => residual_loss(*n as u32, *k as u32, *loss),
        ("redundancy_of_code", [n, k]) => redundancy(*n as u32, *k as u32),
        _ => return None,
    })
}

fn path(rate: f64, rtt: f64) -> BlockingPath {
    BlockingPath { rate: rate * 1e6, delay: rtt * 0.5e-3 }
}
