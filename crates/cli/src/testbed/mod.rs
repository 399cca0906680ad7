//! Real programs, kernels and sockets over emulated networks, in namespaces on this machine.

mod shell;

use std::process::ExitCode;

use clap::Subcommand;
use fontis_lab::testbed::TestbedError;

use crate::failure::Failure;

/// Put real programs behind bad links, on this machine
///
/// The networks are made of network namespaces and the links of the simulator in real time. They need no set-up and
/// leave nothing behind, however they end. Works as root, or for any user where the system allows user namespaces and
/// /dev/net/tun.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Shell(shell::Args),
}

impl Args {
    /// Whether standard output is for JSON.
    pub(crate) const fn json(&self) -> bool {
        match self.command {
            Command::Shell(_) => false,
        }
    }
}

/// Runs a subcommand; a shell gives its own exit code.
pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Shell(args) => shell::run(&args),
    }
}

impl From<TestbedError> for Failure {
    fn from(error: TestbedError) -> Self {
        Self::Failed(error.to_string())
    }
}
