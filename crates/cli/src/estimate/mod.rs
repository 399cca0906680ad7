//! A link's rate from probes among other traffic: in a capture, or while they arrive.

mod args;
#[cfg(target_os = "linux")]
mod live;
mod output;
mod probes;

use fontis_trace::capture::{Arrival, arrivals};

pub(crate) use self::args::Args;
use self::args::PROBE;
use self::output::{conclude, text};
use crate::failure::Failure;
use crate::json::say;
use crate::listen::status;

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
