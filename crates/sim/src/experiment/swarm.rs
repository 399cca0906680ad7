//! The run and the recording of a swarm.

use fontis_base::{Duration, Time};
use fontis_trace::swarm::{BlockWay, of_swarm};
use fontis_trace::{Detail, Trace};

use crate::experiment::spec::Experiment;
use crate::recording::Recording;
use crate::swarm::{SwarmFate, SwarmOutcome, SwarmSpec, SwarmWorld};

/// Runs the swarm of an experiment to its end, or to that of the experiment's time; `None` if
/// `stop` said so, which is asked at each sample.
pub(super) fn run(
    experiment: &Experiment,
    spec: &SwarmSpec,
    mut stop: impl FnMut() -> bool,
) -> Option<(SwarmOutcome, u64)> {
    let mut world = SwarmWorld::new(spec, experiment.seed);
    let end = Time::ZERO + experiment.duration;
    let mut at = Time::ZERO;
    while at < end && !world.is_over() {
        at = (at + experiment.sample.max(Duration::from_nanos(1))).min(end);
        world.run_to(at);
        if stop() {
            return None;
        }
    }
    let events = world.events();
    Some((world.into_outcome(), events))
}

/// The name of a node in recordings.
pub fn name(node: u32) -> String {
    match node {
        0 => "origin".to_owned(),
        node => format!("peer {node}"),
    }
}

/// The ways of all blocks, for people to look at. `title` says where the swarm ran.
pub fn trace(spec: &SwarmSpec, outcome: &SwarmOutcome, title: &str, detail: Detail) -> Trace {
    let number = |node: u32| u16::try_from(node).unwrap_or(u16::MAX);
    let ways = outcome.transfers.iter().map(|one| BlockWay {
        from: number(one.from),
        to: number(one.to),
        block: one.block,
        begun: one.begun,
        ended: one.ended,
        came: one.fate != SwarmFate::Cut,
        wrong: one.fate == SwarmFate::Wrong,
    });
    let names: Vec<String> = (0..=spec.peers.len() as u32).map(name).collect();
    let size = u32::try_from(spec.block.as_bytes()).unwrap_or(u32::MAX);
    of_swarm(title, &names, size, ways.collect(), detail)
}

/// The recording of what came of a swarm.
pub fn record(spec: &SwarmSpec, outcome: &SwarmOutcome, events: u64) -> Recording {
    let mut recording = Recording::new();
    recording.events = events;
    for one in &outcome.transfers {
        recording.transfer.push([
            one.begun.as_secs_f64().into(),
            one.ended.as_secs_f64().into(),
            u64::from(one.from).into(),
            u64::from(one.to).into(),
            u64::from(one.block).into(),
            one.fate.name().into(),
        ]);
    }
    let mut happened = Vec::new();
    for (node, peer) in (1..).zip(&spec.peers) {
        happened.push((peer.joins, node, "start"));
    }
    let done = (1..).zip(&outcome.done);
    happened.extend(done.filter_map(|(node, at)| Some(((*at)?, node, "completed"))));
    happened.extend(outcome.left.iter().map(|(node, at)| (*at, *node, "left")));
    happened.extend(outcome.named.iter().map(|(node, at)| (*at, *node, "named")));
    happened.sort_unstable();
    for (at, node, event) in happened {
        let name = name(node);
        recording.event.push([at.as_secs_f64().into(), name.as_str().into(), event.into()]);
    }
    for (metric, value) in metrics(spec, outcome) {
        recording.put(metric, "all", value);
    }
    recording
}

/// What sums a swarm up.
fn metrics(spec: &SwarmSpec, outcome: &SwarmOutcome) -> Vec<(&'static str, f64)> {
    let count = spec.peers.len() as f64;
    let (file, all) = (f64::from(spec.blocks), f64::from(spec.blocks) * count);
    let stays = |node: u32| !outcome.left.contains_key(&node);
    let staying = (1..).zip(&outcome.done).filter(|(node, _)| stays(*node)).map(|(_, done)| done);
    let (staying, done) =
        staying.fold((0u32, 0u32), |(n, d), done| (n + 1, d + u32::from(done.is_some())));
    let mut by_node = vec![0u64; spec.peers.len() + 1];
    for one in outcome.transfers.iter().filter(|one| one.fate == SwarmFate::Came) {
        by_node[one.from as usize] += 1;
    }
    let came: u64 = by_node.iter().sum();
    let most = by_node.iter().skip(1).max().copied().unwrap_or(0);
    let mut metrics = vec![
        ("completed", f64::from(done) / f64::from(staying.max(1))),
        ("swarm_bound", spec.bound()),
        ("swarm_origin_share", outcome.sent_by(0) as f64 / file),
        ("swarm_sent_share", outcome.sent() as f64 / all),
    ];
    metrics.extend(outcome.cost.map(|cost| ("swarm_vain_share", cost.vain / all)));
    metrics.push(("swarm_top_share", most as f64 / (came.max(1)) as f64));
    if let Some(cost) = outcome.cost {
        metrics.push(("swarm_refused", cost.refused as f64 / all));
        metrics.push(("swarm_messages", cost.messages as f64 / all));
    }
    let (median, late, last) = (outcome.quantile(0.5), outcome.quantile(0.99), outcome.last());
    if last.is_finite() {
        metrics.extend([
            ("swarm_time", last),
            ("swarm_time_ratio", last / spec.bound()),
            ("swarm_median", median),
            ("swarm_p99", late),
            ("swarm_spread", late / median),
        ]);
    }
    metrics
}
