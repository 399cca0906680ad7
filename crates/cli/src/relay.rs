use std::error::Error;
use std::fmt::Display;
use std::io::{Write, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};

use fontis_base::{Duration, Probability, Rate};
use fontis_lab::relay::{Monitor, Relay, RelayConfig, RelayStats};
use fontis_net::{
    Limit, LinkConfig, LinkStats, Loss, LossPosition, Outage, Policer, QueueKind, QueueOptions,
    RateChange, Reorder, Schedule,
};
use serde_json::{Value, json};

/// Put a bad path between any two programs that speak UDP
///
/// Forwards every client's datagrams to a server and the answers back, at a limited rate, late, and not all of them.
/// All clients share the path. Rates, buffers and sizes count what IP would: the datagram and 28 bytes of headers.
/// Prints the address that it listens on and its seed; ends on Ctrl-C with a summary of what it did.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where clients send to; port 0 takes any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// The server to forward to
    #[arg(long, value_name = "ADDR", value_parser = address)]
    to: SocketAddr,
    /// Rate in each direction, as in 100mbit [default: no limit]
    #[arg(long, help_heading = LINE)]
    rate: Option<Rate>,
    /// Change the rate in both directions at a time after the start, as in 10s:10mbit; may be given again
    #[arg(long, value_name = "TIME:RATE", help_heading = LINE)]
    rate_at: Vec<RateChange>,
    /// One-way delay, in each direction, as in 50ms; a round trip takes twice that
    #[arg(long, value_name = "TIME", default_value = "0", help_heading = LINE)]
    delay: Duration,
    /// Extra random delay in each direction, from zero to this, that keeps the order of packets
    #[arg(long, value_name = "TIME", default_value = "0", help_heading = LINE)]
    jitter: Duration,
    /// The largest packet in bytes, headers included; larger ones are dropped
    #[arg(long, value_name = "BYTES", default_value_t = 1500, help_heading = LINE,
          value_parser = clap::value_parser!(u32).range(29..=65_535))]
    mtu: u32,
    /// What waits for the line in each direction, as in 1.25MB or "100 packets"
    /// [default: one bandwidth-delay product, at least 20 packets]
    #[arg(long, value_name = "SIZE", help_heading = QUEUE)]
    buffer: Option<Limit>,
    /// How it waits: fifo, fifo-ecn, drr, drr-literal, sfq and wfq (fair between clients), red, red-ecn, codel,
    /// codel-ecn, fq-codel, fq-codel-ecn, priority, two-class
    #[arg(long, value_name = "NAME", default_value_t, help_heading = QUEUE)]
    queue: QueueKind,
    /// Drop what exceeds a rate in each direction, before anything else; BURST is 10 ms of it if not given
    #[arg(long, value_name = "RATE[:BURST]", help_heading = QUEUE)]
    policer: Option<Policer>,
    /// Random loss towards the client, as in 1%
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    loss: Probability,
    /// Random loss towards the server
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    loss_up: Probability,
    /// Loss in bursts towards the client, instead of --loss: gilbert:P,Q (P good to bad, Q bad to good, per
    /// packet; all is lost in bad) or ge:P,Q,G,B (and the loss in good and in bad)
    #[arg(long, value_name = "MODEL", conflicts_with = "loss", help_heading = FAULTS)]
    loss_model: Option<Loss>,
    /// Where loss happens: before the queue, or after the line, as on a radio
    #[arg(long, value_name = "before|after", default_value = "before", help_heading = FAULTS)]
    loss_at: LossPosition,
    /// Hold some packets back in each direction so that later ones overtake them, by 10 ms if not given
    #[arg(long, value_name = "P[:BY]", help_heading = FAULTS)]
    reorder: Option<Reorder>,
    /// Deliver some packets twice, in each direction
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    duplicate: Probability,
    /// Flip a bit in some datagrams, in each direction
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    corrupt: Probability,
    /// Drop everything for a while, at a time after the start, and again every EVERY if given
    #[arg(long, value_name = "AT:FOR[:EVERY]", help_heading = FAULTS)]
    outage: Option<Outage>,
    /// The seed of all randomness, to have the same losses again [default: a random one, printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Print the statistics again and again, to standard error
    #[arg(long, value_name = "TIME", value_parser = period)]
    stats_every: Option<Duration>,
}

const LINE: &str = "Line";
const QUEUE: &str = "Queue";
const FAULTS: &str = "Faults";

const EXAMPLES: &str = "\
Examples:
  A lossy intercontinental path in front of a server on port 4433:
    fontis relay --listen 127.0.0.1:4434 --to 127.0.0.1:4433 --rate 100mbit --delay 50ms --loss 1%
  A radio link that loses bursts of four packets on average, and is gone for 2 s of every 30:
    fontis relay --to 127.0.0.1:4433 --rate 20mbit --loss-model gilbert:1%,25% --loss-at after --outage 10s:2s:30s";

/// Reads an address with its port; a name is looked up.
fn address(text: &str) -> Result<SocketAddr, String> {
    let form = "write HOST:PORT, as in 127.0.0.1:4433 or [::1]:4433";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {form}"))?;
    found.next().ok_or_else(|| format!("the name has no address; {form}"))
}

/// Reads a time that is not zero.
fn period(text: &str) -> Result<Duration, String> {
    match text.parse::<Duration>() {
        Ok(Duration::ZERO) => Err("it must be longer than zero, as in 1s".to_owned()),
        Ok(period) => Ok(period),
        Err(error) => Err(error.to_string()),
    }
}

