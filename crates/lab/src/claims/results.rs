use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::Instant;

use fontis_sim::Recording;
use fontis_sim::experiment::run::Watch;
use fontis_sim::scenario::{Run, Scenario};
use serde_json::{Value, json};

use super::probes;
use crate::sim::{self, Platform, behaviour, key};
#[cfg(target_os = "linux")]
use crate::thread_time::thread_time;

/// The permitted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The quick variants of scenarios that have one, and nothing in real time.
    pub quick: bool,
    /// No runs: only recorded ones count.
    pub nothing: bool,
    /// The recorded runs that are repeated.
    pub repeat: Repeat,
    /// Runs at the same time.
    pub jobs: usize,
}

/// The recorded runs that are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// None.
    Nothing,
    /// Those that code made which does something else today.
    Stale,
    /// All.
    Everything,
}

/// Summaries of scenarios' runs, in a folder with a file for each scenario. What is there is not
/// run again unless that is asked for, as long as the scenario's settings are the same. A summary
/// says what the code did that made it, so that one of other code is known.
///
/// Scenarios are named by their ids; `ID@testbed` stands for one that runs on the testbed, in real
/// time, one run at a time.
pub struct Results {
    folder: PathBuf,
    budget: Budget,
    loaded: BTreeMap<String, Loaded>,
    stop: Arc<AtomicBool>,
    /// The reason why there is no testbed, after a first attempt.
    no_testbed: Option<String>,
    /// The results of long probes, after a first attempt.
    probes: Option<BTreeMap<String, Vec<f64>>>,
}

/// The file of long probes' results.
const PROBES: &str = "probes.jsonl";

/// A scenario and the results of its runs.
pub(super) struct Loaded {
    pub(super) scenario: Scenario,
    pub(super) runs: Vec<Run>,
    /// By place in `runs`.
    summaries: Vec<Option<Summary>>,
    /// Recorded runs that are taken for missing.
    repeated: BTreeSet<usize>,
    /// True if the runs are fewer or shorter than the full ones.
    pub(super) is_quick: bool,
    platform: Platform,
}

#[derive(Clone, Debug)]
struct Summary {
    /// (metric, subject) to value.
    metrics: BTreeMap<(String, String), f64>,
    seconds: f64,
    /// What the code did that made it: hashes of its parts. Nothing is known of old ones.
    code: BTreeMap<String, String>,
}

impl Results {
    /// Results in this folder, which is made when something is written.
    pub fn new(folder: &Path, budget: Budget) -> Self {
        Self {
            folder: folder.to_owned(),
            budget,
            loaded: BTreeMap::new(),
            stop: Arc::default(),
            no_testbed: None,
            probes: None,
        }
    }

    /// The flag that ends running; unfinished runs are abandoned.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The scenario of this id, with whatever is recorded of it.
    pub(super) fn scenario(&mut self, id: &str) -> Result<&mut Loaded, String> {
        if !self.loaded.contains_key(id) {
            let loaded = self.load(id)?;
            self.loaded.insert(id.to_owned(), loaded);
        }
        Ok(self.loaded.get_mut(id).expect("it was put there"))
    }

