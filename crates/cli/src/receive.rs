use std::path::PathBuf;

use fontis::Secret;
use fontis::transfer::{InboxOptions, Receiver, ServerEvent};
use fontis_base::Size;
use fontis_proto::rate::RateKind;

use crate::archive::ArchiveArgs;
use crate::control::{Control, ControlArgs};
use crate::failure::Failure;
use crate::json;
use crate::left_out::Links;
use crate::listen::{ListenArgs, announce, check_inbox, status, urls};
use crate::peer::KeyArgs;
use crate::progress::Side;
use crate::runtime::{block_on, interrupted};
use crate::serve::tell;

/// The port to receive on by default: not the server's, so that both run on one machine.
const PORT: u16 = 4434;

/// Receive files from fontis send into a folder
///
/// Prints a URL for each address under which others reach this machine. The URL contains a secret,
/// new in each run, that permits writing into the folder. Receives until Ctrl-C. Listens on UDP
/// port 4434 by default; a firewall must permit it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to receive into
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    control: ControlArgs,
    /// Replace existing files
    #[arg(long, short)]
    force: bool,
    /// Accept names that begin with a dot; in a home folder such a file can be a program's
    /// configuration
    #[arg(long)]
    hidden: bool,
    /// Symbolic links that point out of the folder that is sent: skip leaves them out, keep makes
    /// them as they are at the sender; whatever follows such a link reads or writes elsewhere
    #[arg(long, value_enum, default_value_t)]
    links: Links,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// The most bytes to receive in this run, as in 20GB; each file and folder counts 4 KiB beside
    /// its content [default: what the disk holds]
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the protocol's statistics after each transfer
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Receive into a folder; give the URL that this prints to the sender:
    fontis receive ~/inbox
  Receive on port 9000, and replace what is there:
    fontis receive ~/inbox --listen 0.0.0.0:9000 --force
  Receive at most 20 GB:
    fontis receive ~/inbox --max-size 20GB";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check_inbox(&args.dir)?;
    let keys = args.keys.load()?;
    let (as_json, verbose) = (args.json, args.verbose);
    block_on(&keys, async {
        let endpoint = args.listen.bind(PORT, &keys, RateKind::Auto)?;
        let secret = Secret::generate();
        let max_size = args.max_size.map(Size::as_bytes);
        let options = InboxOptions {
            overwrite: args.force,
            hidden: args.hidden,
            max_size,
            outward_links: args.links == Links::Keep,
            archive: args.archive.which(),
        };
        let urls = urls(&endpoint, Some(&secret));
        let receiver = Receiver::new(endpoint.clone(), &args.dir, secret, options)?;
        let control = Control::new("receive", args.dir.display().to_string(), &args.control);
        control.attach(&endpoint);
        let _open = crate::steering::open(&control);
        announce(&urls, as_json);
        status(&format_args!("receiving into {}; Ctrl-C ends it", args.dir.display()));
        let events = move |event: ServerEvent| {
            control.see(&event);
            if as_json {
                json::say(&json::server_event(&event, json::received));
            }
            tell(&event, "received", verbose, Side::Receiving);
        };
        tokio::select! {
            () = receiver.run(events) => Err(Failure::Failed("the socket failed".to_owned())),
            () = interrupted() => Ok(()),
        }
    })
}
