use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fontis_lab::sim::{
    self, BatchProgress, Extras, Folder, Metric, Platform, RunOutcome, ScenarioFile,
};
use fontis_sim::Recording;
use fontis_sim::scenario::{Language, Run};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::runtime::interruption;
use crate::text::round;

/// Run experiments in virtual time: TCP and DFCP over simulated networks
///
/// A scenario gives the network, the flows, the duration and the varied keys; docs/scenario.md has
/// every key. Runs are recorded as Parquet tables. Recorded runs are not repeated, so an
/// interrupted batch continues.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files, or ids of scenarios in the folder "scenarios" (FONTIS_SCENARIOS names another)
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "explain", "reference"])]
    scenarios: Vec<String>,
    /// Set a key, as in topology.rtt=100ms; may be given again. A swept key takes this value alone
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The seed of all randomness, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The quick variant of scenarios that have one
    #[arg(long)]
    quick: bool,
    /// Runs at the same time [default: one for each processor; on the testbed one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder of recordings, with a folder for each scenario [default: recordings; of the
    /// testbed recordings/testbed]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the packets of the flows' senders as packets.pcapng beside each recording, at most two
    /// million a run
    #[arg(long)]
    pcap: bool,
    /// Write every packet's life as packets.trace beside each recording, for fontis view
    #[arg(long)]
    packets: bool,
    /// Write the packets and estimates of the flows' senders as packets.sqlog beside each
    /// recording, for fontis view and qvis
    #[arg(long)]
    qlog: bool,
    /// Encode and decode every packet by its wire format; slower, with the same recording
    #[arg(long)]
    wire: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// List the scenarios
    #[arg(long)]
    list: bool,
    /// Explain a key or a table of scenarios, as in topology.buffer
    #[arg(long, value_name = "KEY")]
    explain: Option<String>,
    /// Write the reference of scenarios and recordings, and the JSON Schema, into a folder
    #[arg(long, value_name = "DIR", hide = true)]
    reference: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  Ten CUBIC flows over 1 Gbit/s, with the buffer halved:
    fontis sim scenarios/basic/fifo.toml --set 'topology.buffer=0.5 BDP'
  A published table, one case of it only:
    fontis sim X21 --set topology.rate=1Gbit/s --set flow.count=10";

fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, as in topology.rtt=100ms")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl Args {
    /// Returns true if there is a scenario to run.
    pub(crate) const fn runs(&self) -> bool {
        !self.list && self.explain.is_none() && self.reference.is_none()
    }
}

/// Runs scenarios in the simulator.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    run_on(args, Platform::Simulator)
}

