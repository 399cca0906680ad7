use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use fontis_base::{Duration, Rate};
use fontis_lab::testbed::gain_privilege;
use fontis_lab::testbed::race::{Finish, Race, RacePath, Runner, Standing, draw};
use fontis_net::{Limit, Loss, QueueKind};
use fontis_proto::dfcp::MAX_OPEN_PATHS;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::listen::status;
use crate::runtime::interruption;
use crate::text::{self, round};

/// Race a file over bad paths: Fontis against the kernel's TCP and QUIC
///
/// Every transport fetches the same file at the same time, each over its own path in a network on
/// this machine, with the same rate, delay and loss. The time runs from a receiver's first packet
/// until the file is complete and its hash is right. Shows the progress, prints a table and draws a
/// picture. With several paths each has all of them; a transport that uses one takes the best.
/// Needs the same as fontis testbed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file
    file: PathBuf,
    /// Rate of each path in each direction
    #[arg(long, default_value = "100mbit", conflicts_with = "paths")]
    rate: Rate,
    /// Round-trip time without queues
    #[arg(long, value_name = "TIME", default_value = "100ms", conflicts_with = "paths")]
    rtt: Duration,
    /// Random loss towards the receivers: a probability, gilbert:P,Q or ge:P,Q,G,B
    #[arg(long, value_name = "P", default_value = "2%", conflicts_with = "paths")]
    loss: Loss,
    /// A path, in place of --rate, --rtt and --loss; for several paths at once give it several
    /// times
    #[arg(long = "path", value_name = "RATE,RTT[,LOSS]")]
    paths: Vec<RacePath>,
    /// The buffer of each path [default: one bandwidth-delay product, at least 20 packets]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Limit>,
    /// The queue, by the names in fontis testbed shell --help
    #[arg(long, value_name = "NAME", default_value_t)]
    queue: QueueKind,
    /// The other transports: cubic, bbr, reno, vegas (if the kernel has them), quic (quinn, with
    /// BBR); over several paths also mptcp-cubic and others (Multipath TCP), tquic (its own
    /// programs, with BBR, if they are installed: cargo install tquic_tools) and fontis-one, over
    /// the best path alone [default: cubic,bbr,quic; over several paths
    /// fontis-one,mptcp-cubic,mptcp-bbr]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    against: Vec<Runner>,
    /// Run one after the other, so that they do not share the processors
    #[arg(long)]
    in_turn: bool,
    /// Time limit of the race
    #[arg(long, value_name = "TIME", default_value = "2min")]
    limit: Duration,
    /// File for the picture of progress over time, as SVG
    #[arg(long, value_name = "FILE", default_value = "race.svg")]
    picture: PathBuf,
    /// Write the qlogs of both ends of Fontis's transfers to this folder, for fontis view and qvis
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// The seed of the losses, to repeat them [default: a random one, printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  A file over 100 Mbit/s, 100 ms and 2 % loss:
    fontis race maps.tar
  A radio link with bursts of loss, against BBR alone:
    fontis race maps.tar --rate 20mbit --rtt 60ms --loss gilbert:1%,25% --against bbr
  Two links at once, against Multipath TCP and the better link alone:
    fontis race maps.tar --path 50mbit,20ms --path 50mbit,100ms,1%";

/// Against whom it is over one path, and over several.
const AGAINST: [Runner; 3] = [Runner::Tcp("cubic"), Runner::Tcp("bbr"), Runner::Quic];
const AGAINST_PATHS: [Runner; 3] =
    [Runner::FontisOne, Runner::Mptcp("cubic"), Runner::Mptcp("bbr")];

impl Args {
    fn paths(&self) -> Vec<RacePath> {
        match self.paths.as_slice() {
            [] => vec![RacePath { rate: self.rate, rtt: self.rtt, loss: self.loss }],
            paths => paths.to_vec(),
        }
    }