    fn load(&self, id: &str) -> Result<Loaded, String> {
        let (name, platform) = platform(id);
        let file = sim::find(name)?;
        let quick = if self.budget.quick { file.scenario.quick() } else { None };
        let is_quick = quick.is_some();
        let scenario = quick.unwrap_or(file.scenario);
        let runs = scenario.runs().map_err(|error| format!("{id}: {error}"))?;
        let text = fs::read_to_string(self.path(id)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let kept: BTreeMap<String, Summary> =
            lines.filter_map(|line: Value| summary_of(&line)).collect();
        let summaries = runs.iter().map(|run| kept.get(&key_on(platform, run)).cloned()).collect();
        let repeated = BTreeSet::new();
        let mut loaded = Loaded { scenario, runs, summaries, repeated, is_quick, platform };
        loaded.repeated = match self.budget.repeat {
            Repeat::Nothing => BTreeSet::new(),
            Repeat::Stale => (0..loaded.runs.len()).filter(|run| loaded.is_stale(*run)).collect(),
            Repeat::Everything => (0..loaded.runs.len()).collect(),
        };
        Ok(loaded)
    }

    fn path(&self, id: &str) -> PathBuf {
        // A scenario may be named by its file.
        let (name, platform) = platform(id);
        let name = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
        let on = if platform == Platform::Testbed { "@testbed" } else { "" };
        self.folder.join(format!("{name}{on}.jsonl"))
    }

    /// Runs the needed runs that are missing, `jobs` at a time, and keeps the summaries. Calls
    /// `tell` with progress.
    pub fn run(
        &mut self,
        id: &str,
        wanted: Option<&BTreeSet<usize>>,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), String> {
        let (budget, path) = (self.budget, self.path(id));
        let folder = self.folder.clone();
        self.scenario(id)?;
        let loaded = self.loaded.get(id).expect("it is there");
        let missing: Vec<usize> = (0..loaded.runs.len())
            .filter(|index| wanted.is_none_or(|wanted| wanted.contains(index)))
            .filter(|index| loaded.summaries[*index].is_none() || loaded.repeated.contains(index))
            .collect();
        if missing.is_empty() || budget.nothing {
            return Ok(());
        }
        let platform = loaded.platform;
        if platform == Platform::Testbed {
            let real_time =
                || Err("it would take its time, so not in the quick variant".to_owned());
            if let Err(error) = if budget.quick { real_time() } else { testbed() } {
                tell(format!("{id} is not run: {error}"));
                self.no_testbed = Some(error);
                return Ok(());
            }
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Summary)>> = Mutex::new(Vec::new());
        let failed: Mutex<Option<String>> = Mutex::new(None);
        let runs = &loaded.runs;
        let work = || {
            while !self.stop.load(Ordering::Relaxed) {
                let Some(index) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let run = &runs[*index];
                let clock = Computing::start(platform);
                let stop = || self.stop.load(Ordering::Relaxed);
                let recording = match recorded(platform, run, stop) {
                    Ok(Some(recording)) => recording,
                    Ok(None) => break,
                    Err(error) => {
                        let error = format!("{id}: {}: {error}", run.label());
                        failed.lock().expect("no thread panics with it").get_or_insert(error);
                        self.stop.store(true, Ordering::Relaxed);
                        break;
                    }
                };
                let seconds = clock.seconds();
                let metrics = recording.metrics();
                let code = code_on(platform, run);
                let summary = Summary { metrics, seconds, code };
                // Each line is whole or not there: an interrupted check goes on from here.
                let mut done = done.lock().expect("no thread panics with it");
                if let Err(error) = append(&path, &line_of(platform, run, &summary)) {
                    failed.lock().expect("no thread panics with it").get_or_insert(error);
                    self.stop.store(true, Ordering::Relaxed);
                    break;
                }
                tell(format!("{id}: {} ({seconds:.1} s)", run.label()));
                done.push((*index, summary));
            }
        };
        std::thread::scope(|scope| {
            // In real time, runs would take each other's processors.
            let jobs = if platform == Platform::Testbed { 1 } else { budget.jobs };
            for _ in 0..jobs.clamp(1, missing.len()) {
                scope.spawn(work);
            }
        });
        if let Some(error) = failed.into_inner().expect("no thread panicked") {
            return Err(error);
        }
        let done = done.into_inner().expect("no thread panicked");
        let loaded = self.loaded.get_mut(id).expect("it is there");
        for (index, summary) in done {
            loaded.summaries[index] = Some(summary);
            loaded.repeated.remove(&index);
        }
        compact(&path)
    }

    /// The result of the long probe of this name, if it is known.
    pub(super) fn probe(&mut self, name: &str) -> Option<&Vec<f64>> {
        let probes = self.probes.get_or_insert_with(|| {
            let text = fs::read_to_string(self.folder.join(PROBES)).unwrap_or_default();
            let is_repeated = self.budget.repeat == Repeat::Everything;
            let text = if is_repeated { "" } else { &*text };
            let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            lines.filter_map(|line: Value| probe_of(&line)).collect()
        });
        probes.get(name)
    }

    /// Runs a long probe if its result is unknown, and keeps it.
    pub(super) fn run_probe(
        &mut self,
        name: &str,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), String> {
        if self.probe(name).is_some() || self.budget.nothing {
            return Ok(());
        }
        let begin = Instant::now();
        let values = probes::long_probe(name)?;
        let seconds = begin.elapsed().as_secs_f64();
        let line = json!({ "probe": name, "seconds": tenths(seconds), "values": values });
        fs::create_dir_all(&self.folder)
            .map_err(|error| format!("{}: {error}", self.folder.display()))?;
        append(&self.folder.join(PROBES), &line.to_string())?;
        tell(format!("probe {name} ({seconds:.1} s)"));
        self.probes.get_or_insert_default().insert(name.to_owned(), values);
        Ok(())
    }

    /// The number of runs that are there of all scenarios looked at, and the seconds of computing
    /// that they took, by scenario.
    pub fn seconds(&self) -> BTreeMap<String, (usize, f64)> {
        let of = |loaded: &Loaded| {
            let known = || loaded.summaries.iter().flatten();
            (known().count(), known().map(|summary| summary.seconds).sum())
        };
        self.loaded.iter().map(|(id, loaded)| (id.clone(), of(loaded))).collect()
    }

    /// Tells how many recorded runs of the scenarios looked at are of code that does something else
    /// today, by scenario, and the parts that do.
    pub fn stale(&self) -> BTreeMap<String, (usize, BTreeSet<String>)> {
        let of = |(id, loaded): (&String, &Loaded)| {
            let changed = (0..loaded.runs.len()).map(|run| loaded.changed(run));
            let changed: Vec<BTreeSet<String>> =
                changed.filter(|parts| !parts.is_empty()).collect();
            let runs = changed.len();
            (runs > 0).then(|| (id.clone(), (runs, changed.into_iter().flatten().collect())))
        };
        self.loaded.iter().filter_map(of).collect()
    }
}

impl Loaded {
    /// The runs that the selectors choose, in groups of repetitions of the same.
    pub(super) fn select(
        &self,
        selectors: &[(Option<String>, String)],
    ) -> Result<Vec<Vec<usize>>, String> {
        let variants: BTreeSet<&str> = self.runs.iter().map(|run| &*run.variant).collect();
        for (key, value) in selectors {
            if key.is_none() && !variants.contains(&**value) {
                return Err(format!("there is no variant {value:?}"));
            }
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            let fits = |(key, value): &(Option<String>, String)| match key {
                None => run.variant == *value,
                Some(key) => run.sweep.iter().any(|(path, set)| {
                    let is_key = path == key || path.rsplit('.').next() == Some(key);
                    is_key && set == value
                }),
            };
            if !selectors.iter().all(fits) {
                continue;
            }
            match groups.last_mut() {
                Some(group) if run.repetition > 0 => group.push(index),
                _ => groups.push(vec![index]),
            }
        }
        Ok(groups)
    }

