use std::collections::BTreeMap;

use fontis_base::{Duration, Rate, Size, Stream, Time};
use fontis_net::{LinkConfig, Loss};

use super::reader::{Reader, senseless};
use super::topology::Topology;
use super::transport::transport;
use crate::app::source::Pattern;
use crate::app::source::exponential;
use crate::experiment::{Application, FlowSpec, Transport};
use crate::host::tcp::Requests;
use crate::scenario::error::ScenarioError;
use crate::scenario::value::Setting;

/// The most flows in a run.
const MOST_FLOWS: u64 = 1_000_000;

/// Adds the flows of a kind.
pub(super) fn add_flows(
    read: &Reader<'_>,
    topology: &Topology,
    kind: usize,
    seed: u64,
    duration: Duration,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), ScenarioError> {
    let count = read.count("flow.count");
    if count + flows.len() as u64 > MOST_FLOWS {
        return senseless(format!("there are more than {MOST_FLOWS} flows"));
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
                return senseless("short-flows need flow.rate and flow.size above zero".to_owned());
            }
            let gap = rate.time_for(mean);
            let end = Time::ZERO + duration;
            let mut at = start;
            loop {
                at += exponential(&mut starts, gap);
                if at >= end {
                    break;
                }
                if plans.len() as u64 + flows.len() as u64 >= MOST_FLOWS {
                    return senseless(format!("there are more than {MOST_FLOWS} short flows"));
                }
                let size = (-libm::log(1.0 - starts.unit()) * mean as f64) as u64;
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
                    return senseless(format!("flow.list: {entry:?} must be TIME:SIZE"));
                };
                let object = Pattern::Object { size: size.as_bytes() };
                plans.push((start + at, Application::Source(object)));
            }
        }
        _ => {
            let application = application(read, &app);
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
            None => flow(read, topology, name, start, application)?,
        };
        first.get_or_insert_with(|| spec.clone());
        flows.push(spec);
    }
    Ok(())
}

/// How many flows a kind stands for.
fn count_of(flow: &BTreeMap<String, Setting>) -> u64 {
    flow.get("count").and_then(|count| count.one().parse().ok()).unwrap_or(1)
}

fn application(read: &Reader<'_>, app: &str) -> Application {
    let rate = read.get("flow.rate").unwrap_or(Rate::ZERO);
    let piece = read.size("flow.piece").clamp(1, 65_000) as u32;
    Application::Source(match app {
        "object" => Pattern::Object { size: read.size("flow.size") },
        "constant" => Pattern::ConstantRate { rate, piece },
        "poisson" => Pattern::Poisson { rate, piece },
        "on-off" => {
            let (on, off) = (read.duration("flow.on"), read.duration("flow.off"));
            Pattern::OnOff { rate, piece, on, off }
        }
        "requests" => {
            let count = read.count("flow.requests");
            return Application::Requests(Requests {
                request: read.size("flow.request").max(1),
                response: read.size("flow.size"),
                think: read.duration("flow.think"),
                count: (count > 0).then_some(count),
            });
        }
        _ => Pattern::Bulk,
    })
}

fn flow(
    read: &Reader<'_>,
    topology: &Topology,
    name: String,
    start: Time,
    application: Application,
) -> Result<FlowSpec, ScenarioError> {
    let overload = read.get::<f64>("topology.overload").filter(|overload| *overload > 0.0);
    let all: u64 = read.settings.flows.iter().map(count_of).sum();
    let shared = overload.map(|overload| topology.rate.scale(overload / all.max(1) as f64));
    let rate = read.get("flow.access").or(shared).unwrap_or(topology.access);
    if rate == Rate::ZERO {
        return senseless(format!("{name}: the access link's rate must be more than zero"));
    }
    let way = topology.way(read, &name)?;
    let rtt = read.get("flow.rtt").unwrap_or(way.rtt);
    let transport = transport(read, &read.text("flow.protocol"), rate, rtt)?;
    let is_datagrams = matches!(transport, Transport::Datagrams);
    let is_endless = matches!(application, Application::Source(Pattern::Bulk));
    if is_datagrams && (is_endless || matches!(application, Application::Requests(_))) {
        return senseless(format!(
            "{name}: datagrams have no control of their own; use app constant, poisson or on-off"
        ));
    }
    let is_dfcp = matches!(transport, Transport::Dfcp(..) | Transport::Published(..));
    let of_object = matches!(application, Application::Source(Pattern::Object { .. }));
    if is_dfcp && !of_object && !is_endless {
        return senseless(format!("{name}: DFCP transports bulk and object only"));
    }
    if rtt < way.inner {
        let inner = way.inner;
        return senseless(format!(
            "{name}: flow.rtt ({rtt}) is less than its path takes ({inner})"
        ));
    }
    let subflows = topology.subflows(read, &name, &way)?;
    if !subflows.is_empty() && !matches!(transport, Transport::Tcp(_)) {
        return senseless(format!("{name}: only TCP has subflows; leave flow.subflows out"));
    }
    let delay = (rtt - way.inner) / 2;
    let access = LinkConfig {
        rate,
        delay,
        jitter: topology.jitter,
        loss: read.get("flow.loss").unwrap_or(Loss::None),
        ..LinkConfig::default()
    };
    let back = LinkConfig { delay, ..LinkConfig::default() };
    Ok(FlowSpec {
        name,
        from: way.from,
        to: way.to,
        start,
        transport,
        application,
        access: access.into(),
        back: back.into(),
        class: u8::try_from(read.count("flow.class")).unwrap_or(u8::MAX),
        subflows,
    })
}
