//! The network of one runner.

use std::net::IpAddr;
use std::sync::Arc;

use fontis::udp::Clock;
use fontis_base::{Duration, Time};
use fontis_net::{FlowFacts, Limit, LinkConfig, QueueKind};
use fontis_sim::Experiment;
use fontis_sim::app::Application;
use fontis_sim::app::source::Pattern;
use fontis_sim::experiment::spec::{Destination, End, FlowSpec, LinkSpec, Subflow};
use fontis_sim::host::rows::datagrams::Datagrams;

use super::path::RacePath;
use super::runner::Runner;
use crate::testbed::error::TestbedError;
use crate::testbed::namespace::Namespace;
use crate::testbed::network::{Network, Running, Site};
use crate::testbed::plan::{addresses, addresses_beside};

/// What a runner's network is made of.
pub(super) struct Setting<'a> {
    pub(super) paths: &'a [RacePath],
    pub(super) buffer: Option<Limit>,
    pub(super) queue: QueueKind,
    pub(super) limit: Duration,
    pub(super) seed: u64,
}

/// The paths of one runner, and its two hosts. Each runner has its own, because the kernel's path
/// manager is one for a namespace.
pub(super) struct Lane {
    sites: Vec<Site>,
    running: Running,
    experiment: Experiment,
}

impl Lane {
    /// Lets the paths of a runner begin.
    pub(super) fn start(
        runner: Runner,
        setting: &Setting<'_>,
        clock: Clock,
    ) -> Result<Self, TestbedError> {
        let experiment = experiment(runner, setting);
        let network = Network::new(&experiment, 1500)?;
        let room = format!("4096 131072 {}", window(setting.paths).max(8 << 20));
        network.set_parameters(&[
            ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("net/ipv4/tcp_wmem", room.clone()),
            ("net/ipv4/tcp_rmem", room),
        ])?;
        let (sites, running) = network.start(&experiment, clock, None)?;
        Ok(Self { sites, running, experiment })
    }

    /// Where sender and receiver are.
    pub(super) fn sides(&self) -> [&Namespace; 2] {
        let (sender, receivers) = Site::ends(&self.sites, &self.experiment, 0);
        [sender.namespace, receivers[0].namespace]
    }

    /// The sender's address, and the receiver's, one for each path.
    pub(super) fn addresses(&self) -> (IpAddr, Vec<IpAddr>) {
        let [from, to] = addresses(0);
        let beside = addresses_beside(&self.experiment, 0);
        (from, [to].into_iter().chain(beside.into_iter().map(|[_, to]| to)).collect())
    }

    /// Whether its links have ended early.
    pub(super) fn has_failed(&self) -> bool {
        self.running.has_failed()
    }

    /// The share of the packets towards the receiver that were lost at random, and in queues.
    pub(super) fn lost(&self) -> [f64; 2] {
        let forth = self.experiment.flows[0].subflows.len();
        let (mut entered, mut lost, mut dropped) = (0, 0, 0);
        for link in 0..forth {
            let (stats, _) = self.running.link(link);
            entered += stats.entered.packets;
            lost += stats.dropped.loss.packets;
            dropped += stats.dropped.queue.packets;
        }
        [lost, dropped].map(|count| count as f64 / entered.max(1) as f64)
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<(), TestbedError> {
        self.running.stop()
    }
}

/// Bytes that may be under way: eight times the paths'.
pub(super) fn window(paths: &[RacePath]) -> u64 {
    let bytes: u64 = paths.iter().map(|path| path.rate.bdp(path.rtt).as_bytes()).sum();
    (8 * bytes).max(4 << 20)
}

/// Two routers for each path, a link there and one back; a flow has them all.
fn experiment(runner: Runner, setting: &Setting<'_>) -> Experiment {
    let Setting { paths, buffer, queue, limit, seed } = *setting;
    let spec = |path: usize, forth: bool, config: LinkConfig| LinkSpec {
        // Every runner has other losses.
        name: format!("{runner} {path}{}", if forth { "" } else { " back" }),
        from: 2 * path + usize::from(!forth),
        to: 2 * path + usize::from(forth),
        config,
        bottleneck: forth,
    };
    let (mut links, mut backs) = (Vec::new(), Vec::new());
    for (number, path) in paths.iter().enumerate() {
        let [forth, back] = path.links(buffer, queue);
        links.push(spec(number, true, forth));
        backs.push(spec(number, false, back));
    }
    links.append(&mut backs);
    let count = paths.len();
    let subflow = |path: usize| Subflow { forth: vec![path], back: vec![count + path] };
    let flow = FlowSpec {
        name: runner.to_string(),
        from: End::Own { router: 0, link: Arc::default() },
        to: Destination::One(End::Own { router: 1, link: Arc::default() }),
        start: Time::ZERO,
        transport: Arc::new(Datagrams),
        application: Application::Source(Pattern::Bulk),
        class: 0,
        facts: FlowFacts::default(),
        paths: Vec::new(),
        subflows: (0..count).map(subflow).collect(),
    };
    Experiment {
        seed,
        vertices: 2 * count,
        machines: Vec::new(),
        groups: Vec::new(),
        links,
        flows: vec![flow],
        swarm: None,
        duration: limit,
        warmup: Duration::ZERO,
        sample: Duration::from_millis(100),
        controller: Default::default(),
        measure: None,
        until_done: true,
        wire: true,
    }
}
