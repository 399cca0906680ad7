use fontis_lab::live::Interface;
use fontis_sim::analysis::estimator::Monitor;
use fontis_trace::capture::Arrival;
use serde_json::json;

use super::args::Args;
use super::output::{as_json, conclude, text};
use crate::failure::Failure;
use crate::json::say;
use crate::listen::status;
use crate::runtime::Deadline;
use crate::text::rate;

/// Watches an interface, and prints the estimate after each busy period.
pub(super) fn watch(args: &Args, name: &str) -> Result<(), Failure> {
    let mut interface = Interface::open(name).map_err(Failure::Failed)?;
    let mut monitor = Monitor::new(args.estimator());
    let deadline = Deadline::new(args.time)?;
    let (mut probes, mut packets) = (0, 0);
    // The clock's time of the first packet, and whom probes go to: nobody else's packets cross the
    // link.
    let (mut begin, mut here) = (None, None);
    if !args.json {
        status(&format_args!("watching {name}; Ctrl-C ends it"));
    }
    while !deadline.is_over() {
        let seen = interface.receive();
        let seen = seen.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
        let Some(Arrival { nanos, size, destination, udp_port }) = seen else { continue };
        let begin = *begin.get_or_insert(nanos);
        let at = nanos.saturating_sub(begin) as f64 * 1e-9;
        let is_probe = udp_port.is_some() && udp_port == args.probe_port;
        if !is_probe {
            if here.is_none_or(|here| here == destination) {
                packets += 1;
                monitor.packet(at, size);
            }
            continue;
        }
        here = Some(destination);
        probes += 1;
        let Some(period) = monitor.probe(at) else { continue };
        let estimate = monitor.estimate();
        if args.json {
            let mut event = json!({"event": "busy", "estimate_bps": estimate.rate});
            if let (Some(event), serde_json::Value::Object(period)) =
                (event.as_object_mut(), as_json(&period))
            {
                event.extend(period);
            }
            say(&event);
        } else {
            let mean = estimate.rate.map_or(String::new(), |bps| rate(bps * 1e-6));
            say(&format!("{}; estimate {mean}", text(&period)));
        }
    }
    if probes == 0 {
        return Err(Failure::Failed(format!(
            "no probe arrived at {name}: send some, with fontis estimate --probe at the other end"
        )));
    }
    conclude(args, &monitor.estimate(), probes, packets);
    Ok(())
}
