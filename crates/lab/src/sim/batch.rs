use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use fontis_sim::scenario::Run;

use super::folder::{Folder, Metric, RecordError};

/// How far a batch of runs has come. Shared between the threads that run and the one that shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Samples taken in all runs.
    pub samples: AtomicU64,
    /// Runs done, recorded before or now.
    pub runs: AtomicUsize,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Its place in the list of runs.
    pub run: usize,
    /// What was measured.
    pub metrics: Vec<Metric>,
    /// Whether it had been recorded before and was not run again.
    pub kept: bool,
}

/// How many samples a run takes: the measure of progress.
pub fn samples(run: &Run) -> u64 {
    let experiment = &run.experiment;
    experiment.duration.as_nanos().div_ceil(experiment.sample.as_nanos().max(1)).max(1)
}

/// The most packets in a capture: some hundred megabytes of them.
const MOST_CAPTURED: u64 = 2_000_000;

/// Runs what has not been recorded yet, on `jobs` threads, with captures if `capture` says so, and records it; gives what is done, in the order of the
/// runs. When `stop` is set, runs that are not finished are given up; the rest is kept, and the next batch goes on
/// from there.
pub fn run(
    runs: &[Run],
    folder: &Folder,
    jobs: usize,
    capture: bool,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Vec<Outcome>, RecordError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(index) else { break };
            match one(run, folder, capture, stop, progress) {
                Ok(Some((metrics, kept))) => {
                    progress.runs.fetch_add(1, Ordering::Relaxed);
                    let mut done = done.lock().expect("no thread panics with it");
                    done.push(Outcome { run: index, metrics, kept });
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

fn one(
    run: &Run,
    folder: &Folder,
    capture: bool,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Option<(Vec<Metric>, bool)>, RecordError> {
    if let Some(metrics) = folder.recorded(run, capture) {
        progress.samples.fetch_add(samples(run), Ordering::Relaxed);
        return Ok(Some((metrics, true)));
    }
    let mut taken = 0;
    let most = if capture { MOST_CAPTURED } else { 0 };
    let recording = run.experiment.run_captured(most, || {
        taken += 1;
        progress.samples.fetch_add(1, Ordering::Relaxed);
        stop.load(Ordering::Relaxed)
    });
    let Some((recording, capture)) = recording else { return Ok(None) };
    // A run may end early or take a sample more than was counted on.
    progress.samples.fetch_add(samples(run).saturating_sub(taken), Ordering::Relaxed);
    folder.record(run, &recording, capture.as_ref()).map(|metrics| Some((metrics, false)))
}
