//! Real programs, kernels and sockets over emulated networks, in namespaces on this machine.

mod shell;

use clap::Subcommand;
use fontis_lab::sim::Platform;
use fontis_lab::testbed::{TestbedError, gain_privilege};

use crate::failure::Failure;
use crate::sim;

/// Put real programs behind bad links, on this machine
///
/// The networks consist of network namespaces and the links of the simulator in real time. They
/// need no set-up and leave nothing behind. Needs root, or user namespaces and /dev/net/tun.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Shell(Box<shell::Args>),
    /// Run experiments with real kernels and sockets: the scenarios of fontis sim, in real time
    ///
    /// Senders and receivers are in namespaces of this machine; the network between them is the
    /// scenario's. TCP is the kernel's, DFCP encodes and encrypts. Both are recorded in the same
    /// tables as in the simulator; run.json describes the machine.
    #[command(after_help = EXAMPLES)]
    Run(sim::Args),
}

const EXAMPLES: &str = "\
Examples:
  Ten flows of the kernel's CUBIC over 100 Mbit/s:
    fontis testbed run scenarios/basic/fifo.toml
  The same in the simulator, to compare:
    fontis sim scenarios/basic/fifo.toml";

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match self.command {
            Command::Shell(_) => false,
            Command::Run(ref args) => args.json,
        }
    }
}

/// Runs a subcommand, and returns its exit code, or that of the shell.
pub(crate) fn run(args: Args) -> Result<u8, Failure> {
    match args.command {
        Command::Shell(args) => shell::run(&args),
        Command::Run(args) => {
            if args.runs() {
                gain_privilege()?;
            }
            sim::run_on(&args, Platform::Testbed).map(|()| 0)
        }
    }
}

impl From<TestbedError> for Failure {
    fn from(error: TestbedError) -> Self {
        Self::Failed(error.to_string())
    }
}
