//! Scenario files, and the delivery traces that they name.

use std::cell::RefCell;

use fontis_sim::scenario::{Files, Scenario};

thread_local! {
    /// The file that any name stands for.
    static FILE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The most flows that are run: more take time and show nothing.
const FLOWS: usize = 20;

/// A text is a scenario or is refused in one line; what it stands for can be run for a while.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, trace) = text.split_once('\0').unwrap_or((&text, ""));
    FILE.set(trace.to_owned());
    let read = |_: &str, _: &str| Ok(FILE.with_borrow(String::clone));
    let files = Files { folder: String::new(), read };
    let mut scenario = match Scenario::parse_with(text, files) {
        Ok(scenario) if scenario.len() < 100 => scenario,
        Ok(_) => return,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    for (key, value) in
        [("scenario.duration", "20 ms"), ("scenario.warmup", "0"), ("scenario.sample", "5 ms")]
    {
        scenario.set(key, value).expect("a key and a time");
    }
    let Ok(runs) = scenario.runs() else { return };
    let Some(run) = runs.first().filter(|run| run.experiment.flows.len() <= FLOWS) else { return };
    let recording = run.experiment.run(|| false).expect("nobody stops it");
    assert!(recording.metric("goodput", "all").is_some());
}
