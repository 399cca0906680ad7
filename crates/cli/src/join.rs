//! Taking part in a cast.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fontis::transfer::{self, Joined, Progress, Report};
use fontis::{Dest, Url};
use fontis_proto::rate::RateKind;

use crate::control::{Control, ControlArgs};
use crate::dial::{dial, persist};
use crate::failure::Failure;
use crate::interfaces::{group_interface, group_interface_for};
use crate::json;
use crate::listen::status;
use crate::peer::{self, KeyArgs, ReachArgs};
use crate::progress::{Show, Side, Tracker};
use crate::runtime::{block_on, until_interrupted};
use crate::serve::summary;
use crate::store::StoreArgs;

/// Receive what fontis cast sends to many
///
/// One may come at any time. If nothing comes from the group, the object is fetched over a
/// connection instead. A stream begins where it is, and is written as it comes; - is standard
/// output. All content is verified. The file gets its name when it is complete. The
/// hidden partial file of an interrupted transfer stays, and the same command continues it. A
/// stream of which something is lacking is left as NAME.incomplete.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL that fontis cast printed. Quote it: shells interpret ? and &. @FILE is the URL in a
    /// file, @- the one on standard input: other users of this machine can see arguments, and the
    /// secret in them
    url: String,
    /// The destination: an existing folder or a name ending in / receives the object under its own
    /// name, any other name becomes its name
    #[arg(default_value = ".")]
    dest: PathBuf,
    /// The interface on which to listen for the group [default: the one towards the sender]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Say more
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Take part, and write into the present folder:
    fontis join 'fontis://192.0.2.1:4435/image.iso?key=KEY&secret=SECRET'
  Play a stream while it is made:
    fontis join 'fontis://192.0.2.1:4435/stream?key=KEY&secret=SECRET' - | mpv -
  Listen on one interface, and write to a name of your own:
    fontis join 'fontis://192.0.2.1:4435/image.iso?key=KEY&secret=SECRET' new.iso --interface eth1";

const INTERRUPTION: &str =
    "interrupted: what came is kept; the same command goes on with an object";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = peer::url_of_argument(&args.url)?;
    let dest = Dest::new(&args.dest);
    if dest == Dest::Stdout && args.json {
        let text = "- and --json both write to standard output: choose one";
        return Err(Failure::Usage(text.to_owned()));
    }
    if dest == Dest::Stdout && group_of(&url).is_some() {
        let text = "what is cast one way comes in any order: name a file or a folder, not -";
        return Err(Failure::Usage(text.to_owned()));
    }
    let keys = args.keys.load()?;
    let tracker = Tracker::new(Show::new(args.json), args.verbose, Side::Receiving);
    let control = Control::new("join", url.path.clone().unwrap_or_default(), &args.control)
        .above(tracker.bar());
    let options = args.store.options();
    if let Some(group) = group_of(&url) {
        let interface = match &args.interface {
            Some(name) => group_interface(name, group.is_ipv6())?,
            None => group_interface_for(group)?,
        };
        let waiting = "waiting for the sender, which takes no answers; Ctrl-C ends it";
        status(&waiting);
        let joined = block_on(&keys, async {
            let progress = |now| tracker.see(now);
            let work = async {
                let join = transfer::join_one_way(
                    group,
                    &url,
                    interface,
                    &dest,
                    options.clone(),
                    progress,
                );
                Ok(join.await?)
            };
            until_interrupted(work, INTERRUPTION).await
        });
        tracker.finish();
        return show(&joined?, &tracker, args.json);
    }
    let joined = block_on(&keys, async {
        let _open = crate::steering::open(&control);
        let work = persist(args.reach.retries, async |connected| {
            dial(&url, args.reach.timeout.into(), async |remote, answered| {
                let interface = match &args.interface {
                    Some(name) => Some(group_interface(name, remote.is_ipv6())?),
                    None => None,
                };
                let reach = &args.reach;
                let endpoint = keys.bind_towards(remote, &url.key, RateKind::Auto, &reach.paths)?;
                control.attach(&endpoint);
                let progress = |now: Progress| {
                    answered.see(&now);
                    let is_there = matches!(now, Progress::Connected { .. });
                    connected.fetch_or(is_there, std::sync::atomic::Ordering::Relaxed);
                    tracker.see(now);
                };
                let joining = transfer::join(
                    &endpoint,
                    remote,
                    &url,
                    interface,
                    &dest,
                    options.clone(),
                    progress,
                );
                Ok(joining.await?)
            })
            .await
        });
        until_interrupted(work, INTERRUPTION).await
    });
    tracker.finish();
    let (report, how) = joined?;
    if how == Joined::Unicast {
        status(&"nothing came from the group: it was fetched over a connection");
    }
    show(&report, &tracker, args.json)
}

/// Tells what was received.
fn show(report: &Report, tracker: &Tracker, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let mut done = json::done(report);
        done["forged"] = tracker.forged().into();
        json::say(&done);
    } else {
        tracker.say_forged();
        status(&summary(report, "received"));
    }
    crate::left_out::check([&report.left_out], as_json)
}

/// The group of a URL of a cast that takes no answers.
fn group_of(url: &Url) -> Option<SocketAddr> {
    let ip: IpAddr = url.host.parse().ok()?;
    ip.is_multicast().then(|| SocketAddr::new(ip, url.port))
}
