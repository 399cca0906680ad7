use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fontis::flute::{FluteEnd, FluteFileReceiver, FluteNews, FluteReceiveOptions, FluteReport};
use fontis::udp::is_source_specific;
use fontis_base::{Duration, Size};
use serde_json::json;

use super::flags::{Matrix, interface_towards, session};
use crate::failure::Failure;
use crate::json;
use crate::listen::{address, status};
use crate::runtime::interruption;
use crate::text::{safe, size};

/// Receive the files of a sender that takes no answers
///
/// A file gets its name when it is whole, and has the MD5 hash that the sender gave. Names that
/// lead out of the folder are refused. Ends when all files that the sender announced are there.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to receive into, which is made if it is not there
    #[arg(default_value = ".")]
    dest: PathBuf,
    /// The multicast group, or an address of this machine, and the port, as in 239.255.1.2:4437
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    listen: SocketAddr,
    /// Take packets of this sender only [default: the first that is heard]
    #[arg(long, value_name = "IP")]
    source: Option<IpAddr>,
    /// The interface on which to listen for a group, by its name or its address [default: the one
    /// that the system prefers]
    #[arg(long, value_name = "IP|NAME")]
    interface: Option<String>,
    /// The transport session identifier [default: the first that is heard]
    #[arg(long, value_name = "N", value_parser = session)]
    tsi: Option<u64>,
    /// End if nothing comes for so long
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    timeout: Duration,
    /// End when so many files have come [default: all that the sender announces]
    #[arg(long, value_name = "N")]
    objects: Option<usize>,
    /// Memory that blocks take at most which are not whole yet
    #[arg(long, value_name = "SIZE", default_value = "256MB")]
    memory: Size,
    /// The matrix of Reed-Solomon, if the sender uses that
    #[arg(long, value_enum, default_value_t)]
    rs_matrix: Matrix,
    /// Replace existing files
    #[arg(long, short)]
    force: bool,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Receive what comes to a group into a folder:
    fontis flute receive inbox --listen 239.255.1.2:4437
  Of one sender, and only two files:
    fontis flute receive inbox --listen 232.1.2.3:4437 --source 192.0.2.1 --objects 2
  What somebody sends to this machine:
    fontis flute receive --listen 0.0.0.0:4437 --timeout 10min";

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let group = args.listen.ip();
    if group.is_multicast() && is_source_specific(group) && args.source.is_none() {
        let text = format!("{group} is a group of one source: name it with --source");
        return Err(Failure::Usage(text));
    }
    if args.objects == Some(0) {
        let text = "--objects 0 receives nothing: leave it out, or name a number";
        return Err(Failure::Usage(text.to_owned()));
    }
    let options = FluteReceiveOptions {
        listen: args.listen,
        interface: interface_towards(args.listen, args.interface.as_deref())?,
        source: args.source,
        tsi: args.tsi,
        memory: usize::try_from(args.memory.as_bytes()).unwrap_or(usize::MAX),
        timeout: args.timeout.into(),
        objects: args.objects,
        overwrite: args.force,
        points: args.rs_matrix.points(),
    };
    let stop = interruption()?;
    let receiver = FluteFileReceiver::new(&args.dest, options)?;
    let listening = receiver.local_addr().unwrap_or(args.listen);
    if args.json {
        json::say(&json!({ "event": "listening", "address": listening.to_string() }));
    }
    status(&format_args!(
        "listening on {listening} for files into {}; Ctrl-C ends it",
        args.dest.display()
    ));
    let report = receiver.run(&stop, |news| tell(&news, args.json))?;
    judge(&report, args)
}

fn tell(news: &FluteNews, as_json: bool) {
    match news {
        FluteNews::Announced { location, bytes } if as_json => json::say(&json!({
            "event": "announced", "location": safe(location), "bytes": bytes,
        })),
        FluteNews::Announced { .. } => {}
        FluteNews::Received { path, bytes, is_verified } if as_json => json::say(&json!({
            "event": "received", "path": path.to_string_lossy(), "bytes": bytes,
            "verified": is_verified,
        })),
        FluteNews::Received { path, bytes, is_verified } => status(&format_args!(
            "received {}, {}{}",
            safe(&path.to_string_lossy()),
            size(*bytes),
            if *is_verified { "" } else { "; the sender gave no hash to verify it" }
        )),
        FluteNews::Wrong { location } if as_json => {
            json::say(&json!({ "event": "wrong", "location": safe(location) }));
        }
        FluteNews::Wrong { location } => status(&format_args!(
            "{} came with another hash than the sender gave; waiting for it again",
            safe(location)
        )),
        FluteNews::Refused { location, reason } if as_json => json::say(&json!({
            "event": "refused", "location": safe(location), "reason": safe(reason),
        })),
        FluteNews::Refused { location, reason } => {
            status(&format_args!("{} is not received: {}", safe(location), safe(reason)));
        }
    }
}

/// The end of the command: a success if all is here that was wanted.
fn judge(report: &FluteReport, args: &Args) -> Result<(), Failure> {
    let FluteReport { files, bytes, missing, end, forgotten, wrong, first_wrong } = report;
    if args.json {
        json::say(&json!({
            "event": "done", "files": files, "bytes": bytes, "forgotten_blocks": forgotten,
            "missing": missing.iter().map(|one| safe(one)).collect::<Vec<_>>(),
        }));
    }
    // Who wants a number of files has enough with them, whatever else was announced.
    let is_enough = match args.objects {
        Some(objects) => *files >= objects,
        None => missing.is_empty() && *files > 0 && *end != FluteEnd::Stopped,
    };
    if is_enough {
        let noun = if *files == 1 { "file" } else { "files" };
        status(&format_args!("received {files} {noun}, {}", size(*bytes)));
        return Ok(());
    }
    let why = match end {
        FluteEnd::Complete => "some files could not be received".to_owned(),
        FluteEnd::Closed => "the sender ended the session".to_owned(),
        FluteEnd::Timeout => format!("nothing came for {}", args.timeout),
        FluteEnd::Stopped => "interrupted".to_owned(),
    };
    let mut text = match (missing.first(), files) {
        (Some(first), _) => format!(
            "{why}: {files} files are here, and {} are not, the first of them {}",
            missing.len(),
            safe(first)
        ),
        (None, 0) => format!("{why}: no file is here"),
        (None, files) => format!("{why}: {files} files are here, and more were wanted"),
    };
    if *forgotten > 0 {
        text += &format!("; {forgotten} blocks found no room: raise --memory");
    }
    if let Some(first) = first_wrong {
        text += &format!("; {wrong} packets were not understood: {}", safe(first));
    }
    Err(Failure::Failed(text))
}
