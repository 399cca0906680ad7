//! A link's rate from a capture of probes.

use std::path::PathBuf;
use std::time::Duration;

use fontis_lab::capture::{self, Seen};
use fontis_sim::analysis::{Estimator, Form};
use serde_json::json;

use crate::failure::Failure;
use crate::json::say;
use crate::text::{rate, round};

/// Estimate a link's rate from a capture at its receiver
///
/// Small UDP packets that were sent at equal distances queue behind other traffic; while they are late, the link is busy, and what
/// arrives meanwhile is its rate. Without a busy period there is no estimate.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pcap or pcapng file
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The UDP port that probes were sent to [default: UDP packets of 60 bytes are probes]
    #[arg(long, value_name = "PORT")]
    probe_port: Option<u16>,
    /// The distance at which probes were sent, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    distance: f64,
    /// The queueing delay from which on the link is busy, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    threshold: f64,
    /// The distance of two probes after which nothing is known of the queue, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    gap: f64,
    /// How far two probes' distance may be off to say that the queue is empty, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    tolerance: f64,
    /// The algorithm as it was published, in place of the improved form
    #[arg(long)]
    printed: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bytes of a probe at the IP layer.
const PROBE: u32 = 60;

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let times = [args.distance, args.threshold, args.gap];
    if times.iter().any(|time| !(*time > 0.0 && time.is_finite())) || args.tolerance < 0.0 {
        return Err(Failure::Usage("times must be more than zero".to_owned()));
    }
    let seen = capture::read(&args.capture).map_err(Failure::Failed)?;
    let is_probe = |packet: &&Seen| match args.probe_port {
        Some(port) => packet.udp_port == Some(port),
        None => packet.udp_port.is_some() && packet.size == PROBE,
    };
    let Some(first) = seen.iter().find(is_probe).copied() else {
        return Err(Failure::Failed(format!(
            "{}: there are no probes in it; --probe-port says which packets they are",
            args.capture.display()
        )));
    };
    // What goes the other way says nothing of this link.
    let arrived: Vec<&Seen> =
        seen.iter().filter(|packet| packet.destination == first.destination).collect();
    let begin = arrived.iter().map(|packet| packet.nanos).min().unwrap_or(0);
    let time = |packet: &Seen| (packet.nanos - begin) as f64 * 1e-9;
    let (mut probes, mut traffic) = (Vec::new(), Vec::new());
    for packet in arrived {
        if is_probe(&packet) {
            probes.push(time(packet));
        } else {
            traffic.push((time(packet), packet.size));
        }
    }
    probes.sort_by(f64::total_cmp);
    traffic.sort_by(|a: &(f64, u32), b| a.0.total_cmp(&b.0));
    let estimator = Estimator {
        distance: args.distance * 1e-3,
        threshold: args.threshold * 1e-3,
        gap: args.gap * 1e-3,
        tolerance: args.tolerance * 1e-3,
        form: if args.printed { Form::Printed } else { Form::Improved },
    };
    let estimate = estimator.estimate(&probes, &traffic);
    if args.json {
        let periods: Vec<_> = estimate
            .periods
            .iter()
            .map(|p| json!({"begin": p.begin, "end": p.end, "bytes": p.bytes, "bps": p.rate()}))
            .collect();
        say(&json!({
            "event": "estimate", "bps": estimate.rate, "probes": probes.len(), "packets": traffic.len(),
            "busy_periods": periods,
        }));
        return Ok(());
    }
    say(&format!("{} probes, {} other packets", probes.len(), traffic.len()));
    for period in &estimate.periods {
        let length = Duration::from_secs_f64(period.end - period.begin);
        say(&format!(
            "busy from {:.3} s for {:.0} ms: {}",
            period.begin,
            length.as_secs_f64() * 1e3,
            rate(round(period.rate() * 1e-6))
        ));
    }
    match estimate.rate {
        Some(bps) => say(&format!("estimate {}", rate(bps * 1e-6))),
        None => say(&"no estimate: the link was never seen busy"),
    }
    Ok(())
}
