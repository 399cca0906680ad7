//! The flags of `fontis estimate`.

use std::net::SocketAddr;
use std::path::PathBuf;

use fontis_base::Duration;
use fontis_sim::analysis::{Estimator, EstimatorForm};

/// Estimate a link's rate from probes that queue behind other traffic, in a capture or live
///
/// Small UDP packets, sent at equal distances, queue behind other traffic. While they are late, the
/// link is busy, and the rate of arrivals is its rate. Without a busy period there is no estimate.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true), after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A pcap or pcapng file from the link's receiver
    #[arg(value_name = "CAPTURE", group = "what")]
    pub(super) capture: Option<PathBuf>,
    /// Watch the arrivals at an interface of this machine, until Ctrl-C; needs root or CAP_NET_RAW,
    /// and --probe-port
    #[arg(long, value_name = "INTERFACE", group = "what", requires = "probe_port")]
    pub(super) live: Option<String>,
    /// Send probes to the address and port of a watching machine, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT", group = "what")]
    pub(super) probe: Option<SocketAddr>,
    /// End after this time, as in 30s, in place of Ctrl-C
    #[arg(long = "for", value_name = "TIME", conflicts_with = "capture")]
    pub(super) time: Option<Duration>,
    /// The UDP port of the probes [default: UDP packets of 60 bytes are probes]
    #[arg(long, value_name = "PORT")]
    pub(super) probe_port: Option<u16>,
    /// The distance of probes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    pub(super) distance: f64,
    /// The queueing delay above which the link is busy, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    pub(super) threshold: f64,
    /// The distance of two probes after which the queue is unknown, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    pub(super) gap: f64,
    /// The tolerance of two probes' distance by which the queue counts as empty, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    pub(super) tolerance: f64,
    /// The algorithm as it was published, in place of the improved form
    #[arg(long)]
    pub(super) printed: bool,
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
pub(super) const PROBE: u32 = 60;

impl Args {
    /// The estimator with these settings.
    pub(super) fn estimator(&self) -> Estimator {
        Estimator {
            distance: self.distance * 1e-3,
            threshold: self.threshold * 1e-3,
            gap: self.gap * 1e-3,
            tolerance: self.tolerance * 1e-3,
            form: if self.printed { EstimatorForm::Printed } else { EstimatorForm::Improved },
        }
    }
}