/// Runs scenarios on a platform.
pub(crate) fn run_on(args: &Args, platform: Platform) -> Result<(), Failure> {
    if let Some(key) = &args.explain {
        return explain_key(key);
    }
    if let Some(folder) = &args.reference {
        return write_reference(folder);
    }
    if args.list {
        return list(args.json);
    }
    // Everything is read before anything runs.
    let mut batches = Vec::new();
    let mut names = BTreeSet::new();
    for name in &args.scenarios {
        let mut file = sim::find(name).map_err(Failure::Usage)?;
        if args.quick {
            file.scenario = file.scenario.quick().unwrap_or(file.scenario);
        }
        for (key, value) in &args.set {
            let set = file.scenario.set(key, value.as_str());
            set.map_err(|error| Failure::Usage(format!("--set {key}={value}: {error}")))?;
        }
        if let Some(seed) = args.seed {
            let set = file.scenario.set("scenario.seed", seed.to_string().as_str());
            set.map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let runs = file.scenario.runs();
        let mut runs =
            runs.map_err(|error| Failure::Usage(format!("{}: {error}", file.path.display())))?;
        for run in &mut runs {
            run.experiment.wire = args.wire;
        }
        refuse_packets(args, platform, &runs)?;
        let name = name_of(&file);
        if !names.insert(name.clone()) {
            return Err(Failure::Usage(format!("two scenarios are called {name:?}")));
        }
        batches.push((name, runs));
    }
    let stop = interruption()?;
    for (name, runs) in &batches {
        one(args, platform, name, runs, &stop)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Failed(
                "interrupted; what is finished is kept, and the same command goes on".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Refuses files of packets of runs that have none.
fn refuse_packets(args: &Args, platform: Platform, runs: &[Run]) -> Result<(), Failure> {
    let first = |flags: &[(&'static str, bool)]| flags.iter().find(|(_, is_set)| *is_set).copied();
    let is_swarm = |run: &Run| run.experiment.swarm.is_some();
    if let Some((flag, _)) = first(&[("--pcap", args.pcap), ("--qlog", args.qlog)])
        && runs.iter().any(is_swarm)
    {
        return Err(Failure::Usage(format!(
            "of a swarm transfers of blocks are recorded, no packets: leave {flag} out; \
             --packets keeps the blocks' ways for fontis view"
        )));
    }
    if let Some((flag, _)) = first(&[("--packets", args.packets), ("--qlog", args.qlog)])
        && platform == Platform::Testbed
        && !runs.iter().all(is_swarm)
    {
        return Err(Failure::Usage(format!(
            "what packets meet and senders believe is known to the simulator only: write --pcap for \
             the senders' capture in place of {flag}"
        )));
    }
    Ok(())
}

/// The scenario's id, or the name of its file.
fn name_of(file: &ScenarioFile) -> String {
    let id = file.scenario.get("scenario.id");
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !id.is_empty() && id.chars().all(usable) && !id.starts_with('.') {
        return id;
    }
    file.path.file_stem().map_or("scenario".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn one(
    args: &Args,
    platform: Platform,
    name: &str,
    runs: &[Run],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    // Runs in real time would take each other's processors.
    let alone = platform == Platform::Testbed;
    let jobs = args.jobs.map_or_else(|| if alone { 1 } else { processors() }, usize::from);
    let default = if alone { "recordings/testbed" } else { "recordings" };
    let output = args.output.clone().unwrap_or_else(|| default.into());
    let folder = Folder::new(&output, name);
    let progress = BatchProgress::default();
    let begin = Instant::now();
    let outcomes = std::thread::scope(|scope| {
        let (finished, watch) = mpsc::channel::<()>();
        let bar = bar(args, name, runs);
        let progress = &progress;
        scope.spawn(move || {
            while watch.recv_timeout(Duration::from_millis(200))
                == Err(mpsc::RecvTimeoutError::Timeout)
            {
                bar.set_position(progress.samples.load(Ordering::Relaxed));
                bar.set_message(format!(
                    "{} of {} runs",
                    progress.runs.load(Ordering::Relaxed),
                    runs.len()
                ));
            }
            bar.finish_and_clear();
        });
        let extras = Extras { capture: args.pcap, packets: args.packets, qlog: args.qlog };
        let outcomes = sim::run(runs, platform, &folder, jobs, extras, stop, progress);
        drop(finished);
        outcomes
    });
    let outcomes = outcomes.map_err(|error| Failure::Failed(error.to_string()))?;
    let summaries: Vec<(&Run, Vec<Metric>)> =
        outcomes.iter().map(|outcome| (&runs[outcome.run], outcome.metrics.clone())).collect();
    folder.record_summary(&summaries).map_err(|error| Failure::Failed(error.to_string()))?;
    let kept = outcomes.iter().filter(|outcome| outcome.kept).count();
    if args.json {
        for outcome in &outcomes {
            say(&run_json(name, &runs[outcome.run], outcome));
        }
        let seconds = round(begin.elapsed().as_secs_f64());
        let path = folder.path().display().to_string();
        say(&json!({
            "event": "scenario", "scenario": name, "runs": runs.len(), "done": outcomes.len(),
            "kept": kept, "seconds": seconds, "folder": path,
        }));
    } else {
        say(&format!(
            "{name}: {} of {} runs, {kept} of them from before",
            outcomes.len(),
            runs.len()
        ));
        print_table(runs, &outcomes);
        say(&format!("recorded in {}", folder.path().display()));
    }
    Ok(())
}

fn bar(args: &Args, name: &str, runs: &[Run]) -> ProgressBar {
    if args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let style =
        ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3} %  {msg}, {eta} left");
    let bar = ProgressBar::new(runs.iter().map(sim::samples).sum());
    bar.set_prefix(name.to_owned());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn run_json(name: &str, run: &Run, outcome: &RunOutcome) -> Value {
    let metrics: Vec<Value> = outcome
        .metrics
        .iter()
        .map(
            |m| json!({"metric": m.metric, "subject": m.subject, "value": m.value, "unit": m.unit}),
        )
        .collect();
    let sweep: serde_json::Map<String, Value> =
        run.sweep.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "event": "run", "scenario": name, "run": run.index, "variant": run.variant, "sweep": sweep,
        "repetition": run.repetition, "seed": run.seed, "kept": outcome.kept, "metrics": metrics,
    })
}

/// The columns of the table at the end: heading, metric, subjects, decimals.
const SHOWN: [(&str, &str, usize); 10] = [
    ("goodput Mbit/s", "goodput", 2),
    ("Jain", "jain", 3),
    ("completed", "completed", 3),
    ("utilisation", "utilisation", 3),
    ("queue packets", "mean_queue", 1),
    ("drop rate", "drop_rate", 5),
    ("last ÷ T", "swarm_time_ratio", 3),
    ("p99 ÷ p50", "swarm_spread", 3),
    ("origin ÷ F", "swarm_origin_share", 3),
    ("sent ÷ nF", "swarm_sent_share", 3),
];

fn print_table(runs: &[Run], outcomes: &[RunOutcome]) {
    let label = |outcome: &RunOutcome| match runs[outcome.run].label() {
        label if label.is_empty() => "-".to_owned(),
        label => label,
    };
    // One number for all flows, or for the first bottleneck.
    let value = |outcome: &RunOutcome, metric: &str| {
        let of = |subject: &str| {
            let found = |m: &&Metric| m.metric == metric && m.subject == subject;
            outcome.metrics.iter().find(found).map(|m| m.value)
        };
        of("all").or_else(|| of("bottleneck")).or_else(|| of("B1"))
    };
    let present = |metric: &str| outcomes.iter().any(|o| value(o, metric).is_some());
    let shown: Vec<_> = SHOWN.into_iter().filter(|(_, metric, _)| present(metric)).collect();
    let width = outcomes.iter().map(|o| label(o).chars().count()).max().unwrap_or(0).max(4);
    let heading: String = shown.iter().map(|(name, ..)| format!("  {name:>14}")).collect();
    say(&format!("{:width$}{heading}", "run"));
    for outcome in outcomes {
        let cells: String = shown
            .iter()
            .map(|(_, metric, decimals)| match value(outcome, metric) {
                Some(value) => format!("  {value:>14.decimals$}"),
                None => format!("  {:>14}", "-"),
            })
            .collect();
        say(&format!("{:width$}{cells}", label(outcome)));
    }
}

fn explain_key(key: &str) -> Result<(), Failure> {
    let language = Language::standard();
    let Some(text) = language.explain(key) else {
        let hint = language
            .catalogue()
            .nearest(key)
            .map_or(String::new(), |name| format!("; did you mean {name}?"));
        return Err(Failure::Usage(format!("there is no key {key:?}{hint}")));
    };
    say(&text.trim_end());
    Ok(())
}

fn write_reference(folder: &std::path::Path) -> Result<(), Failure> {
    let pages = [
        ("scenario.md", Language::standard().reference()),
        ("scenario.schema.json", Language::standard().schema()),
        ("recording.md", Recording::describe()),
    ];
    for (name, text) in pages {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn list(as_json: bool) -> Result<(), Failure> {
    let Some(folder) = sim::folder() else {
        return Err(Failure::Usage("there is no folder \"scenarios\" here or above".to_owned()));
    };
    for file in sim::list(&folder) {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                eprintln!("fontis: {error}");
                continue;
            }
        };
        let get = |key: &str| file.scenario.get(&format!("scenario.{key}"));
        let path = file.path.display().to_string();
        if as_json {
            say(&json!({
                "id": get("id"), "title": get("title"), "paper": get("paper"), "figure": get("figure"),
                "minutes": get("minutes").parse::<f64>().unwrap_or(0.0), "runs": file.scenario.len(),
                "path": path,
            }));
        } else {
            let (minutes, runs) = (get("minutes"), file.scenario.len());
            let figure = get("figure");
            let of = if figure.is_empty() {
                String::new()
            } else {
                format!(" ({}, {figure})", get("paper"))
            };
            say(&format!("{:<12} {}{of}: {runs} runs, {minutes} min", get("id"), get("title")));
        }
    }
    Ok(())
}
