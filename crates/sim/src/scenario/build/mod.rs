//! From a run's settings to its experiment.

mod flows;
mod machines;
mod topology;

use std::sync::Arc;

use fontis_base::{Duration, Probability, Size};
use fontis_net::{FlowFacts, QueueKind};

use crate::experiment::spec::{Experiment, FlowSpec, LinkSpec};
use crate::host::controller::{ControllerConfig, ErrorModel};
use crate::scenario::build::flows::add_flows;
use crate::scenario::build::topology::Topology;
use crate::scenario::language::Language;
use crate::scenario::swarm::swarm;
use crate::settings::Settings;
use crate::settings::error::{ScenarioError, invalid};
use crate::settings::reader::{Reader, Traces};

/// The experiment that the settings describe.
pub(super) fn experiment(
    language: &Language,
    settings: &Settings,
    traces: &Traces,
    seed: u64,
) -> Result<Experiment, ScenarioError> {
    let read = Reader { catalogue: language.catalogue(), settings, traces, entry: None };
    let duration = read.duration("scenario.duration");
    let warmup = read.duration("scenario.warmup");
    let sample = read.duration("scenario.sample");
    if duration == Duration::ZERO {
        return invalid("scenario.duration must be longer than zero".to_owned());
    }
    if warmup >= duration {
        return invalid(format!(
            "scenario.warmup ({warmup}) leaves nothing of scenario.duration ({duration}) to measure"
        ));
    }
    if sample == Duration::ZERO || duration.as_nanos() / sample.as_nanos() > 10_000_000 {
        return invalid(format!(
            "scenario.sample ({sample}) asks for more than ten million samples in {duration}"
        ));
    }
    let mut topology = Topology::read(read)?;
    let swarm = swarm(&read, seed)?;
    let mut flows = Vec::new();
    let kinds = if swarm.is_some() { &[][..] } else { &settings.flows };
    for (index, flow) in kinds.iter().enumerate() {
        add_flows(language, &read.of("flow", flow), &topology, index, seed, duration, &mut flows)?;
    }
    tell_of_flows(&mut topology, &flows)?;
    Ok(Experiment {
        seed,
        vertices: topology.vertices(),
        machines: topology.machines,
        links: topology.links,
        groups: topology.groups,
        flows,
        swarm: swarm.map(Arc::new),
        duration,
        warmup,
        sample,
        controller: controller(&read),
        measure: read.get::<Size>("scenario.measure").map(Size::as_bytes),
        until_done: read.flag("scenario.until_done"),
        wire: false,
    })
}

/// Gives the queues what they are told of flows.
fn tell_of_flows(topology: &mut Topology, flows: &[FlowSpec]) -> Result<(), ScenarioError> {
    let asks = topology.links.iter().any(|link| link.config.queue == QueueKind::Srpt);
    let is_silent = flows.iter().all(|flow| flow.facts == FlowFacts::default());
    let facts: Arc<[FlowFacts]> = match is_silent && !asks {
        true => Arc::default(),
        false => flows
            .iter()
            .map(|flow| FlowFacts { length: flow.application.length(), ..flow.facts })
            .collect(),
    };
    for LinkSpec { name, config, .. } in &mut topology.links {
        config.queue_options.flows = Arc::clone(&facts);
        let options = &config.queue_options;
        if options.by_class && facts.iter().any(|flow| flow.weight.is_some()) {
            return invalid(
                "flow.weight says nothing where queue.turns is \"class\": set \
                 queue.class_weights and flow.class"
                    .to_owned(),
            );
        }
        if let Some(weight) = options.unserved_weight() {
            return invalid(format!(
                "link {name}: a weight of {weight} with alpha = {} has a share below 0.001 or above \
                 1000000 of that of weight 1, which no queue can give",
                options.alpha
            ));
        }
    }
    Ok(())
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
