//! The output of `fontis estimate`.

use fontis_sim::analysis::{BusyPeriod, Estimate};
use serde_json::{Value, json};

use super::args::Args;
use crate::json::say;
use crate::text::{rate, round};

/// Prints the result.
pub(super) fn conclude(args: &Args, estimate: &Estimate, probes: usize, packets: usize) {
    if args.json {
        let periods: Vec<Value> = estimate.periods.iter().map(as_json).collect();
        return say(&json!({
            "event": "estimate", "bps": estimate.rate, "probes": probes, "packets": packets,
            "busy_periods": periods,
        }));
    }
    say(&format!("{probes} probes, {packets} other packets"));
    match estimate.rate {
        Some(bps) => say(&format!("estimate {}", rate(bps * 1e-6))),
        None => say(&"no estimate: the link was never seen busy"),
    }
}

/// A busy period, for programs.
pub(super) fn as_json(period: &BusyPeriod) -> Value {
    json!({"begin": period.begin, "end": period.end, "bytes": period.bytes, "bps": period.rate()})
}

/// A busy period, for people.
pub(super) fn text(period: &BusyPeriod) -> String {
    format!(
        "busy from {:.3} s for {:.0} ms: {}",
        period.begin,
        (period.end - period.begin) * 1e3,
        rate(round(period.rate() * 1e-6))
    )
}
