//! From a run's settings to its experiment.

mod flows;
mod reader;
mod topology;
mod transport;

use fontis_base::{Duration, Probability, Size};

use super::Settings;
use super::files::Traces;
use crate::experiment::Experiment;
use crate::host::controller::{ControllerConfig, ErrorModel};
use crate::scenario::error::ScenarioError;
use flows::add_flows;
use reader::{Reader, senseless};
use topology::Topology;

/// The experiment that the settings describe.
pub(super) fn experiment(
    settings: &Settings,
    traces: &Traces,
    seed: u64,
) -> Result<Experiment, ScenarioError> {
    let read = Reader { settings, traces, entry: None };
    let duration = read.duration("scenario.duration");
    let warmup = read.duration("scenario.warmup");
    let sample = read.duration("scenario.sample");
    if duration == Duration::ZERO {
        return senseless("scenario.duration must be longer than zero".to_owned());
    }
    if warmup >= duration {
        return senseless(format!(
            "scenario.warmup ({warmup}) leaves nothing of scenario.duration ({duration}) to measure"
        ));
    }
    if sample == Duration::ZERO || duration.as_nanos() / sample.as_nanos() > 10_000_000 {
        return senseless(format!(
            "scenario.sample ({sample}) asks for more than ten million samples in {duration}"
        ));
    }
    let topology = Topology::read(read)?;
    let mut flows = Vec::new();
    for (index, flow) in settings.flows.iter().enumerate() {
        add_flows(&read.of("flow", flow), &topology, index, seed, duration, &mut flows)?;
    }
    Ok(Experiment {
        seed,
        routers: topology.routers(),
        links: topology.links,
        flows,
        duration,
        warmup,
        sample,
        controller: controller(&read),
        measure: read.get::<Size>("scenario.measure").map(Size::as_bytes),
        until_done: read.flag("scenario.until_done"),
        wire: false,
    })
}

fn controller(read: &Reader<'_>) -> ControllerConfig {
    // An oracle is a controller that is quick and never wrong.
    let is_oracle = read.text("published.rate") == "oracle";
    let error = read.get("sdn.error").map_or(0.0, Probability::get);
    ControllerConfig {
        response: if is_oracle { Duration::ZERO } else { read.duration("sdn.response") },
        poll: read.duration("sdn.poll"),
        error: if is_oracle { 0.0 } else { error },
        model: match &*read.text("sdn.error_model") {
            "uniform" => ErrorModel::Uniform,
            _ => ErrorModel::Over,
        },
    }
}
