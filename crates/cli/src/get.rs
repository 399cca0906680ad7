//! Fetching files and folders.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use fontis::transfer::{self, Progress, Report};
use fontis::{Dest, Endpoint, SinkOptions, Url};
use fontis_proto::rate::RateKind;

use crate::archive::ArchiveArgs;
use crate::control::{Control, ControlArgs};
use crate::dial::{dial, persist};
use crate::failure::Failure;
use crate::json;
use crate::left_out::Links;
use crate::listen::status;
use crate::peer::{self, KeyArgs, Keys, ReachArgs};
use crate::progress::{Show, Side, Tracker};
use crate::runtime::{block_on, until_interrupted};
use crate::serve::summary;

/// Fetch a file or a folder from fontis serve
///
/// All content is verified. The file gets its name when it is complete. The hidden partial file of
/// an interrupted transfer stays, and the same command continues it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL that fontis serve printed, with the path of a file or folder before the question
    /// mark. Quote it: shells interpret ? and &. @FILE is the URL in a file, @- the one on standard
    /// input: other users of this machine can see arguments, and the secret in them. A URL without
    /// a secret takes the one in the environment variable FONTIS_SECRET
    url: String,
    /// The destination: an existing folder or a name ending in / receives the object under its own
    /// name, any other name becomes its name, - is standard output
    #[arg(default_value = ".")]
    dest: PathBuf,
    /// Replace an existing destination
    #[arg(long, short)]
    force: bool,
    /// Symbolic links that point out of the folder: skip leaves them out, keep makes them as they
    /// are at the sender; whatever follows such a link reads or writes elsewhere
    #[arg(long, value_enum, default_value_t)]
    links: Links,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Begin anew, and delete the partial file of an interrupted transfer
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the protocol's statistics once a second, on standard error
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Fetch a file into the present folder:
    fontis get 'fontis://192.0.2.1:4433/map.tif?key=KEY&secret=SECRET'
  Fetch all that is served into a new folder:
    fontis get 'fontis://192.0.2.1:4433/?key=KEY&secret=SECRET' maps
  Unpack an archive while it comes:
    fontis get 'fontis://[2001:db8::1]:4433/maps.tar?key=KEY&secret=SECRET' - | tar x";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = peer::url_of_argument(&args.url)?;
    let dest = Dest::new(&args.dest);
    if args.json && dest == Dest::Stdout {
        let text = "--json and - would both write to standard output: name a file or a folder";
        return Err(Failure::Usage(text.to_owned()));
    }
    let keys = args.keys.load()?;
    let tracker = Tracker::new(Show::new(args.json), args.verbose, Side::Receiving);
    let control = Control::new("get", url.path.clone().unwrap_or_default(), &args.control)
        .above(tracker.bar());
    let interruption = match dest {
        Dest::Stdout => "interrupted",
        Dest::Path(_) => "interrupted: what came is kept, and the same command goes on",
    };
    let options = SinkOptions {
        overwrite: args.force,
        restart: args.restart,
        outward_links: args.links == Links::Keep,
        archive: args.archive.which(),
    };
    let attach = |endpoint: &Endpoint| control.attach(endpoint);
    let progress = |progress| tracker.see(progress);
    let fetch = fetch(&url, &dest, options, &keys, &args.reach, attach, progress);
    let fetched = block_on(&keys, async {
        let _open = crate::steering::open(&control);
        until_interrupted(fetch, interruption).await
    });
    tracker.finish();
    let report = fetched?;
    if args.json {
        json::say(&json::done(&report));
    } else {
        status(&summary(&report, "received"));
    }
    crate::left_out::check([&report.left_out], args.json)
}

/// Fetches the object of a URL from the first address of its host that answers, and again after a
/// lost connection. Calls `bound` with each endpoint that it tries.
pub async fn fetch(
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    keys: &Keys,
    reach: &ReachArgs,
    bound: impl Fn(&Endpoint) + Send + Sync,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, Failure> {
    let restart = AtomicBool::new(options.restart);
    // What has been written to standard output cannot be taken back, nor be gone on with.
    let retries = if *dest == Dest::Stdout { 0 } else { reach.retries };
    persist(retries, async |connected| {
        dial(url, reach.timeout.into(), async |remote, answered| {
            let endpoint = keys.bind_towards(remote, &url.key, RateKind::Auto, &reach.paths)?;
            let _follower = reach.paths.follow(&endpoint, remote);
            bound(&endpoint);
            // Only the first attempt is to begin anew.
            let options = SinkOptions { restart: restart.load(Ordering::Relaxed), ..options };
            let progress = |now| {
                answered.see(&now);
                connected.fetch_or(matches!(now, Progress::Connected { .. }), Ordering::Relaxed);
                progress(now);
            };
            Ok(transfer::get(&endpoint, remote, url, dest, options, progress).await?)
        })
        .await
        .inspect_err(|_| {
            restart.fetch_and(!connected.load(Ordering::Relaxed), Ordering::Relaxed);
        })
    })
    .await
}
