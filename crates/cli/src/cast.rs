//! Sending to many receivers at once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fontis::transfer::{
    CastGroup, CastOptions, Caster, FileServer, LiveOptions, OneWayOptions, OneWaySender,
    ServerEvent,
};
use fontis::udp::is_source_specific;
use fontis::{Secret, SourceOptions, Url};
use fontis_base::{Probability, Rate};
use fontis_proto::cast::{CastLaw, CastRate};
use fontis_proto::rate::RateKind;

use crate::casting::{caster_of, rate_text, watch};
use crate::control::{Control, ControlArgs};
use crate::failure::Failure;
use crate::interfaces::{group_interface, group_interface_for};
use crate::json;
use crate::listen::{ListenArgs, address, announce, read_secret, status, urls_of};
use crate::peer::{KeyArgs, Keys, SECURITY};
use crate::progress::Side;
use crate::runtime::{block_on, interrupted};
use crate::selection::SelectionArgs;
use crate::serve::tell;
use crate::swarm::{self, SwarmCast};
use crate::text;

/// The port at which receivers ask to take part.
const PORT: u16 = 4435;
/// The port of the group by default.
const GROUP_PORT: u16 = 4436;

/// Send a file or a folder to many receivers at once, by multicast
///
/// Prints a URL for each address under which others reach this machine. Receivers take part with
/// fontis join, at any time; who comes late loses nothing. Every repair serves all of them: what is
/// sent hardly grows with their number. A receiver with a worse path than the others delays nobody.
/// Who does not hear the group is served over a connection of its own, but not with a stream.
/// Listens on UDP port 4435 by default; a firewall must permit it, and reports to another port.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file or folder; - is a stream, which is read from standard input while it is sent
    path: PathBuf,
    /// The multicast group and its port, as in 239.255.1.2:4436 or [ff15::1234]:4436; of a group in
    /// 232.0.0.0/8 routers ask for this machine's packets only [default: one of 239.255.0.0/16,
    /// which stays within the site]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    group: Option<SocketAddr>,
    /// The interface towards the group [default: the one that the system prefers]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Routers that packets to the group may pass; 1 keeps them on the own network
    #[arg(long, value_name = "N", default_value_t = 1)]
    hops: u32,
    /// Content that leaves in a second, as in 50mbit, which gives way to nobody; or tfmcc, which
    /// shares the path to the slowest receiver fairly with TCP, and takes every loss for
    /// congestion; or auto, which takes there what fontis get would take, and finds out which loss
    /// is the path's own. Fifty casts by auto over one link drop up to 2.9 %, where TCP drops 1.0 %
    /// [default: tfmcc]
    #[arg(long, value_name = "RATE|auto|tfmcc", value_parser = rate)]
    rate: Option<CastRate>,
    /// With auto and tfmcc, the least: a receiver that is slower has what it lacks later, and slows
    /// nobody
    #[arg(long, value_name = "RATE", value_parser = fixed_rate)]
    min_rate: Option<Rate>,
    /// End when so many have everything [default: Ctrl-C ends it]
    #[arg(long, value_name = "N")]
    receivers: Option<u32>,
    /// Begin when so many have come [default: as many as --receivers says, or one]
    #[arg(long, value_name = "N")]
    start: Option<u32>,
    /// Receivers fetch with fontis get --share, and send on to each other what has come;
    /// --receivers says when this side may leave. By multicast, too, if --rate or --group is given:
    /// whom that does not reach, and who comes late, gets everything from the others
    #[arg(long, conflicts_with = "one_way")]
    swarm: bool,
    /// Take no answers, for a data diode, a satellite, or multicast without a way back: send so
    /// much that --loss does not matter, in rounds
    #[arg(long, conflicts_with_all = ["receivers", "start", "public", "listen", "allow"])]
    one_way: bool,
    /// With --one-way, the share of packets that a receiver may lose and have everything after one
    /// round
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = loss)]
    #[arg(requires = "one_way")]
    loss: f64,
    /// With --one-way, how often everything is sent, each time with other symbols [default: until
    /// Ctrl-C]
    #[arg(long, value_name = "N", requires = "one_way")]
    rounds: Option<u32>,
    /// With -, the time after which a part of the stream is skipped that has not come; that of the
    /// path is not counted. A quarter of it goes by before a part leaves
    #[arg(long, value_name = "TIME", value_parser = latency)]
    latency: Option<fontis_base::Duration>,
    /// Send to everybody who knows this machine's public key: the URL contains no secret
    #[arg(long, help_heading = SECURITY)]
    public: bool,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Send an image to thirty machines in a room; it ends when all have it:
    fontis cast image.iso --receivers 30
  The same over Wi-Fi, which loses packets without being full, for 20 Mbit/s:
    fontis cast image.iso --receivers 30 --rate 20mbit
  On each of them:
    fontis join 'fontis://192.0.2.1:4435/image.iso?key=KEY&secret=SECRET'
  Through a data diode, twice, at a loss of up to 20 %:
    fontis cast backup.tar --one-way --loss 20% --rounds 2 --rate 100mbit
  A stream while it is made, repaired for two seconds:
    arecord -f cd | fontis cast - --rate 3mbit --latency 2s
  Where multicast does not pass; each receiver sends on to the others what it has:
    fontis cast image.iso --swarm
  Where it reaches some of them:
    fontis cast image.iso --swarm --rate 100mbit --receivers 30
  Over routers that forward a group of one source:
    fontis cast image.iso --rate 50mbit --group 232.1.2.3:4436 --hops 8";

