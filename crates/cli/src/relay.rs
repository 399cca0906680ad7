use std::error::Error;
use std::fmt::Display;
use std::io::{Write, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};

use fontis_base::Duration;
use fontis_lab::relay::{Relay, RelayConfig, RelayMonitor, RelayStats};
use serde_json::{Value, json};

use crate::link::{self, LinkArgs};

/// Put a bad path between any two programs that speak UDP
///
/// Forwards the datagrams of clients to a server and the answers back, with a limited rate, delay
/// and loss. All clients share the path. Rates, buffers and sizes count datagrams with 28 bytes of
/// IP and UDP headers. Prints its address and its seed. Ends on Ctrl-C and prints its counters.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address for clients; port 0 takes any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// The server to forward to
    #[arg(long, value_name = "ADDR", value_parser = address)]
    to: SocketAddr,
    #[command(flatten)]
    link: LinkArgs,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Print the statistics periodically, on standard error
    #[arg(long, value_name = "TIME", value_parser = period)]
    stats_every: Option<Duration>,
}

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
        let (up, down) = self.link.both_ways();
        let mtu = self.link.mtu;
        RelayConfig { up, down, mtu, seed, ..RelayConfig::new(self.listen, self.to) }
    }
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let seed = args.link.seed()?;
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

/// Prints a line. A closed output does not end the relay.
fn say(line: &dyn Display) {
    let _ = writeln!(stdout(), "{line}");
}

fn report(monitor: &RelayMonitor, json: bool) -> String {
    let stats = monitor.stats();
    if json { as_json(&stats).to_string() } else { as_text(&stats) }
}

fn as_text(stats: &RelayStats) -> String {
    let mut lines = vec![link::as_text("up  ", &stats.up), link::as_text("down", &stats.down)];
    lines.push(format!("late  {}", link::lateness(&stats.lateness)));
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

fn as_json(stats: &RelayStats) -> Value {
    json!({
        "up": link::as_json(&stats.up),
        "down": link::as_json(&stats.down),
        "clients": stats.clients,
        "clients_total": stats.clients_total,
        "refused": stats.refused,
        "oversize": stats.oversize,
        "strangers": stats.strangers,
        "unsent": stats.unsent,
        "lateness_us": link::lateness_json(&stats.lateness),
    })
}
