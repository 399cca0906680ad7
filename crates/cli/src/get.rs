use std::path::PathBuf;

use fontis::Dest;
use fontis::transfer::{self, GetOptions};
use fontis_proto::rate::Kind;

use crate::dial::dial;
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::peer::{self, KeyArgs, TimeoutArgs};
use crate::progress::{Show, Side, Tracker};
use crate::runtime::{block_on, until_interrupted};
use crate::serve::summary;

/// Fetch a file or a folder that fontis serve serves
///
/// What comes is verified, and has its name only when all of it is there; what was begun and not completed is removed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to fetch: a URL that fontis serve printed, with the path of a file or folder before the question mark.
    /// Quote it: a shell reads ? and & as its own
    url: String,
    /// Where to put it: an existing folder or a name ending in / receives it under its own name, anything else
    /// becomes its name, - is standard output
    #[arg(default_value = ".")]
    dest: PathBuf,
    /// Replace what is at the destination
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the protocol's view once a second, on standard error
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Fetch a file into the present folder:
    fontis get 'fontis://192.0.2.1:4433/map.tif?key=KEY'
  Fetch all that is served into a new folder:
    fontis get 'fontis://192.0.2.1:4433/?key=KEY' maps
  Unpack an archive while it comes:
    fontis get 'fontis://[2001:db8::1]:4433/maps.tar?key=KEY' - | tar x";

/// Fetches.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = peer::url(&args.url)?;
    let dest = Dest::new(&args.dest);
    if args.json && dest == Dest::Stdout {
        let text = "--json and - would both write to standard output: name a file or a folder";
        return Err(Failure::Usage(text.to_owned()));
    }
    let keys = args.keys.load()?;
    let tracker = Tracker::new(Show::new(args.json), args.verbose, Side::Receiving);
    let fetch = dial(&url, args.timeout.timeout.into(), async |remote, connected| {
        let endpoint = keys.bind_towards(remote, Kind::Auto)?;
        let options = GetOptions { overwrite: args.force };
        let progress = |progress| {
            connected.see(&progress);
            tracker.see(progress);
        };
        Ok(transfer::get(&endpoint, remote, &url, &dest, options, progress).await?)
    });
    let fetched = block_on(until_interrupted(fetch));
    tracker.finish();
    let report = fetched?;
    if args.json {
        json::say(&json::done(&report));
    } else {
        status(&summary(&report, "received"));
    }
    Ok(())
}
