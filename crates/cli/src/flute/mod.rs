//! Files to and from programs that speak the standard for one-way delivery.

mod flags;
mod receive;
mod send;

use clap::Subcommand;

use crate::failure::Failure;

/// Send and receive files with FLUTE, the standard for one-way delivery (RFC 6726)
///
/// For receivers and senders that others wrote: set-top boxes, gateways of satellites, broadcast
/// networks. NOTHING IS ENCRYPTED, nobody proves who they are, and an MD5 hash is all that tells
/// whether a file is whole. Between two Fontis use fontis cast --one-way, which is encrypted and
/// signed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Send a folder to a multicast group again and again, until Ctrl-C:
    fontis flute send maps --to 239.255.1.2:4437 --rate 20mbit
  Receive on another machine what comes there:
    fontis flute receive inbox --listen 239.255.1.2:4437";

#[derive(Debug, Subcommand)]
enum Command {
    Send(send::Args),
    Receive(receive::Args),
}

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match &self.command {
            Command::Send(args) => args.json,
            Command::Receive(args) => args.json,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Send(args) => send::run(args),
        Command::Receive(args) => receive::run(args),
    }
}
