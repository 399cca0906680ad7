use std::path::PathBuf;

use fontis::Identity;

use crate::failure::Failure;
use crate::json;
use crate::peer::identity;

/// Print this user's public key, and make the identity if there is none
///
/// A server's operator puts the key into the file of `--allow`, a key a line. A client shows it to
/// servers only if `--identity` names the file. The identity is a file that only its user may read;
/// the other commands also make it on first use.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file of the identity [default: fontis/identity in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  Show the public key that others may allow:
    fontis keygen
  Make an identity for a server of its own:
    fontis keygen --identity /etc/fontis/identity";

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let identity: Identity = identity(args.identity.as_deref())?;
    json::say(&identity.public());
    Ok(())
}
