//! The `fontis` command: flags in, calls out. Each subcommand is a file.
//!
//! Start here: [`run`] is the command, for the binary and for the Python package, whose wheel
//! contains it. `Cli` lists the subcommands; `peer` holds the flags that several of them share,
//! `failure` the exit codes, `progress` and `json` the output of running transfers. [`get::fetch`]
//! and [`send::deliver`] are also for other callers that make such transfers.

mod analyse;
mod archive;
mod call;
mod cast;
mod casting;
mod code;
mod control;
pub mod dial;
mod estimate;
pub mod failure;
mod flute;
pub mod get;
mod interfaces;
mod join;
mod json;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(unix)]
mod keyboard;
mod keygen;
mod lab;
mod left_out;
mod link;
pub mod listen;
mod manual;
pub mod paths;
pub mod peer;
mod progress;
mod python;
#[cfg(target_os = "linux")]
mod race;
mod receive;
mod relay;
mod request;
mod runtime;
mod selection;
pub mod send;
mod serve;
pub mod share;
mod sim;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod status;
mod steering;
mod store;
mod survey;
mod swarm;
#[cfg(target_os = "linux")]
mod testbed;
mod text;
pub mod transport;
mod view;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Failure;
pub use crate::python::Python;

/// Move data over bad networks, and make such networks
///
/// Fontis sends a digital fountain over UDP: lost packets do not matter if enough packets arrive.
/// Everything that it sends is encrypted, and everything that it receives is verified.
#[derive(Debug, Parser)]
#[command(name = "fontis", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Serve the present folder; it prints URLs, one for each address:
    fontis serve
  Fetch a file of it on another machine:
    fontis get 'fontis://192.0.2.1:4433/map.tif?key=KEY&secret=SECRET'

Exit codes: 0 if all is done and verified, 1 if it failed, 2 for wrong usage.";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Get(get::Args),
    Receive(receive::Args),
    Send(send::Args),
    Cast(cast::Args),
    Join(join::Args),
    Flute(flute::Args),
    Call(call::Args),
    Paths(survey::Args),
    #[cfg(unix)]
    Status(status::StatusArgs),
    #[cfg(unix)]
    Limit(status::LimitArgs),
    Relay(relay::Args),
    Sim(sim::Args),
    View(view::Args),
    #[cfg(target_os = "linux")]
    Testbed(testbed::Args),
    #[cfg(target_os = "linux")]
    Race(race::Args),
    #[cfg(target_os = "linux")]
    Kernel(kernel::Args),
    Code(code::Args),
    Analyse(analyse::Args),
    Lab(lab::Args),
    Estimate(estimate::Args),
    Keygen(keygen::Args),
    Man(manual::ManArgs),
    Completions(manual::CompletionsArgs),
}

impl Command {
    /// Returns true if standard output is JSON, errors included. The relay has its own flag.
    fn json(&self) -> bool {
        match self {
            Self::Serve(args) => args.json,
            Self::Get(args) => args.json,
            Self::Receive(args) => args.json,
            Self::Send(args) => args.json,
            Self::Cast(args) => args.json,
            Self::Join(args) => args.json,
            Self::Flute(args) => args.json(),
            Self::Call(args) => args.json,
            Self::Paths(args) => args.json,
            #[cfg(unix)]
            Self::Status(args) => args.json,
            #[cfg(unix)]
            Self::Limit(_) => false,
            Self::Sim(args) => args.json,
            #[cfg(target_os = "linux")]
            Self::Testbed(args) => args.json(),
            #[cfg(target_os = "linux")]
            Self::Race(args) => args.json,
            #[cfg(target_os = "linux")]
            Self::Kernel(args) => args.json(),
            Self::Code(args) => args.json(),
            Self::Analyse(args) => args.json,
            Self::Lab(args) => args.json(),
            Self::Estimate(args) => args.json,
            Self::View(_)
            | Self::Relay(_)
            | Self::Keygen(_)
            | Self::Man(_)
            | Self::Completions(_) => false,
        }
    }

    fn run(self, python: &Python) -> Result<u8, Failure> {
        let done = match self {
            Self::Serve(args) => serve::run(&args),
            Self::Get(args) => get::run(&args),
            Self::Receive(args) => receive::run(&args),
            Self::Send(args) => send::run(&args),
            Self::Cast(args) => cast::run(&args),
            Self::Join(args) => join::run(&args),
            Self::Flute(args) => flute::run(&args),
            Self::Call(args) => call::run(&args),
            Self::Paths(args) => survey::run(&args),
            #[cfg(unix)]
            Self::Status(args) => status::status(&args),
            #[cfg(unix)]
            Self::Limit(args) => status::limit(&args),
            Self::Relay(args) => {
                relay::run(args).map_err(|error| Failure::Failed(error.to_string()))
            }
            Self::Sim(args) => sim::run(&args),
            Self::View(args) => view::run(&args),
            #[cfg(target_os = "linux")]
            Self::Testbed(args) => return testbed::run(args),
            #[cfg(target_os = "linux")]
            Self::Race(args) => return race::run(&args),
            #[cfg(target_os = "linux")]
            Self::Kernel(args) => kernel::run(&args),
            Self::Code(args) => code::run(&args),
            Self::Analyse(args) => analyse::run(&args),
            Self::Lab(args) => return lab::run(&args, python),
            Self::Estimate(args) => estimate::run(&args),
            Self::Keygen(args) => keygen::run(&args),
            Self::Man(args) => manual::man(&args, Cli::command()),
            Self::Completions(args) => manual::completions(&args, Cli::command()),
        };
        done.map(|()| 0)
    }
}

/// Runs the command with these arguments, of which the first is its name, and returns its exit
/// code. Subcommands in Python run in `python`.
pub fn run(args: impl IntoIterator<Item = OsString>, python: &Python) -> u8 {
    let Cli { command } = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Help ends here, and wrong usage, with an explanation and exit code 2. That nobody reads
        // it is no failure.
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    if cfg!(fontis_plaintext) {
        eprintln!(
            "fontis: THIS BUILD DOES NOT ENCRYPT. It is for measuring what encryption costs, and speaks to none but its like."
        );
    }
    let json = command.json();
    match command.run(python) {
        Ok(code) => code,
        Err(failure) => {
            if json {
                json::say(&json::error(&failure));
            }
            eprintln!("fontis: {failure}");
            failure.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
