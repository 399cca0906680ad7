//! A link's rate from probes among other traffic: in a capture, or while they arrive.

#[cfg(target_os = "linux")]
mod live;
mod probes;

use std::net::SocketAddr;
use std::path::PathBuf;

use fontis_base::Duration;
use fontis_sim::analysis::{BusyPeriod, Estimate, Estimator, Form};
use fontis_sim::trace::capture::{Arrival, arrivals};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::listen::status;
use crate::text::{rate, round};

/// Estimate a link's rate from probes that queue behind other traffic, in a capture or live
///
/// Small UDP packets, sent at equal distances, queue behind other traffic. While they are late, the
/// link is busy, and the rate of arrivals is its rate. Without a busy period there is no estimate.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true), after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A pcap or pcapng file from the link's receiver
    #[arg(value_name = "CAPTURE", group = "what")]
    capture: Option<PathBuf>,
    /// Watch the arrivals at an interface of this machine, until Ctrl-C; needs root or CAP_NET_RAW,
    /// and --probe-port
    #[arg(long, value_name = "INTERFACE", group = "what", requires = "probe_port")]
    live: Option<String>,
    /// Send probes to the address and port of a watching machine, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT", group = "what")]
    probe: Option<SocketAddr>,
    /// End after this time, as in 30s, in place of Ctrl-C
    #[arg(long = "for", value_name = "TIME", conflicts_with = "capture")]
    time: Option<Duration>,
    /// The UDP port of the probes [default: UDP packets of 60 bytes are probes]
    #[arg(long, value_name = "PORT")]
    probe_port: Option<u16>,
    /// The distance of probes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    distance: f64,
    /// The queueing delay above which the link is busy, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    threshold: f64,
    /// The distance of two probes after which the queue is unknown, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    gap: f64,
    /// The tolerance of two probes' distance by which the queue counts as empty, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    tolerance: f64,
    /// The algorithm as it was published, in place of the improved form
    #[arg(long)]
    printed: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  What a capture says:
    fontis estimate capture.pcapng
  Live between two hosts. At the one behind the link, while it downloads something:
    fontis estimate --live eth0 --probe-port 7440
  And at one in front of it:
    fontis estimate --probe 192.0.2.7:7440";

/// Bytes of a probe at the IP layer.
const PROBE: u32 = 60;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let times = [args.distance, args.threshold, args.gap];
    if times.iter().any(|time| !(*time > 0.0 && time.is_finite())) || args.tolerance < 0.0 {
        return Err(Failure::Usage("times must be more than zero".to_owned()));
    }
    match (&args.capture, &args.live, args.probe) {
        (Some(path), ..) => from_capture(args, path),
        (_, Some(interface), _) => watch(args, interface),
        (.., Some(address)) => probes::send(args, address),
        _ => unreachable!("one of them is required"),
    }
}

#[cfg(target_os = "linux")]
fn watch(args: &Args, interface: &str) -> Result<(), Failure> {
    live::watch(args, interface)
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &Args, _: &str) -> Result<(), Failure> {
    Err(Failure::Failed("--live is for Linux; elsewhere make a capture and name it".to_owned()))
}

impl Args {
    fn estimator(&self) -> Estimator {
        Estimator {
            distance: self.distance * 1e-3,
            threshold: self.threshold * 1e-3,
            gap: self.gap * 1e-3,
            tolerance: self.tolerance * 1e-3,
            form: if self.printed { Form::Printed } else { Form::Improved },
        }
    }
}

fn from_capture(args: &Args, path: &std::path::Path) -> Result<(), Failure> {
    let fail =
        |error: &dyn std::fmt::Display| Failure::Failed(format!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| fail(&error))?;
    let (seen, is_cut) = arrivals(file).map_err(|error| fail(&error))?;
    if is_cut {
        status(&format_args!(
            "{}: its last frame is cut off; all before it counts",
            path.display()
        ));
    }
    let is_probe = |packet: &&Arrival| match args.probe_port {
        Some(port) => packet.udp_port == Some(port),
        None => packet.udp_port.is_some() && packet.size == PROBE,
    };
    let Some(first) = seen.iter().find(is_probe).copied() else {
        return Err(Failure::Failed(format!(
            "{}: there are no probes in it; --probe-port says which packets they are",
            path.display()
        )));
    };
    // What goes the other way says nothing of this link.
    let arrived: Vec<&Arrival> =
        seen.iter().filter(|packet| packet.destination == first.destination).collect();
    let begin = arrived.iter().map(|packet| packet.nanos).min().unwrap_or(0);
    let time = |packet: &Arrival| (packet.nanos - begin) as f64 * 1e-9;
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
    let estimate = args.estimator().estimate(&probes, &traffic);
    if !args.json {
        for period in &estimate.periods {
            say(&text(period));
        }
    }
    conclude(args, &estimate, probes.len(), traffic.len());
    Ok(())
}

/// Prints the result.
fn conclude(args: &Args, estimate: &Estimate, probes: usize, packets: usize) {
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

fn as_json(period: &BusyPeriod) -> Value {
    json!({"begin": period.begin, "end": period.end, "bytes": period.bytes, "bps": period.rate()})
}

fn text(period: &BusyPeriod) -> String {
    format!(
        "busy from {:.3} s for {:.0} ms: {}",
        period.begin,
        (period.end - period.begin) * 1e3,
        rate(round(period.rate() * 1e-6))
    )
}
