//! From `[[flow]]` to flows.

use fontis_base::{Duration, Rate, Size, Stream, Time};
use fontis_net::{FlowFacts, LinkConfig, Loss};
use fontis_proto::dfcp::MAX_OPEN_PATHS;

use crate::analysis::exponential::exponential;
use crate::analysis::lognormal::log_normal;
use crate::app::Application;
use crate::app::source::Pattern;
use crate::experiment::spec::{Destination, End, FlowSpec, InterfaceIndex};
use crate::host::table::PathFacts;
use crate::scenario::apps::{application, sigma};
use crate::scenario::build::topology::{Topology, Way};
use crate::scenario::language::Language;
use crate::settings::SettingsEntry;
use crate::settings::error::{ScenarioError, invalid};
use crate::settings::reader::Reader;

/// The most flows in a run.
const MOST_FLOWS: u64 = 1_000_000;

/// Adds the flows of a kind.
pub(super) fn add_flows(
    language: &Language,
    read: &Reader<'_>,
    topology: &Topology,
    kind: usize,
    seed: u64,
    duration: Duration,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), ScenarioError> {
    let count = read.count("flow.count");
    if count + flows.len() as u64 > MOST_FLOWS {
        return invalid(format!("there are more than {MOST_FLOWS} flows"));
    }
    let base = match read.text("flow.name") {
        name if name.is_empty() => format!("flow{}", kind + 1),
        name => name,
    };
    let app = read.text("flow.app");
    let mut starts = Stream::new(seed, &format!("{base}/start"));
    let jitter = read.duration("scenario.start_jitter");
    let start = Time::ZERO + read.duration("flow.start");
    // Each is a start and what is transported from then on.
    let mut plans: Vec<(Time, Application)> = Vec::new();
    match &*app {
        "short-flows" => {
            let (rate, mean) =
                (read.get("flow.rate").unwrap_or(Rate::ZERO), read.size("flow.size"));
            if rate == Rate::ZERO || rate == Rate::MAX || mean == 0 {
                return invalid("short-flows need flow.rate and flow.size above zero".to_owned());
            }
            let (gap, sigma) = (rate.time_for(mean), sigma(read)?);
            let end = Time::ZERO + duration;
            let mut at = start;
            loop {
                at += exponential(&mut starts, gap);
                if at >= end {
                    break;
                }
                if plans.len() as u64 + flows.len() as u64 >= MOST_FLOWS {
                    return invalid(format!("there are more than {MOST_FLOWS} short flows"));
                }
                let size = match sigma {
                    Some(sigma) => log_normal(&mut starts, mean, sigma),
                    None => (-libm::log(1.0 - starts.unit()) * mean as f64) as u64,
                };
                plans.push((at, Application::Source(Pattern::Object { size: size.max(1) })));
            }
        }
        "list" => {
            for entry in read.list("flow.list") {
                let parsed = entry.split_once(':').and_then(|(at, size)| {
                    let at: Duration = at.trim().parse().ok()?;
                    Some((at, size.trim().parse::<Size>().ok()?))
                });
                let Some((at, size)) = parsed else {
                    return invalid(format!("flow.list: {entry:?} must be TIME:SIZE"));
                };
                let object = Pattern::Object { size: size.as_bytes() };
                plans.push((start + at, Application::Source(object)));
            }
        }
        _ => {
            let application = application(read, &app)?;
            for _ in 0..count {
                let offset = starts.below(jitter.as_nanos().saturating_add(1));
                plans.push((start + Duration::from_nanos(offset), application));
            }
        }
    }
    let alone = plans.len() == 1;
    flows.reserve_exact(plans.len());
    // All of a kind have the same settings, which are read once.
    let mut first: Option<FlowSpec> = None;
    for (index, (start, application)) in plans.into_iter().enumerate() {
        let name = if alone { base.clone() } else { format!("{base}.{}", index + 1) };
        let spec = match &first {
            Some(first) => FlowSpec { name, start, application, ..first.clone() },
            None => flow(language, read, topology, name, start, application)?,
        };
        first.get_or_insert_with(|| spec.clone());
        flows.push(spec);
    }
    Ok(())
}

/// How many flows a kind stands for.
fn count_of(flow: &SettingsEntry) -> u64 {
    flow.get("count").and_then(|count| count.one().parse().ok()).unwrap_or(1)
}

