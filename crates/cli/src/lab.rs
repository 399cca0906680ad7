//! The claims of papers, and their verdicts.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use fontis_lab::claims::{Book, Budget, Checked, Repeat, Results, Verdict, document, html, report};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::python::{Passed, Python};
use crate::text::round;

/// Check the claims of papers against simulation and analysis
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  All claims of the DFCP works, from what has been recorded, with runs for what has not:
    fontis lab check dfcp
  The claims on Table 5.1 only, run anew:
    fontis lab check dfcp dfcp-000-t5.1 --fresh
  The same claims as a page for the browser, from what has been recorded:
    fontis lab check dfcp dfcp-000-t5.1 --recorded --html > table.html";

#[derive(Debug, Subcommand)]
enum Command {
    Check(Check),
    Run(Runs),
    /// Run a scenario over a grid of settings, on threads or on a cluster, into one dataset
    /// (Python)
    Sweep(Passed),
    /// Draw figures of papers from recorded runs, with published values (Python)
    Figure(Passed),
    /// Make a site, or one HTML file, that shows each paper's figures beside its claims (Python)
    Report(Passed),
}

/// Run the scenarios that claims need, and keep their summaries
#[derive(Debug, clap::Args)]
struct Runs {
    /// Files, or ids of scenarios; ID@testbed runs on the testbed, in real time
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// The settings of runs.
#[derive(Debug, clap::Args)]
struct How {
    /// Run the quick variants of long scenarios, without claims that need full runs or the testbed
    #[arg(long)]
    quick: bool,
    /// Repeat recorded runs
    #[arg(long)]
    fresh: bool,
    /// Repeat the recorded runs that other code made: code that did something else in a short
    /// experiment on each part that a run uses
    #[arg(long, conflicts_with = "fresh")]
    stale: bool,
    /// The folder of the runs' summaries [default: results in the folder of claims]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

/// Check each claim: reproduced, different, undecidable, or not checkable
///
/// Claims are in the folder "claims" (or the one in FONTIS_CLAIMS), each bound to formulas, to
/// scenarios, or to scenarios with real kernels, which run if the machine has a testbed. Recorded
/// runs are not repeated. A difference is a finding, not a failure: the exit code is 0.
#[derive(Debug, clap::Args)]
struct Check {
    /// The book of claims: a file NAME.jsonl in the folder, as in dfcp
    #[arg(value_name = "BOOK")]
    book: String,
    /// Claims by the beginning of their identifiers; all if none is given
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    how: How,
    /// Run nothing; judge by the recorded runs
    #[arg(long, conflicts_with_all = ["fresh", "stale"])]
    recorded: bool,
    /// Write the results as a page: Markdown, or HTML if the name ends in .html
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the page as HTML
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns true if standard output is JSON.
    pub(crate) const fn json(&self) -> bool {
        match &self.command {
            Command::Check(args) => args.json,
            _ => false,
        }
    }
}

pub(crate) fn run(args: &Args, python: &Python) -> Result<u8, Failure> {
    match &args.command {
        Command::Check(args) => check(args).map(|()| 0),
        Command::Run(args) => run_scenarios(args).map(|()| 0),
        Command::Sweep(passed) => python.lab("sweep", passed),
        Command::Figure(passed) => python.lab("figure", passed),
        Command::Report(passed) => python.lab("report", passed),
    }
}

/// The folder of claims: the one in `FONTIS_CLAIMS`, or `claims` here or in a folder above.
fn folder() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FONTIS_CLAIMS") {
        return Some(path.into());
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join("claims")).find(|path| path.is_dir())
}

fn claims_folder() -> Result<PathBuf, Failure> {
    folder().ok_or_else(|| {
        let text = "there is no folder \"claims\" here or above; FONTIS_CLAIMS can name one";
        Failure::Usage(text.to_owned())
    })
}

fn results(how: &How, folder: &Path, nothing: bool) -> Results {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let budget = Budget {
        quick: how.quick,
        nothing,
        repeat: match (how.fresh, how.stale) {
            (true, _) => Repeat::Everything,
            (false, true) => Repeat::Stale,
            (false, false) => Repeat::Nothing,
        },
        jobs: how.jobs.map_or_else(processors, usize::from),
    };
    let kept = how.results.clone().unwrap_or_else(|| folder.join("results"));
    Results::new(&kept, budget)
}

