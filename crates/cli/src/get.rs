//! Fetching files and folders.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fontis::transfer::{self, Progress, Report, SourceServer};
use fontis::{Dest, Endpoint, SinkOptions, Url};
use fontis_proto::rate::RateKind;

use crate::control::{Control, ControlArgs};
use crate::dial::{addresses, dial, persist};
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::peer::{self, KeyArgs, Keys, ReachArgs};
use crate::progress::{Show, Side, Tracker};
use crate::runtime::{block_on, until_interrupted};
use crate::selection::PatternArgs;
use crate::serve::summary;
use crate::share::{self, ShareArgs};
use crate::store::StoreArgs;
use crate::transport::FileTransport;

/// Fetch a file or a folder from fontis serve
///
/// All content is verified. The file gets its name when it is complete. The hidden partial file of
/// an interrupted transfer stays, and the same command continues it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "fontis get [OPTIONS] <URL>... [DEST]")]
pub(crate) struct Args {
    /// The URL that fontis serve printed, with the path of a file or folder before the question
    /// mark. Quote it: shells interpret ? and &. @FILE is the URL in a file, @- the one on standard
    /// input: other users of this machine can see arguments, and the secret in them. A URL without
    /// a secret takes the one in the environment variable FONTIS_SECRET.
    ///
    /// Of several URLs, of servers that have the same content, each server sends a part, and the
    /// others send what one that fails would have sent.
    ///
    /// DEST, the last argument if it is no URL, is the destination: an existing folder or a name
    /// ending in / receives the object under its own name, any other name becomes its name, - is
    /// standard output [default: .]
    #[arg(value_name = "URL", required = true, num_args = 1..)]
    arguments: Vec<OsString>,
    #[command(flatten, next_help_heading = "What is fetched")]
    patterns: PatternArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    share: ShareArgs,
    /// What carries the content: dfcp, or sctp with a path for each interface, from a server that
    /// was started with it. The connection of DFCP carries the rest
    #[arg(long, default_value_t)]
    transport: FileTransport,
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
  Fetch all of it but the folder raw and all files that end in .tmp:
    fontis get 'fontis://192.0.2.1:4433/?key=KEY&secret=SECRET' maps --exclude /raw \\
        --exclude '*.tmp'
  Fetch a file from two servers at once:
    fontis get 'fontis://192.0.2.1:4433/map.tif?key=KEY&secret=SECRET' \\
        'fontis://198.51.100.7:4433/map.tif?key=KEY&secret=SECRET' maps/
  Fetch a file over SCTP from a server that was started with --transport sctp:
    fontis get --transport sctp 'fontis://192.0.2.1:4433/map.tif?key=KEY&secret=SECRET'
  Fetch what many others fetch at this moment, and send on to them what has come:
    fontis get --share 'fontis://192.0.2.1:4433/map.tif?key=KEY&secret=SECRET'
  Unpack an archive while it comes:
    fontis get 'fontis://[2001:db8::1]:4433/maps.tar?key=KEY&secret=SECRET' - | tar x";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (urls, dest) = split(&args.arguments)?;
    let url = &urls[0];
    let dest = Dest::new(&dest);
    if urls.len() > 1 && dest == Dest::Stdout {
        let text = "several servers send parts in any order: name a file or a folder, not -";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.json && dest == Dest::Stdout {
        let text = "--json and - would both write to standard output: name a file or a folder";
        return Err(Failure::Usage(text.to_owned()));
    }
    args.transport.check(urls.len(), args.share.is_wanted())?;
    let exclusions = args.patterns.load(false)?;
    let options = SinkOptions { exclusions, ..args.store.options() };
    args.share.check(urls.len(), &dest, &options)?;
    let keys = args.keys.load()?;
    let tracker = Tracker::new(Show::new(args.json), args.verbose, Side::Receiving);
    let control = Control::new("get", url.path.clone().unwrap_or_default(), &args.control)
        .above(tracker.bar());
    let interruption = match dest {
        Dest::Stdout => "interrupted",
        Dest::Path(_) => "interrupted: what came is kept, and the same command goes on",
    };
    let attach = |endpoint: &Endpoint| control.attach(endpoint);
    let attach_all = |endpoints| control.attach_all(endpoints);
    let progress = |progress| tracker.see(progress);
    let fetched = block_on(&keys, async {
        let _open = crate::steering::open(&control);
        if args.share.is_wanted() {
            let fetch = share::fetch(
                url,
                &dest,
                options,
                &keys,
                (&args.reach, &args.share),
                attach,
                progress,
            );
            let (report, sharing) = until_interrupted(fetch, interruption).await?;
            tracker.finish();
            tell(&report, args.json);
            args.share.go_on(sharing, url, args.json).await;
            Ok(report)
        } else if urls.len() == 1 {
            let way = (args.transport, &args.reach);
            let fetch = fetch(url, &dest, options, &keys, way, attach, progress);
            until_interrupted(fetch, interruption).await
        } else {
            let fetch =
                fetch_parts(&urls, &dest, options, &keys, &args.reach, attach_all, progress);
            until_interrupted(fetch, interruption).await
        }
    });
    tracker.finish();
    let report = fetched?;
    if !args.share.is_wanted() {
        tell(&report, args.json);
    }
    crate::left_out::check([&report.left_out], args.json)
}

/// Tells of what is verified and in its place.
fn tell(report: &Report, as_json: bool) {
    if as_json {
        json::say(&json::done(report));
    } else {
        status(&summary(report, "received"));
        match report.left_out.excluded {
            0 => {}
            1 => status(&"left out as wanted: 1 file, folder or link"),
            count => status(&format_args!("left out as wanted: {count} files, folders and links")),
        }
    }
}

/// The URLs of the arguments, and the destination.
fn split(arguments: &[OsString]) -> Result<(Vec<Url>, PathBuf), Failure> {
    let is_url = |text: &str| text.starts_with("fontis://") || text.starts_with('@');
    let mut urls = Vec::new();
    let mut dest = PathBuf::from(".");
    for (number, argument) in arguments.iter().enumerate() {
        match argument.to_str() {
            // What is wrong with the first is said as of a URL.
            Some(text) if number == 0 || is_url(text) => urls.push(peer::url_of_argument(text)?),
            _ if number + 1 == arguments.len() && number > 0 => dest = argument.into(),
            _ => {
                let shown = argument.display();
                return Err(Failure::Usage(format!(
                    "{shown}: URLs begin with fontis:// or @, and only the last argument may be the \
                     destination"
                )));
            }
        }
    }
    Ok((urls, dest))
}

/// Fetches an object from the servers of all URLs, each a part, and again after all connections
/// were lost. Of a host with several addresses the first counts. Calls `bound` with the endpoints.
pub async fn fetch_parts(
    urls: &[Url],
    dest: &Dest,
    options: SinkOptions,
    keys: &Keys,
    reach: &ReachArgs,
    bound: impl Fn(Vec<Endpoint>) + Send + Sync,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, Failure> {
    let restart = AtomicBool::new(options.restart);
    persist(reach.retries, async |connected| {
        let (mut servers, mut followers, mut none) = (Vec::new(), Vec::new(), None);
        for url in urls {
            match server(url, keys, reach).await {
                Ok(server) => {
                    followers.push(reach.paths.follow(&server.endpoint, server.remote));
                    servers.push(server);
                }
                Err(failure) => {
                    status(&format!("{}: the others go on: {failure}", url.host));
                    none.get_or_insert(failure);
                }
            }
        }
        if let (true, Some(failure)) = (servers.is_empty(), none) {
            return Err(failure);
        }
        bound(servers.iter().map(|server| server.endpoint.clone()).collect());
        // Only the first attempt is to begin anew.
        let options = SinkOptions { restart: restart.load(Ordering::Relaxed), ..options.clone() };
        let progress = |now| {
            connected.fetch_or(matches!(now, Progress::Connected { .. }), Ordering::Relaxed);
            if matches!(now, Progress::Started { .. }) {
                restart.store(false, Ordering::Relaxed);
            }
            progress(now);
        };
        let patience = Duration::from(reach.timeout);
        Ok(transfer::get_from(servers, dest, options, patience, progress).await?)
    })
    .await
}

/// The server of a URL at the first address of its host.
async fn server(url: &Url, keys: &Keys, reach: &ReachArgs) -> Result<SourceServer, Failure> {
    let remote = addresses(url).await?[0];
    let endpoint = keys.bind_towards(remote, &url.key, RateKind::Auto, &reach.paths)?;
    Ok(SourceServer { endpoint, remote, url: url.clone() })
}

/// Fetches the object of a URL from the first address of its host that answers, and again after a
/// lost connection. Calls `bound` with each endpoint that it tries.
pub async fn fetch(
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    keys: &Keys,
    (transport, reach): (FileTransport, &ReachArgs),
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
            let options =
                SinkOptions { restart: restart.load(Ordering::Relaxed), ..options.clone() };
            let progress = |now| {
                answered.see(&now);
                connected.fetch_or(matches!(now, Progress::Connected { .. }), Ordering::Relaxed);
                progress(now);
            };
            if transport == FileTransport::Sctp {
                let from = reach.paths.of_sctp(remote)?;
                let got =
                    transfer::get_over_sctp(&endpoint, &from, remote, url, dest, options, progress);
                return Ok(got.await?);
            }
            Ok(transfer::get(&endpoint, remote, url, dest, options, progress).await?)
        })
        .await
        .inspect_err(|_| {
            restart.fetch_and(!connected.load(Ordering::Relaxed), Ordering::Relaxed);
        })
    })
    .await
}