fn flow(
    language: &Language,
    read: &Reader<'_>,
    topology: &Topology,
    name: String,
    start: Time,
    application: Application,
) -> Result<FlowSpec, ScenarioError> {
    let overload = read.get::<f64>("topology.overload").filter(|overload| *overload > 0.0);
    let all: u64 = read.settings.flows.iter().map(count_of).sum();
    let shared = overload.map(|overload| topology.rate.scale(overload / all.max(1) as f64));
    let access = read.get("flow.access").or(shared).unwrap_or(topology.access);
    if access == Rate::ZERO {
        return invalid(format!("{name}: the access link's rate must be more than zero"));
    }
    let way = topology.way(read, &name)?;
    let rtt = read.get("flow.rtt").unwrap_or(way.rtt);
    if rtt < way.inner {
        let inner = way.inner;
        return invalid(format!("{name}: flow.rtt ({rtt}) is less than its path takes ({inner})"));
    }
    let (from, to) = ends(read, topology, &name, &way, access, rtt)?;
    let access = match &from {
        End::Own { link, .. } => link.rate,
        End::Shared(at) => topology.interface_rate(*at),
    };
    let protocol = read.text("flow.protocol");
    let Some(row) = language.transport(&protocol) else {
        return invalid(format!("{name}: there is no protocol {protocol:?}"));
    };
    // What other flows send over a machine's interface a sender does not know.
    let is_own = matches!(from, End::Own { .. });
    let is_access_narrow = is_own && topology.is_nowhere_slower(&name, &way, access);
    let path =
        PathFacts { protocol: &protocol, application: &application, access, is_access_narrow, rtt };
    let transport = (row.read)(read, &path)?;
    if let Some(reason) = transport.refuses(&application) {
        return invalid(format!("{name}: {reason}"));
    }
    if matches!(to, Destination::Group(_)) && !transport.reaches_groups() {
        return invalid(format!("{name}: {protocol} reaches one receiver, not a group"));
    }
    let paths = paths(read, topology, &name, &way)?;
    if !paths.is_empty() && !transport.has_paths() {
        return invalid(format!("{name}: {protocol} has one path; leave flow.paths out"));
    }
    let subflows = topology.subflows(read, &name, &way)?;
    if !subflows.is_empty() && row.name != "TCP" {
        return invalid(format!("{name}: only TCP has subflows; leave flow.subflows out"));
    }
    let class = u8::try_from(read.count("flow.class")).unwrap_or(u8::MAX);
    let weight: Option<f64> = read.get("flow.weight");
    if weight.is_some_and(|weight| !(weight > 0.0 && weight.is_finite())) {
        return invalid(format!("{name}: flow.weight must be a number above zero"));
    }
    let radio: Option<Rate> = read.get("flow.radio");
    if radio.is_some_and(|radio| radio == Rate::ZERO || radio == Rate::MAX) {
        return invalid(format!("{name}: flow.radio must be a rate above zero"));
    }
    let facts = FlowFacts { weight, radio, length: None };
    Ok(FlowSpec { name, from, to, start, transport, application, class, facts, paths, subflows })
}

/// The interfaces that `flow.paths` names: of the flow's machines, and none twice.
fn paths(
    read: &Reader<'_>,
    topology: &Topology,
    name: &str,
    way: &Way,
) -> Result<Vec<InterfaceIndex>, ScenarioError> {
    let ends = [way.from.interface, way.to.interface];
    let mut used: Vec<_> = ends.into_iter().flatten().collect();
    let mut paths = Vec::new();
    for text in read.list("flow.paths") {
        let place = topology.place(name, "flow.paths", &text, None)?;
        let is_ours = |at: &InterfaceIndex| ends.iter().flatten().any(|e| e.machine == at.machine);
        let Some(at) = place.interface.filter(is_ours) else {
            return invalid(format!(
                "{name}: flow.paths: {text:?} is no interface of the flow's hosts"
            ));
        };
        if used.contains(&at) {
            return invalid(format!("{name}: flow.paths: {text:?} has a path already"));
        }
        used.push(at);
        paths.push(at);
    }
    if paths.len() >= MAX_OPEN_PATHS {
        return invalid(format!("{name}: a connection has {MAX_OPEN_PATHS} paths at most"));
    }
    Ok(paths)
}

/// The ends of a flow. What the links between the routers do not take of the round-trip time, the
/// links of its own hosts take.
fn ends(
    read: &Reader<'_>,
    topology: &Topology,
    name: &str,
    way: &Way,
    access: Rate,
    rtt: Duration,
) -> Result<(End, Destination), ScenarioError> {
    let own = [way.from.interface.is_none(), way.group.is_none() && way.to.interface.is_none()];
    if !own[0] {
        for key in ["flow.access", "flow.loss"] {
            if read.sets(key) {
                return invalid(format!(
                    "{name}: {key} is of a sender's own link; a host has those of its [[link]]"
                ));
            }
        }
    }
    let left = rtt - way.inner;
    let delay = match own {
        [true, true] => left / 2,
        [false, false] if left > Duration::ZERO => {
            return invalid(format!(
                "{name}: flow.rtt ({rtt}) differs from its path's ({}): both hosts have links of \
                 their own",
                way.inner
            ));
        }
        _ => left,
    };
    let from = match way.from.interface {
        Some(at) => End::Shared(at),
        None => {
            let loss = read.get("flow.loss").unwrap_or(Loss::None);
            let jitter = topology.jitter;
            let link = LinkConfig { rate: access, delay, jitter, loss, ..LinkConfig::default() };
            End::Own { router: way.from.vertex, link: link.into() }
        }
    };
    let to = match (way.group, way.to.interface) {
        (Some(group), _) => Destination::Group(group),
        (None, Some(at)) => Destination::One(End::Shared(at)),
        (None, None) => {
            let link = LinkConfig { delay, ..LinkConfig::default() };
            Destination::One(End::Own { router: way.to.vertex, link: link.into() })
        }
    };
    Ok((from, to))
}
