use std::path::PathBuf;

use fontis::transfer::{FileServer, Report, ServerEvent};

use crate::control::{Control, ControlArgs};
use crate::failure::Failure;
use crate::json;
use crate::left_out::counts;
use crate::listen::{ListenArgs, announce, check_folder, read_secret, status, urls};
use crate::peer::{KeyArgs, RateArgs, SECURITY};
use crate::progress::{Side, view};
use crate::runtime::{block_on, interrupted};
use crate::selection::SelectionArgs;
use crate::text;
use crate::transport::ServedTransportArgs;

/// The port to serve on by default.
const PORT: u16 = 4433;

/// Serve a folder to everybody who has the URL
///
/// Prints a URL for each address under which others reach this machine, then serves until Ctrl-C.
/// The URL contains a secret that permits reading the folder. It is the same in each run for the
/// same folder and identity. Put a path into the URL before the question mark; a URL without one
/// means the whole folder. Listens on UDP port 4433 by default; a firewall must permit it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to serve
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Serve to everybody who knows this machine's public key: the URL contains no secret
    #[arg(long, help_heading = SECURITY)]
    public: bool,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    rate: RateArgs,
    #[command(flatten)]
    transport: ServedTransportArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the protocol's statistics after each transfer
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Serve the present folder on all addresses, port 4433:
    fontis serve
  Serve one folder to two friends, whose keys (from fontis keygen) are in a file:
    fontis serve ~/maps --allow friends.txt
  Serve a working folder without what is built in it:
    fontis serve ~/project --gitignore --exclude .git
  Serve over SCTP, too, to compare both:
    fontis serve --transport sctp
  Serve over SCTP across a link that loses packets at random:
    fontis serve --transport sctp --sctp-code tetrys:adaptive,128
  Serve this machine only, on any free port, for a test through fontis relay:
    fontis serve --listen 127.0.0.1:0";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.rate.check_listener(args.listen.address(PORT))?;
    check_folder(&args.dir, "serve the folder that it is in, and put its name into the URL")?;
    let keys = args.keys.load()?;
    let options = args.selection.load()?;
    let (as_json, verbose) = (args.json, args.verbose);
    block_on(&keys, async {
        let endpoint = args.listen.bind(PORT, &keys, args.rate.rate)?;
        let secret = if args.public { None } else { Some(read_secret(&args.dir, &keys)?) };
        let urls = urls(&endpoint, secret.as_ref());
        let mut server =
            FileServer::new(endpoint.clone(), &args.dir, secret)?.with_options(options);
        if let Some(sctp) = args.transport.bind(endpoint.local_addr())? {
            let failed = |error| Failure::Failed(format!("SCTP cannot be served: {error}"));
            server = server.with_sctp(&sctp, args.transport.coding()).map_err(failed)?;
        }
        let control = Control::new("serve", args.dir.display().to_string(), &args.control);
        control.attach(&endpoint);
        let _open = crate::steering::open(&control);
        announce(&urls, as_json);
        status(&format_args!("serving {}; Ctrl-C ends it", args.dir.display()));
        let events = move |event: ServerEvent| {
            control.see(&event);
            if as_json {
                json::say(&json::server_event(&event, json::sent));
            }
            tell(&event, "sent", verbose, Side::Sending);
        };
        tokio::select! {
            () = server.run(events) => Err(Failure::Failed("the socket failed".to_owned())),
            () = interrupted() => Ok(()),
        }
    })
}

/// Prints an event of a server, for people.
pub(crate) fn tell(event: &ServerEvent, finished: &str, verbose: bool, side: Side) {
    match event {
        ServerEvent::Connected { remote, key } => {
            status(&format_args!("{remote}: connected, with key {key}"));
        }
        ServerEvent::Started { remote, name, bytes } => {
            let size = bytes.map_or_else(|| "a stream".to_owned(), text::size);
            status(&format_args!("{remote}: {}, {size}: started", text::safe(name)));
        }
        ServerEvent::Finished { remote, report } => {
            status(&format_args!("{remote}: {}", summary(report, finished)));
            if report.left_out.total() > 0 {
                status(&format_args!("{remote}: left out: {}", counts(&report.left_out)));
            }
            if verbose {
                status(&format_args!("{remote}: {}", view(&report.stats, side)));
            }
        }
        ServerEvent::Failed { remote, error } => {
            status(&format_args!("{remote}: failed: {}", text::safe(error)));
        }
    }
}

/// A line about a complete transfer.
pub(crate) fn summary(report: &Report, done: &str) -> String {
    let Report { name, bytes, duration, hash, .. } = report;
    if hash.is_empty() {
        return format!("{}: {done} to its end in {}", text::safe(name), text::time(*duration));
    }
    format!(
        "{}: {} {done} in {}, {}, verified, blake3 {hash}",
        text::safe(name),
        text::size(*bytes),
        text::time(*duration),
        text::rate(text::mbps(*bytes, *duration)),
    )
}
