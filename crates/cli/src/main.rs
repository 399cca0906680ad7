//! The `fontis` command: flags in, calls out. Each subcommand is a file.

mod relay;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Moves data over networks where TCP is slow or cannot go, and makes such networks
#[derive(Debug, Parser)]
#[command(name = "fontis", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Relay(relay::Args),
}

fn main() -> ExitCode {
    // Wrong usage ends here, with an explanation and exit code 2.
    let Cli { command } = Cli::parse();
    let result: Result<(), Box<dyn Error>> = match command {
        Command::Relay(args) => relay::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fontis: {error}");
            ExitCode::FAILURE
        }
    }
}
