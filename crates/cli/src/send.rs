//! Sending files and folders.

use std::io::{Write, stdin};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fontis::transfer::{self, Progress};
use fontis::{Endpoint, SourceOptions, Url};

use crate::control::{Control, ControlArgs};
use crate::dial::{dial, persist};
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::peer::{self, KeyArgs, Keys, RateArgs, ReachArgs};
use crate::progress::{Show, Side, Tracker};
use crate::runtime::{block_on, until_interrupted};
use crate::selection::SelectionArgs;
use crate::serve::summary;

/// Send files and folders to fontis receive
///
/// They are sent one after another. Each counts as sent when the receiver has verified and stored
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files, folders, or - for standard input, which the receiver stores as stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The URL that fontis receive printed. Quote it: shells interpret ? and &. @FILE is the URL in
    /// a file, @- the one on standard input: other users of this machine can see arguments, and the
    /// secret in them. A URL without a secret takes the one in the environment variable
    /// FONTIS_SECRET
    #[arg(required = true)]
    url: String,
    #[command(flatten)]
    rate: RateArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    reach: ReachArgs,
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
  Send a file and a folder:
    fontis send map.tif photos 'fontis://192.0.2.1:4434/?key=KEY&secret=SECRET'
  Send a folder without its largest part:
    fontis send project 'fontis://192.0.2.1:4434/?key=KEY&secret=SECRET' --exclude /target
  Send at 20 Mbit/s, whatever happens:
    fontis send map.tif 'fontis://192.0.2.1:4434/?key=KEY&secret=SECRET' --rate 20mbit";

const INTERRUPTION: &str =
    "interrupted: the receiver keeps what came, and the same command goes on";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = match &*args.url {
        "@-" if args.paths.iter().any(|path| path == Path::new("-")) => {
            let text = "there is only one standard input: it has the URL or the content";
            return Err(Failure::Usage(text.to_owned()));
        }
        text => peer::url_of_argument(text)?,
    };
    let keys = args.keys.load()?;
    let options = args.selection.load()?;
    let input = Input::collect(&args.paths)?;
    let tracker = Tracker::new(Show::new(args.json), args.verbose, Side::Sending);
    let subject: Vec<_> = args.paths.iter().map(|path| path.to_string_lossy()).collect();
    let control = Control::new("send", subject.join(" "), &args.control).above(tracker.bar());
    let stored = Mutex::new(Vec::new());
    let progress = |progress| match progress {
        Progress::Stored(report) => lock(&stored).push(*report),
        progress => tracker.see(progress),
    };
    let attach = |endpoint: &Endpoint| control.attach(endpoint);
    let parcel = Parcel { paths: &input.paths, options: &options };
    let send = deliver(parcel, &url, &args.rate, &keys, &args.reach, attach, progress);
    let sent = block_on(&keys, async {
        let _open = crate::steering::open(&control);
        until_interrupted(send, INTERRUPTION).await
    });
    tracker.finish();
    let stored = lock(&stored);
    for report in stored.iter() {
        if args.json {
            json::say(&json::sent(report));
        } else {
            status(&summary(report, "sent"));
        }
    }
    sent.and_then(|()| {
        crate::left_out::check(stored.iter().map(|report| &report.left_out), args.json)
    })
}

/// Files and folders to send, and what of them.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// What of them is sent.
    pub options: &'a SourceOptions,
}

/// Sends files and folders to the receiver of a URL, at the first of its addresses that answers,
/// and continues after a lost connection. Calls `bound` with each endpoint that it tries, and
/// `progress` for each stored file or folder.
pub async fn deliver(
    parcel: Parcel<'_>,
    url: &Url,
    rate: &RateArgs,
    keys: &Keys,
    reach: &ReachArgs,
    bound: impl Fn(&Endpoint) + Send + Sync,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(), Failure> {
    let stored = AtomicUsize::new(0);
    persist(reach.retries, async |connected| {
        dial(url, reach.timeout.into(), async |remote, answered| {
            rate.check_remote(remote)?;
            let endpoint = keys.bind_towards(remote, &url.key, rate.rate, &reach.paths)?;
            let _follower = reach.paths.follow(&endpoint, remote);
            bound(&endpoint);
            let progress = |now| {
                answered.see(&now);
                connected.fetch_or(matches!(now, Progress::Connected { .. }), Ordering::Relaxed);
                stored
                    .fetch_add(usize::from(matches!(now, Progress::Stored(_))), Ordering::Relaxed);
                progress(now);
            };
            // What a lost connection had delivered is not sent twice.
            let left = &parcel.paths[stored.load(Ordering::Relaxed)..];
            Ok(transfer::send(&endpoint, remote, url, left, parcel.options, progress).await?)
        })
        .await
    })
    .await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The input, and the copy of standard input, which must be read to its end before its size is
/// known.
struct Input {
    paths: Vec<PathBuf>,
    _spool: Option<tempfile::TempDir>,
}

impl Input {
    fn collect(paths: &[PathBuf]) -> Result<Self, Failure> {
        let is_stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
        match paths.iter().filter(is_stdin).count() {
            0 => return Ok(Self { paths: paths.to_owned(), _spool: None }),
            1 => {}
            _ => {
                return Err(Failure::Usage("there is only one standard input: name - once".into()));
            }
        }
        let failed = |error| Failure::Failed(format!("cannot keep standard input: {error}"));
        let spool = tempfile::tempdir().map_err(failed)?;
        let kept = spool.path().join("stdin");
        let mut file = std::fs::File::create(&kept).map_err(failed)?;
        std::io::copy(&mut stdin().lock(), &mut file).and_then(|_| file.flush()).map_err(failed)?;
        let place = |path| if is_stdin(&path) { kept.clone() } else { path.clone() };
        Ok(Self { paths: paths.iter().map(place).collect(), _spool: Some(spool) })
    }
}