/// Prints progress.
fn tell(text: String) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn run_scenarios(args: &Runs) -> Result<(), Failure> {
    let folder = claims_folder()?;
    let mut results = results(&args.how, &folder, false);
    for id in &args.scenarios {
        results.run(id, None, &tell).map_err(Failure::Failed)?;
        if let Some((runs, seconds)) = results.seconds().get(id) {
            say(&format!("{id}: {runs} runs, {seconds:.0} s of computing"));
        }
    }
    Ok(())
}

fn check(args: &Check) -> Result<(), Failure> {
    let folder = claims_folder()?;
    let book = Book::read(&folder, &args.book).map_err(Failure::Usage)?;
    let mut results = results(&args.how, &folder, args.recorded);
    let checked = book.check(&args.ids, &mut results, &tell).map_err(Failure::Failed)?;
    // What people conclude stands beside the claims, if there is anything.
    let findings = folder.join(format!("{}.md", args.book));
    let findings = std::fs::read_to_string(findings).unwrap_or_default();
    let page = report(&args.book, &findings, &checked, &results);
    let as_html = || document(&format!("What of {} is reproduced", args.book), &html(&page));
    if args.html {
        say(&as_html().trim_end());
    } else {
        tell_verdicts(&checked, args.json);
        tell_stale(&results, args.json);
        tell_counts(&checked, args.json);
    }
    if let Some(path) = &args.report {
        let is_html = path.extension().is_some_and(|ending| ending == "html");
        std::fs::write(path, if is_html { as_html() } else { page })
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn tell_verdicts(checked: &[Checked], json: bool) {
    for one in checked {
        say(&if json { as_json(one).to_string() } else { as_text(one) });
    }
}

fn tell_counts(checked: &[Checked], json: bool) {
    let count = |verdict| checked.iter().filter(|one| one.verdict == verdict).count();
    let [reproduced, differs, undecidable, not] =
        [Verdict::Reproduced, Verdict::Differs, Verdict::Undecidable, Verdict::NotCheckable]
            .map(count);
    if json {
        say(&json!({
            "event": "summary", "reproduced": reproduced, "differs": differs,
            "undecidable": undecidable, "not_checkable": not,
        }));
    } else {
        say(&format!(
            "{reproduced} reproduced, {differs} differ, {undecidable} undecidable, {not} not checked"
        ));
    }
}

/// Names the recorded runs that the verdicts rest on and that other code made.
fn tell_stale(results: &Results, json: bool) {
    for (scenario, (runs, parts)) in results.stale() {
        if json {
            let parts: Vec<&String> = parts.iter().collect();
            say(&json!({ "event": "stale", "scenario": scenario, "runs": runs, "parts": parts }));
        } else {
            let parts = parts.into_iter().collect::<Vec<_>>().join("; ");
            say(&format!(
                "{scenario}: other code made {runs} recorded runs ({parts}); \
                 `fontis lab run {scenario} --stale` repeats them"
            ));
        }
    }
}

const fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Differs => "differs",
        Verdict::Undecidable => "undecidable",
        Verdict::NotCheckable => "not checkable",
    }
}

fn as_json(one: &Checked) -> Value {
    json!({
        "event": "claim", "id": one.claim.id, "verdict": name(one.verdict), "ours": one.ours,
        "published": one.claim.value, "unit": one.claim.unit, "criterion": one.criterion,
        "why": one.why, "scenarios": one.scenarios, "quick": one.quick,
    })
}

fn as_text(one: &Checked) -> String {
    let ours = one.ours.map_or(String::new(), |ours| format!("  ours {}", round(ours)));
    let unit = if one.claim.unit == "-" { "" } else { &one.claim.unit };
    let why = if one.why.is_empty() { String::new() } else { format!("  ({})", one.why) };
    let published = match &one.claim.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{:<14} {}{ours}  published {published} {unit}{why}", name(one.verdict), one.claim.id)
}
