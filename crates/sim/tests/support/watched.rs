//! Runs of scenarios with everything that can be watched of them.

use fontis_sim::experiment::run::{Watch, Watched};
use fontis_sim::scenario::Scenario;
use fontis_trace::Detail;

/// The first run of a scenario; `wire` says that its packets are bytes on the way.
pub fn run(text: &str, wire: bool) -> Watched {
    let runs = Scenario::parse(text).expect("it is right").runs().expect("runs");
    let mut experiment = runs.into_iter().next().expect("a run").experiment;
    experiment.wire = wire;
    let watch = Watch { capture: 100_000, packets: Some(Detail::default()), qlog: true };
    experiment.run_watched(watch, |_| false).expect("nobody stops it")
}

/// The first value of a metric in its summary.
pub fn metric(run: &Watched, name: &str) -> f64 {
    let summary = &run.recording.summary;
    let names = summary.texts("metric").expect("metrics");
    let values = summary.numbers("value");
    let row = names.iter().zip(values).find(|(metric, _)| **metric == *name);
    row.unwrap_or_else(|| panic!("no {name}")).1
}
