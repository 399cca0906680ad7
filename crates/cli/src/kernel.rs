//! Congestion controls in the running kernel.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use fontis_base::{Duration, Probability};
use fontis_lab::kernel::{self, Comparison, KernelError, KernelTrial, TrialOutcome};
use serde_json::json;

use crate::failure::Failure;
use crate::json::say;
use crate::runtime::Deadline;

/// Give this machine's kernel a congestion control of Fontis, by BPF
///
/// An algorithm is loaded for all network namespaces, until it is unloaded or the machine restarts.
/// Loading changes no connection: one gets the algorithm by choosing it. Needs root, and Linux 5.17
/// or newer with its own type information (CONFIG_DEBUG_INFO_BTF), which distributions have.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Load FLD_TCP, bold while a flow is short and Reno when it is long:
    fontis kernel load fld
  Give it to new connections over one route, or to all:
    ip route change default via 192.0.2.1 congctl fld
    sysctl net.ipv4.tcp_congestion_control=fld
  Give it to half of the new connections for an hour, and compare them with the others:
    fontis kernel try fld --share 50% --for 1h
  Remove it; connections that have it keep it until they end:
    fontis kernel unload fld";

#[derive(Debug, Subcommand)]
enum Command {
    /// Load an algorithm into the kernel
    Load(Name),
    /// Remove a loaded algorithm from the kernel
    Unload(Name),
    /// Tell whether algorithms are loaded
    Status(Status),
    Try(Try),
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The algorithm: fld
    name: String,
}

/// Give new connections an algorithm or the present default by chance, and compare them
///
/// The default of this network namespace (net.ipv4.tcp_congestion_control) changes in random slots
/// of 50 to 150 ms, and is restored at the end, also by Ctrl-C or SIGTERM; after kill -9 it may
/// stay. Connections whose application or route chooses an algorithm are not touched. Completion
/// times are those in which the sender waits for acknowledgements, pauses left out. Times of the
/// algorithms are of the same network at the same time: what one takes from the other is not seen.
#[derive(Debug, clap::Args)]
struct Try {
    /// The algorithm: fld
    name: String,
    /// The share of new connections that get it
    #[arg(long, value_name = "P", default_value = "50%")]
    share: Probability,
    /// How long, as in 10min or 1h
    #[arg(long = "for", value_name = "TIME")]
    time: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// The algorithm [default: all]
    name: Option<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match &self.command {
            Command::Status(status) => status.json,
            Command::Try(args) => args.json,
            Command::Load(_) | Command::Unload(_) => false,
        }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Unknown(_) => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Runs a subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Load(Name { name }) => {
            kernel::load(name)?;
            say(&format_args!(
                "{name} is loaded until `fontis kernel unload {name}` or a restart. Connections \
                 choose it by route (ip route … congctl {name}), by \
                 net.ipv4.tcp_congestion_control, or by TCP_CONGESTION, which users other than \
                 root may once net.ipv4.tcp_allowed_congestion_control lists it."
            ));
            if let Some(warning) = kernel::warning(name) {
                say(&format_args!("Before you give it to many: {warning}."));
            }
            Ok(())
        }
        Command::Unload(Name { name }) => {
            kernel::unload(name)?;
            say(&format_args!("{name} is removed; connections that have it keep it"));
            Ok(())
        }
        Command::Try(args) => attempt(args),
        Command::Status(Status { name, json }) => {
            let names = match name {
                Some(name) => vec![name.as_str()],
                None => kernel::names().collect(),
            };
            for name in names {
                let is_loaded = kernel::is_loaded(name)?;
                if *json {
                    say(&json!({ "event": "algorithm", "name": name, "loaded": is_loaded }));
                } else {
                    let state = if is_loaded { "loaded" } else { "not loaded" };
                    say(&format_args!("{name}: {state}"));
                }
            }
            Ok(())
        }
    }
}

fn attempt(args: &Try) -> Result<(), Failure> {
    let share = args.share.get();
    if !(0.01..=0.99).contains(&share) {
        let text = format!("--share {}: it must be from 1% to 99%", args.share);
        return Err(Failure::Usage(text));
    }
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    // The handler comes first: the beginning changes the default already.
    let deadline = Deadline::new(Some(args.time))?;
    let mut trial = KernelTrial::begin(&args.name, share, time as u64)?;
    let other = trial.other();
    let _ = writeln!(
        std::io::stderr(),
        "{} of new connections have {}, the others {other}; Ctrl-C ends it early",
        args.share,
        args.name,
    );
    while !deadline.is_over() {
        trial.step()?;
    }
    let outcome = trial.end()?;
    if args.json {
        say(&as_json(&outcome));
    } else {
        tell(&outcome);
    }
    Ok(())
}

fn tell(outcome: &TrialOutcome) {
    let [tried, other] = &outcome.names;
    let ratio = |found: Option<Comparison>| {
        found.map_or("too few".to_owned(), |Comparison { ratio, interval: [low, high] }| {
            format!("{ratio:.2} ({low:.2} to {high:.2})")
        })
    };
    let head = |name: &str| format!("{name}: median, connections");
    let mut rows =
        vec![["bytes".to_owned(), head(tried), head(other), format!("{other} ÷ {tried}")]];
    for class in outcome.classes.iter().filter(|class| class.counts != [0, 0]) {
        let side = |at: usize| match class.counts[at] {
            0 => "none".to_owned(),
            count => format!("{:.3} s, {count}", class.medians[at]),
        };
        rows.push([class.name.to_owned(), side(0), side(1), ratio(class.faster)]);
    }
    let [again, others] = outcome.again.map(|share| format!("{:.3} %", 100.0 * share));
    let reversed = outcome.again_ratio.map(|found| Comparison {
        ratio: 1.0 / found.ratio,
        interval: [1.0 / found.interval[1], 1.0 / found.interval[0]],
    });
    rows.push(["sent again".to_owned(), again, others, ratio(reversed)]);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    for [name, one, two, last] in &rows {
        let [a, b, c, d] = widths;
        say(&format_args!("{name:<a$}  {one:>b$}  {two:>c$}  {last:>d$}"));
    }
    say(&format_args!(
        "{} and {} connections ended; {} ended before their algorithm was seen.",
        outcome.counts[0], outcome.counts[1], outcome.left_out
    ));
    say(&format_args!(
        "Ratios are of medians, with 95 % intervals; above 1 {tried} is faster, or sends less again."
    ));
    if outcome.overflows > 0 {
        say(&format_args!(
            "{} times more connections ended at once than could be told (net.core.rmem_max)",
            outcome.overflows
        ));
    }
}

fn as_json(outcome: &TrialOutcome) -> serde_json::Value {
    let ratio = |found: Option<Comparison>| {
        found.map(|found| json!({ "ratio": found.ratio, "interval": found.interval }))
    };
    let classes = outcome.classes.iter().map(|class| {
        let medians = [0, 1].map(|at| (class.counts[at] > 0).then_some(class.medians[at]));
        json!({
            "size": class.name, "connections": class.counts, "medians": medians,
            "faster": ratio(class.faster),
        })
    });
    json!({
        "event": "trial", "names": outcome.names, "connections": outcome.counts,
        "sizes": classes.collect::<Vec<_>>(), "sent_again": outcome.again,
        "sent_again_ratio": ratio(outcome.again_ratio), "left_out": outcome.left_out,
        "overflows": outcome.overflows,
    })
}
