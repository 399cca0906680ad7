//! Erasure codes without a network: files into symbols and back, and measurements.

mod bench;
mod block;
mod curve;
mod decode;
mod encode;
mod symbol_file;

use clap::Subcommand;

use crate::failure::Failure;

/// Turn files into fountain symbols and back, without a network
///
/// Any symbols rebuild the file if there are slightly more of them than source symbols: for data
/// diodes, tapes, QR codes and other lossy media.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Write a file as symbols, half as many again as it has pieces, and rebuild it from what is left of them:
    fontis code encode map.tif --redundancy 50% --out symbols
    fontis code decode symbols --out map.tif
  Send it through a pipe that loses data:
    fontis code encode map.tif --stream | diode | fontis code decode - --out map.tif
  How often k symbols and a few do not suffice, for R10:
    fontis code curve --code r10 --symbols 100";

#[derive(Debug, Subcommand)]
enum Command {
    Encode(encode::Args),
    Decode(decode::Args),
    Bench(bench::Args),
    Curve(curve::Args),
}

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match &self.command {
            Command::Encode(args) => args.json,
            Command::Decode(args) => args.json,
            Command::Bench(args) => args.json,
            Command::Curve(args) => args.json,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Encode(args) => encode::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Curve(args) => curve::run(args),
    }
}