    /// Fontis, and those against whom it is, each once.
    fn runners(&self) -> Vec<Runner> {
        let others: &[Runner] = match self.against.as_slice() {
            [] if self.paths.len() > 1 => &AGAINST_PATHS,
            [] => &AGAINST,
            against => against,
        };
        let mut runners = vec![Runner::Fontis];
        for runner in others {
            if !runners.contains(runner) {
                runners.push(*runner);
            }
        }
        runners
    }
}

/// Runs the race.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    check(args)?;
    gain_privilege()?;
    let seed = args.seed.map_or_else(getrandom::u64, Ok).map_err(|error| failed(&error))?;
    let interrupted = interruption()?;
    let size = std::fs::metadata(&args.file)
        .map_err(|error| Failure::Failed(format!("{}: {error}", args.file.display())))?;
    let size = size.len();
    let paths = args.paths();
    let runners = args.runners();
    let race = |runners| Race {
        file: args.file.clone(),
        paths: paths.clone(),
        buffer: args.buffer,
        queue: args.queue,
        runners,
        limit: args.limit,
        seed,
        qlog: args.qlog.clone(),
    };
    let named = paths.iter().map(|RacePath { rate, rtt, loss }| {
        let loss = if *loss == Loss::None { "no".to_owned() } else { loss.to_string() };
        format!("{}, {rtt}, {loss} loss", text::rate(rate.as_mbps_f64()))
    });
    let named: Vec<String> = named.collect();
    let title = format!("{} over {}", text::size(size), named.join(" and "));
    if !args.json {
        say(&format_args!("{title}; seed {seed}"));
    }
    let heats: Vec<Vec<Runner>> = if args.in_turn {
        runners.iter().map(|runner| vec![*runner]).collect()
    } else {
        vec![runners.clone()]
    };
    let bars = Bars::new(args, &runners, size);
    let mut finishes: Vec<Finish> = Vec::new();
    for heat in heats {
        let first = finishes.len();
        let finished = race(heat).run(|standing| {
            bars.show(first, standing);
            !interrupted.load(Ordering::Relaxed)
        })?;
        finishes.extend(finished);
        if interrupted.load(Ordering::Relaxed) {
            bars.clear();
            return Err(Failure::Failed("interrupted: nothing is left behind".to_owned()));
        }
    }
    bars.clear();
    let bound = race(runners).bound(size);
    if args.json {
        finishes.iter().for_each(|finish| say(&as_json(finish, size, bound, args.limit, seed)));
    } else {
        table(&finishes, size, bound, args.limit);
    }
    draw(&args.picture, &title, size, &finishes)
        .map_err(|error| Failure::Failed(format!("{}: {error}", args.picture.display())))?;
    if !args.json {
        say(&format_args!("drawn in {}", args.picture.display()));
    }
    // That a rival fails is a result.
    match finishes.iter().find(|finish| finish.runner == Runner::Fontis).map(|own| &own.time) {
        Some(Err(problem)) => Err(Failure::Failed(format!("fontis: {problem}"))),
        _ => Ok(0),
    }
}

fn check(args: &Args) -> Result<(), Failure> {
    if args.rate == Rate::ZERO || args.rate == Rate::MAX {
        return Err(Failure::Usage("--rate must be more than zero, as in 100mbit".to_owned()));
    }
    if args.paths.len() > MAX_OPEN_PATHS {
        let text = format!("--path is there {} times; {MAX_OPEN_PATHS} at most", args.paths.len());
        return Err(Failure::Usage(text));
    }
    if let Some(runner) = args.runners().iter().find(|runner| runner.needs_paths())
        && args.paths.len() < 2
    {
        return Err(Failure::Usage(format!(
            "{runner} races over several paths only: add --path RATE,RTT for each"
        )));
    }
    if args.limit == Duration::ZERO {
        return Err(Failure::Usage("--limit must be longer than zero, as in 2min".to_owned()));
    }
    let nothing = |error: std::io::Error| {
        Failure::Usage(format!("{}: {error}; name a file", args.file.display()))
    };
    match std::fs::metadata(&args.file).map_err(nothing)? {
        metadata if metadata.is_file() && metadata.len() > 0 => Ok(()),
        _ => Err(Failure::Usage(format!(
            "{} is no file with anything in it; name one",
            args.file.display()
        ))),
    }
}