    /// The values of a metric in a run; several for a subject that ends in `*`. `None` if the
    /// run is not known.
    pub(super) fn values(&self, run: usize, metric: &str, subject: &str) -> Option<Vec<f64>> {
        let summary = self.summaries[run].as_ref()?;
        if let Some(begin) = subject.strip_suffix('*') {
            let is_wanted = |of: &str| of != "all" && of.starts_with(begin);
            let of =
                summary.metrics.iter().filter(|((name, of), _)| name == metric && is_wanted(of));
            return Some(of.map(|(_, value)| *value).collect());
        }
        let value = summary.metrics.get(&(metric.to_owned(), subject.to_owned()));
        Some(value.copied().into_iter().collect())
    }
}

impl Loaded {
    /// The parts of the code that do something else than when a recorded run was made, or are not
    /// known to do the same.
    fn changed(&self, run: usize) -> BTreeSet<String> {
        let Some(summary) = &self.summaries[run] else { return BTreeSet::new() };
        let today = code_on(self.platform, &self.runs[run]);
        if summary.code.is_empty() && !today.is_empty() {
            return BTreeSet::from(["not known".to_owned()]);
        }
        let has_changed = |(part, hash): &(String, String)| summary.code.get(part) != Some(hash);
        today.into_iter().filter(has_changed).map(|(part, _)| part).collect()
    }

