use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fontis_sim::experiment::run::{Watch, Watched};
use fontis_sim::scenario::Run;
use fontis_sim::world::observers::recorder::Recorder;
use fontis_trace::Detail;
use serde_json::Value;

use super::folder::{Extras, Folder, Metric, RecordError};
use super::platform::Platform;

/// The progress of a batch of runs, shared between the threads that run and the one that shows it.
#[derive(Debug, Default)]
pub struct BatchProgress {
    /// Samples taken in all runs.
    pub samples: AtomicU64,
    /// Runs done, recorded before or now.
    pub runs: AtomicUsize,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Its place in the list of runs.
    pub run: usize,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// True if it was recorded before and not run again.
    pub kept: bool,
}

/// The number of samples of a run, which measures progress.
pub fn samples(run: &Run) -> u64 {
    let experiment = &run.experiment;
    experiment.duration.as_nanos().div_ceil(experiment.sample.as_nanos().max(1)).max(1)
}

/// The most packets in a capture: some hundred megabytes of them.
const MOST_CAPTURED: u64 = 2_000_000;

/// Runs and records the runs that are not recorded yet, on `jobs` threads; returns the results in
/// the order of the runs. `extras` chooses the files of packets; only the simulator has every
/// packet's life. If `stop` is set, unfinished runs are abandoned; the next batch continues with
/// them.
pub fn run(
    runs: &[Run],
    platform: Platform,
    folder: &Folder,
    jobs: usize,
    extras: Extras,
    stop: &AtomicBool,
    progress: &BatchProgress,
) -> Result<Vec<RunOutcome>, RecordError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(index) else { break };
            match one(run, platform, folder, extras, stop, progress) {
                Ok(Some((metrics, kept))) => {
                    progress.runs.fetch_add(1, Ordering::Relaxed);
                    let mut done = done.lock().expect("no thread panics with it");
                    done.push(RunOutcome { run: index, metrics, kept });
                }
                Ok(None) => break,
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.lock().expect("no thread panics with it").get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, runs.len().max(1)) {
            scope.spawn(work);
        }
    });
    if let Some(error) = failed.into_inner().expect("no thread panicked") {
        return Err(error);
    }
    let mut done = done.into_inner().expect("no thread panicked");
    done.sort_by_key(|outcome| outcome.run);
    Ok(done)
}

/// Writes the packets of a running simulation periodically, for `fontis view --live`.
struct Snapshots<'a> {
    folder: &'a Folder,
    run: &'a Run,
    next: Instant,
}

/// The time of the first picture of a run, and the largest share of time for pictures: one part in
/// this number.
const FIRST_SNAPSHOT: Duration = Duration::from_secs(1);
const SNAPSHOT_SHARE: u32 = 10;

impl<'a> Snapshots<'a> {
    fn new(folder: &'a Folder, run: &'a Run) -> Self {
        Self { folder, run, next: Instant::now() + FIRST_SNAPSHOT }
    }

    fn offer(&mut self, recorder: Option<&Recorder>) {
        let Some(recorder) = recorder else { return };
        let begun = Instant::now();
        if begun >= self.next {
            // Whoever looks on misses a picture; the run goes on, and says what is wrong with the
            // folder at its end.
            let _ = self.folder.record_snapshot(self.run, &recorder.snapshot());
            self.next = Instant::now() + FIRST_SNAPSHOT.max(begun.elapsed() * SNAPSHOT_SHARE);
        }
    }
}

fn one(
    run: &Run,
    platform: Platform,
    folder: &Folder,
    extras: Extras,
    stop: &AtomicBool,
    progress: &BatchProgress,
) -> Result<Option<(Vec<Metric>, bool)>, RecordError> {
    if let Some(metrics) = folder.recorded(run, platform, extras) {
        progress.samples.fetch_add(samples(run), Ordering::Relaxed);
        return Ok(Some((metrics, true)));
    }
    let mut taken = 0;
    let watch = Watch {
        capture: if extras.capture { MOST_CAPTURED } else { 0 },
        packets: extras.packets.then(Detail::default),
        qlog: extras.qlog,
    };
    folder.forget_partial(run);
    let mut qlog = if extras.qlog { Some(folder.begin_qlog(run)?) } else { None };
    let mut failed = None;
    let mut sampled = || {
        taken += 1;
        progress.samples.fetch_add(1, Ordering::Relaxed);
        stop.load(Ordering::Relaxed)
    };
    let mut snapshots = Snapshots::new(folder, run);
    let (watched, environment) = match platform {
        Platform::Simulator => {
            if let Some((flow, what)) = run.experiment.testbed_only() {
                let problem = "on the testbed only: use fontis testbed run";
                return Err(RecordError::Testbed(format!("{}: {what} {problem}", flow.name)));
            }
            let Some(watched) = run.experiment.run_watched(watch, |seen| {
                snapshots.offer(seen.recorder);
                if let (Some(qlog), Some(records)) = (&mut qlog, seen.qlog) {
                    failed = qlog.write(records.as_bytes()).err();
                }
                sampled() || failed.is_some()
            }) else {
                folder.forget_partial(run);
                return failed.map_or(Ok(None), Err);
            };
            (watched, None)
        }
        Platform::Testbed => {
            let Some((watched, environment)) = on_testbed(run, watch, &mut sampled)? else {
                return Ok(None);
            };
            (watched, Some(environment))
        }
    };
    // A run may end early or take a sample more than was counted on.
    progress.samples.fetch_add(samples(run).saturating_sub(taken), Ordering::Relaxed);
    let metrics = folder.record(run, &watched, environment)?;
    Ok(Some((metrics, false)))
}

/// A recording, and on what machine it was made.
pub(crate) type OnMachine = Option<(Watched, Value)>;

/// Runs it with real kernels and sockets; `None` if `stop` was set.
#[cfg(target_os = "linux")]
pub(crate) fn on_testbed(
    run: &Run,
    watch: Watch,
    stop: impl FnMut() -> bool,
) -> Result<OnMachine, RecordError> {
    let run = crate::testbed::run(&run.experiment, watch, stop);
    let run = run.map_err(|error| RecordError::Testbed(error.to_string()))?;
    Ok(run.map(|(watched, environment)| (watched, environment.as_json())))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn on_testbed(
    _: &Run,
    _: Watch,
    _: impl FnMut() -> bool,
) -> Result<OnMachine, RecordError> {
    Err(RecordError::Testbed("a testbed needs Linux".to_owned()))
}