/// A bar for each runner.
struct Bars {
    all: Option<MultiProgress>,
    bars: Vec<ProgressBar>,
}

impl Bars {
    fn new(args: &Args, runners: &[Runner], size: u64) -> Self {
        if args.json || !std::io::stderr().is_terminal() {
            if !args.json {
                status(&"racing; a terminal would show bars");
            }
            return Self { all: None, bars: Vec::new() };
        }
        let all = MultiProgress::new();
        let template = "{prefix:>11} [{bar:40}] {percent:>3} %  {msg}";
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        let bar = |runner: &Runner| {
            let bar = all.add(ProgressBar::new(size).with_style(style.clone()));
            bar.set_prefix(runner.to_string());
            bar
        };
        let bars = runners.iter().map(bar).collect();
        Self { all: Some(all), bars }
    }

    /// Shows a heat that begins with this runner.
    fn show(&self, first: usize, standing: &Standing) {
        for (lane, bar) in self.bars.iter().skip(first).take(standing.lanes()).enumerate() {
            bar.set_position(standing.bytes(lane));
            let rate = |span| text::rate(text::mbps(standing.bytes(lane), span));
            match standing.end(lane) {
                None => bar.set_message(rate(standing.elapsed())),
                Some(Ok(time)) => {
                    bar.set_message(format!("{}  there after {}", rate(time), text::time(time)));
                }
                Some(Err(problem)) => bar.set_message(problem),
            }
        }
    }

    fn clear(&self) {
        if let Some(all) = &self.all {
            let _ = all.clear();
        }
    }
}

/// Time, goodput and share of the bound of a finished transport; of the others the bytes until the
/// limit.
fn measures(finish: &Finish, size: u64, bound: Duration, limit: Duration) -> (f64, f64, f64) {
    let time = match finish.time {
        Ok(Some(time)) => time.as_secs_f64(),
        _ => finish.course.last().map_or(limit.as_secs_f64(), |(at, _)| *at),
    };
    let goodput = finish.bytes as f64 * 8e-6 / time.max(1e-9);
    let best = size as f64 * 8e-6 / bound.as_secs_f64().max(1e-9);
    (time, goodput, goodput / best)
}

fn table(finishes: &[Finish], size: u64, bound: Duration, limit: Duration) {
    say(&format_args!(
        "{:11} {:>10} {:>16} {:>10} {:>9} {:>12}",
        "", "time", "goodput", "of bound", "lost", "queue drops"
    ));
    for finish in finishes {
        let (time, goodput, share) = measures(finish, size, bound, limit);
        let [lost, dropped] = finish.lost.map(|share| format!("{:.2} %", share * 100.0));
        let time = match finish.time {
            Ok(Some(_)) => format!("{time:.2} s"),
            _ => format!("{:.0} %", finish.bytes as f64 * 100.0 / size.max(1) as f64),
        };
        say(&format_args!(
            "{:11} {time:>10} {:>16} {share:>10.3} {lost:>9} {dropped:>12}",
            finish.runner.to_string(),
            text::rate(goodput),
        ));
        if let Err(problem) = &finish.time {
            say(&format_args!("{:11} gave up: {problem}", ""));
        }
    }
    say(&format_args!("bound       {:>8.2} s", bound.as_secs_f64()));
}

fn as_json(finish: &Finish, size: u64, bound: Duration, limit: Duration, seed: u64) -> Value {
    let (_, goodput, share) = measures(finish, size, bound, limit);
    let problem = finish.time.as_ref().err();
    json!({
        "event": "finish",
        "runner": finish.runner.to_string(),
        "seconds": finish.time.as_ref().ok().copied().flatten().map(|time| time.as_secs_f64()),
        "problem": problem,
        "bytes": finish.bytes,
        "size": size,
        "goodput_mbps": round(goodput),
        "of_bound": round(share),
        "bound_seconds": round(bound.as_secs_f64()),
        "lost": finish.lost[0],
        "dropped": finish.lost[1],
        "seed": seed,
    })
}
