use std::net::SocketAddr;
use std::path::PathBuf;

use fontis::flute::{FluteFileSender, FluteSendOptions};
use fontis_base::Rate;
use fontis_proto::flute::{FecPlan, FecScheme};
use serde_json::json;

use super::flags::{Matrix, interface_towards, session};
use crate::failure::Failure;
use crate::json;
use crate::listen::{address, status};
use crate::runtime::interruption;
use crate::selection::PatternArgs;
use crate::text;

/// Send files to receivers that cannot answer
///
/// Reads everything once, for its hashes, before it sends. Files of folders are sent with their
/// paths; links and empty folders are not.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The files and folders
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The multicast group or the receiver, and its port, as in 239.255.1.2:4437
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    to: SocketAddr,
    /// The interface towards a group, by its name or its address [default: the one that the system
    /// prefers]
    #[arg(long, value_name = "IP|NAME")]
    interface: Option<String>,
    /// The transport session identifier; sessions of this machine at the same time have different
    /// ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = session)]
    tsi: u64,
    /// Forward error correction: raptorq (RFC 6330), rs (RFC 5510), r10 (RFC 5053), or none
    #[arg(long, value_name = "SCHEME", default_value = "raptorq", value_parser = str::parse::<FecScheme>)]
    fec: FecScheme,
    /// Repair symbols in percent of the source symbols, rounded up in each block [default: 20, or 0
    /// with --fec none]
    #[arg(long, value_name = "PERCENT")]
    repair: Option<u32>,
    /// Bytes of a symbol; each packet has one
    #[arg(long, value_name = "BYTES", default_value_t = 1400)]
    symbol_size: u16,
    /// Source symbols of a block at most [default: 1024, or what rs can do]
    #[arg(long, value_name = "N")]
    block_symbols: Option<u32>,
    /// The matrix of rs
    #[arg(long, value_enum, default_value_t)]
    rs_matrix: Matrix,
    /// Bytes of packets that leave in a second, which give way to nobody
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = rate)]
    rate: Rate,
    /// How often everything is sent; codes that can send other symbols each time [default: until
    /// Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Routers that packets to a group may pass; 1 keeps them on the own network
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..256))]
    ttl: u32,
    #[command(flatten)]
    patterns: PatternArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Send a file three times to a group, so that a fifth of the packets may be lost each time:
    fontis flute send image.iso --to 239.255.1.2:4437 --repair 30 --rounds 3 --rate 50mbit
  Send to one receiver that knows Reed-Solomon only:
    fontis flute send a.bin b.bin --to 192.0.2.7:4437 --fec rs --rounds 1";

/// Repair symbols in percent, where nothing is said.
const REPAIR: u32 = 20;

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate.as_bps() < 8000 => {
            Err("a sender needs 8 kbit/s at least; write something like 20mbit".to_owned())
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.to.port() == 0 {
        return Err(Failure::Usage(format!("{} has no port: write ADDR:PORT", args.to)));
    }
    let repair = args.repair.unwrap_or(if args.fec == FecScheme::NoCode { 0 } else { REPAIR });
    let plan = FecPlan::new(args.fec, args.symbol_size, args.block_symbols, repair);
    let plan = plan.map_err(|error| Failure::Usage(error.to_string()))?;
    let options = FluteSendOptions {
        to: args.to,
        interface: interface_towards(args.to, args.interface.as_deref())?,
        hops: args.ttl,
        tsi: args.tsi,
        plan: plan.with_points(args.rs_matrix.points()),
        rate: args.rate,
        rounds: args.rounds,
        source: fontis::SourceOptions {
            exclusions: args.patterns.load(false)?,
            ..fontis::SourceOptions::default()
        },
    };
    let stop = interruption()?;
    let sender = FluteFileSender::new(&args.paths, options)?;
    let (files, bytes) = sender.size();
    let rounds = args.rounds.map_or("until Ctrl-C".to_owned(), |rounds| match rounds {
        1 => "once".to_owned(),
        rounds => format!("{rounds} times"),
    });
    status(&format_args!(
        "sending {files} {}, {}, to {} {rounds}, not encrypted",
        if files == 1 { "file" } else { "files" },
        text::size(bytes),
        args.to,
    ));
    if sender.left_out() > 0 {
        status(&format_args!("{} links and other entries are not sent", sender.left_out()));
    }
    if args.json {
        let event = json!({ "event": "sending", "files": files, "bytes": bytes });
        json::say(&event);
    }
    let datagrams = sender.run(&stop)?;
    match args.json {
        true => json::say(&json!({ "event": "done", "files": files, "datagrams": datagrams })),
        false => status(&format_args!("sent {datagrams} packets")),
    }
    Ok(())
}