/// Reads how fast to send.
fn rate(text: &str) -> Result<CastRate, String> {
    match text {
        "tfmcc" => Ok(CastRate::by(CastLaw::Tfmcc)),
        "auto" => Ok(CastRate::by(CastLaw::Auto)),
        _ => fixed_rate(text).map(CastRate::Fixed),
    }
}

/// Reads a rate that something can be sent at.
fn fixed_rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate.as_bps() < 8000 => {
            Err("a cast needs 8 kbit/s at least; write something like 20mbit".to_owned())
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// The latency of a stream.
const LATENCY: fontis_base::Duration = fontis_base::Duration::from_secs(2);

/// Reads a latency.
fn latency(text: &str) -> Result<fontis_base::Duration, String> {
    text.parse().map_err(|error| format!("{error}; write something like 500ms or 2s"))
}

/// Reads a share of packets below 90 %.
fn loss(text: &str) -> Result<f64, String> {
    match text.parse::<Probability>() {
        Ok(share) if share.get() < 0.9 => Ok(share.get()),
        Ok(_) => Err("write a share below 90%, as in 20% or 0.2".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A group for this path, so that casts of one machine at the same time have different groups.
fn group_for(path: &Path) -> SocketAddr {
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
    let [a, b, ..] = *hash.as_bytes();
    // RFC 2365, section 6.1: the IPv4 local scope.
    (IpAddr::V4(Ipv4Addr::new(239, 255, a, b)), GROUP_PORT).into()
}

/// The rate of the flags.
fn chosen_rate(args: &Args) -> Result<CastRate, Failure> {
    match (args.rate.unwrap_or(CastRate::by(CastLaw::Tfmcc)), args.min_rate) {
        (CastRate::Fixed(_), Some(_)) => {
            let text = "--min-rate is for --rate auto and tfmcc: a fixed rate is the least and the \
                        most";
            Err(Failure::Usage(text.to_owned()))
        }
        (CastRate::Adaptive { law, most, .. }, Some(least)) => {
            Ok(CastRate::Adaptive { law, least, most })
        }
        (rate, None) => Ok(rate),
    }
}

/// The path without links, of what is there.
fn opened(path: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error| Failure::Failed(format!("cannot open {}: {error}", path.display()));
    path.canonicalize().map_err(cannot)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let is_stream = args.path.as_os_str() == "-";
    if is_stream && (args.one_way || args.swarm) {
        let text = "a stream goes to a group that answers: leave --one-way and --swarm out";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.latency.is_some() && !is_stream {
        let text = "--latency is for a stream: write - for the path, and feed standard input";
        return Err(Failure::Usage(text.to_owned()));
    }
    if is_stream && !args.selection.is_empty() {
        let text = "a stream has no files: leave --exclude, --exclude-from, --gitignore and \
                    --archive out";
        return Err(Failure::Usage(text.to_owned()));
    }
    let path = if is_stream { args.path.clone() } else { opened(&args.path)? };
    if args.receivers == Some(0) {
        let text = "--receivers 0 sends nothing to nobody: leave it out, or name a number";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.swarm {
        let casts = args.rate.is_some() || args.group.is_some();
        let others = args.start.is_some()
            || args.min_rate.is_some()
            || args.interface.is_some()
            || args.hops != 1;
        if others && !casts {
            let text = "--swarm uses no multicast by itself: add --rate or --group, or leave \
                        --start, --min-rate, --interface and --hops out";
            return Err(Failure::Usage(text.to_owned()));
        }
        let cast = casts.then(|| options_of(args, &path)).transpose()?;
        return swarm::run(&SwarmCast {
            path: &path,
            cast,
            listen: &args.listen,
            port: PORT,
            public: args.public,
            receivers: args.receivers,
            keys: &args.keys,
            control: &args.control,
            selection: &args.selection,
            as_json: args.json,
        });
    }
    cast(args, &path)
}

/// The rate of a stream.
fn live_rate(rate: CastRate) -> Result<Rate, Failure> {
    match rate {
        CastRate::Fixed(rate) => Ok(rate),
        CastRate::Adaptive { .. } => {
            let text = "a stream is sent as fast as it is made: name the rate that the path \
                        bears, as in --rate 5mbit";
            Err(Failure::Usage(text.to_owned()))
        }
    }
}

/// The group of the flags.
fn group_of(args: &Args, path: &Path) -> Result<CastGroup, Failure> {
    let address = args.group.unwrap_or_else(|| group_for(path));
    if !address.ip().is_multicast() || address.port() == 0 {
        return Err(Failure::Usage(format!(
            "{address} is no multicast group with a port: write one of 224.0.0.0/4 or ff00::/8, as in \
             239.255.1.2:{GROUP_PORT}"
        )));
    }
    let interface = match &args.interface {
        Some(name) => group_interface(name, address.is_ipv6())?,
        None => group_interface_for(address)?,
    };
    Ok(CastGroup { address, interface, hops: args.hops })
}

/// The group and the rate of the flags.
fn options_of(args: &Args, path: &Path) -> Result<CastOptions, Failure> {
    let (group, rate) = (group_of(args, path)?, chosen_rate(args)?);
    let wait_for = args.start.or(args.receivers).unwrap_or(1);
    Ok(CastOptions { group, rate, wait_for })
}

/// Casts to a group.
fn cast(args: &Args, path: &Path) -> Result<(), Failure> {
    let CastOptions { group, rate, wait_for } = options_of(args, path)?;
    let address = group.address;
    if args.rounds == Some(0) {
        let text = "--rounds 0 sends nothing: leave it out to send until Ctrl-C";
        return Err(Failure::Usage(text.to_owned()));
    }
    let keys = args.keys.load()?;
    let selection = args.selection.load()?;
    let as_json = args.json;
    if args.one_way {
        let CastRate::Fixed(rate) = rate else {
            let text = "--one-way hears nobody: name a rate, as in --rate 20mbit";
            return Err(Failure::Usage(text.to_owned()));
        };
        let options = OneWayOptions { group, rate, loss: args.loss, rounds: args.rounds };
        return send_one_way(path, options, &selection, &keys, as_json);
    }
    let live = (path.as_os_str() == "-").then(|| live_rate(rate)).transpose()?;
    let expected = args.receivers;
    block_on(&keys, async {
        let endpoint = args.listen.bind(PORT, &keys, RateKind::default())?;
        let secret = match (args.public, live) {
            (true, _) => None,
            // The next stream is another.
            (false, Some(_)) => Some(Secret::generate()),
            (false, None) => Some(read_secret(path, &keys)?),
        };
        let caster = match live {
            Some(rate) => {
                let latency = args.latency.unwrap_or(LATENCY);
                let options = LiveOptions { group, rate, latency, wait_for };
                Caster::of_stream(std::io::stdin(), options)?
            }
            None => caster_of(path, selection, CastOptions { group, rate, wait_for }).await?,
        };
        let urls = urls_of(&endpoint, Some(caster.name()), secret.as_ref());
        let server = FileServer::of_cast(endpoint.clone(), caster, secret);
        let cast_status = server.cast_status();
        let control = Control::new("cast", path.display().to_string(), &args.control);
        control.attach(&endpoint);
        let _open = crate::steering::open(&control);
        announce(&urls, as_json);
        let rate = rate_text(rate);
        status(&format_args!("casting {} to {address} at {rate}; Ctrl-C ends it", path.display()));
        let done = Arc::new(AtomicU32::new(0));
        let events = {
            let done = done.clone();
            move |event: ServerEvent| {
                control.see(&event);
                if as_json {
                    json::say(&json::server_event(&event, json::sent));
                }
                tell(&event, "sent", false, Side::Sending);
                if matches!(event, ServerEvent::Finished { .. }) {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let all = || expected.is_some_and(|all| done.load(Ordering::Relaxed) >= all);
        let watch = watch(cast_status, as_json, all);
        tokio::select! {
            () = server.run(events) => Err(Failure::Failed("the socket failed".to_owned())),
            ended = watch => ended,
            () = interrupted() => Ok(()),
        }
    })
}

/// Sends to receivers that cannot answer.
fn send_one_way(
    path: &Path,
    options: OneWayOptions,
    selection: &SourceOptions,
    keys: &Keys,
    as_json: bool,
) -> Result<(), Failure> {
    let group = options.group.address;
    if is_source_specific(group.ip()) {
        return Err(Failure::Usage(format!(
            "{group} takes packets of a source that receivers name, and a URL of --one-way does \
             not: choose a group outside 232.0.0.0/8 and ff3x::/32"
        )));
    }
    let secret = read_secret(path, keys)?;
    let sender = OneWaySender::new(path, selection, options, &secret, &keys.identity)?;
    let url = Url {
        host: group.ip().to_string(),
        port: group.port(),
        path: Some(sender.name().to_owned()),
        key: sender.public()?,
        secret: Some(secret),
    };
    announce(&[url.to_string()], as_json);
    let rounds = options.rounds.map_or("until Ctrl-C".to_owned(), |rounds| match rounds {
        1 => "once".to_owned(),
        rounds => format!("{rounds} times"),
    });
    status(&format_args!(
        "casting {} one way to {group}, {rounds}: {:.2} symbols for each that is needed, {} a round",
        path.display(),
        sender.symbols_for_each(),
        text::time(sender.round_time()),
    ));
    let (stop, sent) = sender.handles();
    block_on(keys, async {
        let sending = tokio::task::spawn_blocking(move || sender.run());
        tokio::select! {
            ended = sending => {
                ended.map_err(|_| Failure::Failed("internal error: a worker failed".to_owned()))??;
            }
            () = interrupted() => stop.store(true, Ordering::Relaxed),
        }
        let symbols = sent.load(Ordering::Relaxed);
        match as_json {
            true => json::say(&serde_json::json!({ "event": "cast", "symbols": symbols })),
            false => status(&format_args!("sent {symbols} symbols")),
        }
        Ok(())
    })
}