    /// True if other code made a recorded run, as far as is known.
    pub(super) fn is_stale(&self, run: usize) -> bool {
        !self.changed(run).is_empty()
    }
}

/// The scenario of an id, and where it runs.
fn platform(id: &str) -> (&str, Platform) {
    match id.strip_suffix("@testbed") {
        Some(name) => (name, Platform::Testbed),
        None => (id, Platform::Simulator),
    }
}

/// The key of a run's result.
fn key_on(platform: Platform, run: &Run) -> String {
    match platform {
        Platform::Simulator => key(run),
        Platform::Testbed => format!("testbed-{}", key(run)),
    }
}

/// The time that a run takes: of a simulation the processor's, so that other work counts not.
enum Computing {
    RealTime(Instant),
    #[cfg(target_os = "linux")]
    Thread(Duration),
}

impl Computing {
    fn start(platform: Platform) -> Self {
        #[cfg(target_os = "linux")]
        if platform == Platform::Simulator {
            return Self::Thread(thread_time());
        }
        let _ = platform;
        Self::RealTime(Instant::now())
    }

    fn seconds(&self) -> f64 {
        match self {
            Self::RealTime(begin) => begin.elapsed().as_secs_f64(),
            #[cfg(target_os = "linux")]
            Self::Thread(begin) => (thread_time() - *begin).as_secs_f64(),
        }
    }
}

/// What the code does that a run uses. On the testbed that is the transports alone, and what the
/// kernel has of them is not ours.
fn code_on(platform: Platform, run: &Run) -> BTreeMap<String, String> {
    let mut code = behaviour(run);
    if platform == Platform::Testbed {
        code.retain(|part, _| part.starts_with("dfcp"));
    }
    code
}

/// Returns true if this machine has a testbed, and prepares this process to use it.
fn testbed() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    return crate::testbed::gain_privilege().map(drop).map_err(|error| error.to_string());
    #[cfg(not(target_os = "linux"))]
    Err("a testbed needs Linux".to_owned())
}

fn recorded(
    platform: Platform,
    run: &Run,
    stop: impl FnMut() -> bool,
) -> Result<Option<Recording>, String> {
    match platform {
        Platform::Simulator => Ok(run.experiment.run(stop)),
        Platform::Testbed => {
            let made =
                sim::on_testbed(run, Watch::default(), stop).map_err(|error| error.to_string())?;
            Ok(made.map(|(watched, _)| watched.recording))
        }
    }
}

