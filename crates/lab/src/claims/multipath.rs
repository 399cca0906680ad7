//! The formulas of transfers over several paths at once.

use fontis_base::Duration;
use fontis_proto::scheduler::plan::PlanPath;
use fontis_proto::sctp::{CodeReach, SctpCode};
use fontis_sim::analysis::blocking::{
    BlockingPath, blocking_time, round_robin_arrivals, unblocked_buffer,
};
use fontis_sim::analysis::concurrent::{
    ConcurrentModel, ConcurrentPath, redundancy, residual_loss,
};
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
        // How long a missing chunk waits for its repair, in ms: `behind` packets of so many bytes
        // follow it up to that.
        ("repair_wait_of_block", [n, k, behind, bytes, rate, rtt]) => {
            let packet = Duration::from_secs_f64(bytes * 8e-6 / rate);
            let rtt = millis(*rtt);
            let code = SctpCode::fixed(*n as u8, *k as u8, CodeReach::Group);
            code.published_wait(*behind as u64, packet, rtt, rtt).as_secs_f64() * 1e3
        }
        ("repair_wait_of_window", [n, k, most, rtt, second_rtt]) => {
            let [rtt, second] = [millis(*rtt), millis(*second_rtt)];
            let reach = CodeReach::Unacknowledged(*most as u8);
            let code = SctpCode::fixed(*n as u8, *k as u8, reach);
            code.published_wait(0, Duration::ZERO, rtt, rtt.max(second)).as_secs_f64() * 1e3
        }
        // The goodput of two equal paths in Mbit/s (Equations 8.6 to 8.11).
        ("concurrent", [rtt, loss, window, timeout, per_ack, bytes]) => {
            let path = ConcurrentPath { rtt: rtt * 1e-3, loss: *loss };
            let model = ConcurrentModel { per_ack: *per_ack, timeout: *timeout, window: *window };
            model.rates(&[path, path]).iter().sum::<f64>() * bytes * 8e-6
        }
        _ => return None,
    })
}

fn path(rate: f64, rtt: f64) -> BlockingPath {
    BlockingPath { rate: rate * 1e6, delay: rtt * 0.5e-3 }
}

fn millis(millis: f64) -> Duration {
    Duration::from_secs_f64(millis * 1e-3)
}