impl Args {
    fn config(&self, seed: u64) -> RelayConfig {
        let rate = self.rate.unwrap_or(Rate::MAX);
        let link = LinkConfig {
            rate,
            rate_changes: Schedule::new(self.rate_at.iter().copied()),
            delay: self.delay,
            queue: self.queue,
            queue_options: QueueOptions::default(),
            buffer: self.buffer.unwrap_or_else(|| Limit::one_bdp(rate, self.delay * 2)),
            loss: Loss::None,
            loss_position: self.loss_at,
            outage: self.outage,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            jitter: self.jitter,
            reorder: self.reorder.unwrap_or_default(),
            policer: self.policer,
        };
        let down = self.loss_model.unwrap_or(Loss::Bernoulli(self.loss));
        RelayConfig {
            up: LinkConfig { loss: Loss::Bernoulli(self.loss_up), ..link.clone() },
            down: LinkConfig { loss: down, ..link },
            mtu: self.mtu,
            seed,
            ..RelayConfig::new(self.listen, self.to)
        }
    }
}

/// Relays until Ctrl-C.
pub(crate) fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let seed = match args.seed {
        Some(seed) => seed,
        None => getrandom::u64()?,
    };
    let mut relay = Relay::bind(args.config(seed))?;
    let stopper = relay.stopper();
    ctrlc::set_handler(move || stopper.stop())?;
    if args.json {
        say(&json!({ "listening": relay.local_addr().to_string(), "seed": seed }));
    } else {
        say(&format_args!("listening on {}", relay.local_addr()));
        say(&format_args!("seed {seed}"));
    }
    let monitor = relay.monitor();
    let (end, ended) = channel::<()>();
    let reporter = args.stats_every.map(|every| {
        let monitor = monitor.clone();
        std::thread::spawn(move || {
            while ended.recv_timeout(every.into()) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}", report(&monitor, args.json));
            }
        })
    });
    let result = relay.run();
    drop(end);
    if let Some(Err(panic)) = reporter.map(std::thread::JoinHandle::join) {
        std::panic::resume_unwind(panic);
    }
    say(&report(&monitor, args.json));
    Ok(result?)
}

/// Prints a line. That nobody reads it is no reason to stop relaying.
fn say(line: &dyn Display) {
    let _ = writeln!(stdout(), "{line}");
}

fn report(monitor: &Monitor, json: bool) -> String {
    let stats = monitor.stats();
    if json { as_json(&stats).to_string() } else { as_text(&stats) }
}

fn as_text(stats: &RelayStats) -> String {
    let mut lines = vec![direction("up  ", &stats.up), direction("down", &stats.down)];
    let late = &stats.lateness;
    lines.push(format!(
        "late  mean {} us, median {} us, p99 {} us, max {} us",
        late.mean.as_micros(),
        late.median.as_micros(),
        late.p99.as_micros(),
        late.max.as_micros()
    ));
    lines.push(format!("clients {}, in all {}", stats.clients, stats.clients_total));
    let drops = [
        (stats.oversize, "larger than the MTU"),
        (stats.refused, "of too many clients"),
        (stats.strangers, "not from the server"),
        (stats.unsent, "not taken by the system"),
    ];
    for (count, why) in drops.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("dropped outside the links: {count} {why}"));
    }
    lines.join("\n")
}

fn direction(name: &str, stats: &LinkStats) -> String {
    let dropped = &stats.dropped;
    let mut text = format!(
        "{name}  in {} packets ({}), out {} ({})",
        stats.entered.packets,
        fontis_base::Size::from_bytes(stats.entered.bytes),
        stats.delivered.packets,
        fontis_base::Size::from_bytes(stats.delivered.bytes),
    );
    let details = [
        (dropped.queue.packets, "dropped by the queue"),
        (dropped.loss.packets, "lost"),
        (dropped.outage.packets, "lost in outages"),
        (dropped.policer.packets, "policed"),
        (stats.duplicated.packets, "duplicated"),
        (stats.corrupted, "corrupted"),
        (stats.reordered, "reordered"),
        (stats.marked, "marked"),
        (stats.held.packets, "still on the way"),
    ];
    for (count, what) in details.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {what} {count}");
    }
    text + &format!("; queue at most {}", fontis_base::Size::from_bytes(stats.max_queue_bytes))
}

fn as_json(stats: &RelayStats) -> Value {
    let link = |stats: &LinkStats| {
        let count =
            |count: fontis_net::Count| json!({ "packets": count.packets, "bytes": count.bytes });
        json!({
            "entered": count(stats.entered),
            "duplicated": count(stats.duplicated),
            "delivered": count(stats.delivered),
            "dropped": {
                "queue": count(stats.dropped.queue),
                "loss": count(stats.dropped.loss),
                "outage": count(stats.dropped.outage),
                "policer": count(stats.dropped.policer),
            },
            "held": count(stats.held),
            "marked": stats.marked,
            "corrupted": stats.corrupted,
            "reordered": stats.reordered,
            "queue_bytes": stats.queue_bytes,
            "max_queue_bytes": stats.max_queue_bytes,
        })
    };
    json!({
        "up": link(&stats.up),
        "down": link(&stats.down),
        "clients": stats.clients,
        "clients_total": stats.clients_total,
        "refused": stats.refused,
        "oversize": stats.oversize,
        "strangers": stats.strangers,
        "unsent": stats.unsent,
        "lateness_us": {
            "mean": stats.lateness.mean.as_micros(),
            "median": stats.lateness.median.as_micros(),
            "p99": stats.lateness.p99.as_micros(),
            "max": stats.lateness.max.as_micros(),
        },
    })
}