fn line_of(platform: Platform, run: &Run, summary: &Summary) -> String {
    let mut metrics: Vec<Value> = Vec::new();
    // Metrics NAME_00, NAME_01 and so on of a subject are one row: a run may have a thousand.
    let mut series: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for ((metric, subject), value) in &summary.metrics {
        let numbered = metric.rsplit_once('_').filter(|(name, number)| {
            let before = series.get(&(*name, &**subject)).map_or(0, Vec::len);
            *number == format!("{before:02}")
        });
        match numbered {
            Some((name, _)) => series.entry((name, subject)).or_default().push(rounded(*value, 3)),
            None => metrics.push(json!([metric, subject, rounded(*value, 6)])),
        }
    }
    metrics.extend(series.iter().map(|((name, subject), values)| json!([name, subject, values])));
    json!({
        "key": key_on(platform, run), "run": run.label(), "seconds": tenths(summary.seconds),
        "code": summary.code, "metrics": metrics,
    })
    .to_string()
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn probe_of(line: &Value) -> Option<(String, Vec<f64>)> {
    let name = line.get("probe")?.as_str()?.to_owned();
    let values = line.get("values")?.as_array()?.iter().map(Value::as_f64);
    Some((name, values.collect::<Option<_>>()?))
}

/// Six digits are more than any claim has, and three are what a curve shows.
fn rounded(value: f64, digits: usize) -> Value {
    let less = digits - 1;
    let rounded: f64 = format!("{value:.less$e}").parse().unwrap_or(value);
    // A whole number has no point behind it.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}

fn summary_of(line: &Value) -> Option<(String, Summary)> {
    let key = line.get("key")?.as_str()?.to_owned();
    let mut metrics = BTreeMap::new();
    for row in line.get("metrics")?.as_array()? {
        let text = |index: usize| Some(row.get(index)?.as_str()?.to_owned());
        let (metric, subject) = (text(0)?, text(1)?);
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        match row.get(2)? {
            Value::Array(values) => metrics.extend((0..).zip(values).map(|(at, value)| {
                ((format!("{metric}_{at:02}"), subject.clone()), number(value))
            })),
            value => _ = metrics.insert((metric, subject), number(value)),
        }
    }
    let code = line.get("code").cloned().unwrap_or_default();
    let code = serde_json::from_value(code).unwrap_or_default();
    Some((key, Summary { metrics, seconds: line.get("seconds")?.as_f64()?, code }))
}

/// Rewrites a file of results without the lines that later ones of the same run replace.
fn compact(path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(failed)?;
    let key = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(line.get("key")?.as_str()?.to_owned())
    };
    let keys: Vec<Option<String>> = text.lines().map(key).collect();
    let last: BTreeMap<&String, usize> =
        keys.iter().enumerate().filter_map(|(at, key)| Some((key.as_ref()?, at))).collect();
    let is_last = |at: usize| keys[at].as_ref().is_none_or(|key| last[key] == at);
    let kept = text.lines().enumerate().filter(|(at, _)| is_last(*at));
    let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
    if kept == text {
        return Ok(());
    }
    let new = path.with_extension("new");
    fs::write(&new, kept).and_then(|()| fs::rename(&new, path)).map_err(failed)
}

fn append(path: &Path, line: &str) -> Result<(), String> {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

impl Results {
    /// The reason why runs of a scenario are missing.
    pub(super) fn missing(&self, id: &str) -> String {
        match &self.no_testbed {
            Some(why) if platform(id).1 == Platform::Testbed => {
                format!("{id} has not been run: {why}")
            }
            _ => format!("{id} has not been run"),
        }
    }

    /// True if quick variants are run.
    pub(super) fn is_quick(&self) -> bool {
        self.budget.quick
    }
}

/// The value of a key in a scenario, in seconds, bit/s, bytes, or as it is; a list for a swept key.
pub(super) fn setting(loaded: &Loaded, key: &str) -> Result<super::value::Value, String> {
    use super::value::Value;
    let number = |text: &str| {
        let seconds = || Some(text.parse::<fontis_base::Duration>().ok()?.as_secs_f64());
        let bits = || Some(text.parse::<fontis_base::Rate>().ok()?.as_bps() as f64);
        let bytes = || Some(text.parse::<fontis_base::Size>().ok()?.as_bytes() as f64);
        let plain = text.parse::<f64>().ok();
        plain.or_else(bits).or_else(bytes).or_else(seconds)
    };
    let of = |text: &str| number(text).ok_or_else(|| format!("{key} is {text:?}, not a number"));
    if let Some(values) = loaded.scenario.swept(key) {
        return values.iter().map(|text| of(text)).collect::<Result<_, _>>().map(Value::List);
    }
    of(&loaded.scenario.get(key)).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use fontis_sim::scenario::Scenario;

    use super::*;

    #[test]
    fn a_summary_comes_back_from_its_line_and_numbered_metrics_are_one_row() {
        let metric = |name: &str, subject: &str, value| ((name.into(), subject.into()), value);
        let summary = Summary {
            metrics: BTreeMap::from([
                metric("bin_00", "one", 1.5),
                metric("bin_01", "one", 2.5),
                // Without a first one there is no series.
                metric("bin_01", "two", 3.5),
                metric("converged_01", "all", 4.5),
                metric("goodput", "all", 5.5),
            ]),
            seconds: 1.5,
            code: BTreeMap::from([("links".to_owned(), "00000000".to_owned())]),
        };
        let runs = Scenario::parse("").expect("a scenario").runs().expect("a run");
        let line = line_of(Platform::Simulator, &runs[0], &summary);
        assert!(line.contains(r#"["bin","one",[1.5,2.5]]"#), "{line}");
        let (_, back) = summary_of(&serde_json::from_str(&line).expect("JSON")).expect("a summary");
        assert_eq!((back.metrics, back.code), (summary.metrics, summary.code));
    }
}
