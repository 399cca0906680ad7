//! Congestion controls in the running kernel.

use clap::Subcommand;
use fontis_lab::kernel::{self, KernelError};
use serde_json::json;

use crate::failure::Failure;
use crate::json::say;

/// Give this machine's kernel a congestion control of Fontis, by BPF
///
/// An algorithm is loaded for all network namespaces, until it is unloaded or the machine restarts.
/// Loading changes no connection: one gets the algorithm by choosing it. Needs root, and Linux 5.17
/// or newer with its own type information (CONFIG_DEBUG_INFO_BTF), which distributions have.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Load FLD_TCP, bold while a flow is short and Reno when it is long:
    fontis kernel load fld
  Give it to new connections over one route, or to all:
    ip route change default via 192.0.2.1 congctl fld
    sysctl net.ipv4.tcp_congestion_control=fld
  Remove it; connections that have it keep it until they end:
    fontis kernel unload fld";

#[derive(Debug, Subcommand)]
enum Command {
    /// Load an algorithm into the kernel
    Load(Name),
    /// Remove a loaded algorithm from the kernel
    Unload(Name),
    /// Tell whether algorithms are loaded
    Status(Status),
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The algorithm: fld
    name: String,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// The algorithm [default: all]
    name: Option<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match &self.command {
            Command::Status(status) => status.json,
            Command::Load(_) | Command::Unload(_) => false,
        }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Unknown(_) => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Runs a subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Load(Name { name }) => {
            kernel::load(name)?;
            say(&format_args!(
                "{name} is loaded until `fontis kernel unload {name}` or a restart. Connections \
                 choose it by route (ip route … congctl {name}), by \
                 net.ipv4.tcp_congestion_control, or by TCP_CONGESTION, which users other than \
                 root may once net.ipv4.tcp_allowed_congestion_control lists it."
            ));
            Ok(())
        }
        Command::Unload(Name { name }) => {
            kernel::unload(name)?;
            say(&format_args!("{name} is removed; connections that have it keep it"));
            Ok(())
        }
        Command::Status(Status { name, json }) => {
            let names = match name {
                Some(name) => vec![name.as_str()],
                None => kernel::names().collect(),
            };
            for name in names {
                let is_loaded = kernel::is_loaded(name)?;
                if *json {
                    say(&json!({ "event": "algorithm", "name": name, "loaded": is_loaded }));
                } else {
                    let state = if is_loaded { "loaded" } else { "not loaded" };
                    say(&format_args!("{name}: {state}"));
                }
            }
            Ok(())
        }
    }
}
