use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fontis::udp::Clock;
use fontis_net::{LinkConfig, LinkStats};
use fontis_sim::{Experiment, FlowSpec};

use super::emulator::Emulator;
use super::error::TestbedError;
use super::namespace::Namespace;
use super::shell::SuperPackets;
use super::tun::{Interface, Tun};
use super::way::{Flows, Route, SIDE, Way};
use crate::lateness::Lateness;

/// A namespace with an address for every sender, one with an address for every receiver, and between them the links of
/// an experiment.
///
/// The kernels of all senders are one, and those of all receivers: what they share is the machine, not a queue, since
/// their interface waits for nobody.
#[derive(Debug)]
pub(super) struct Network {
    senders: Namespace,
    receivers: Namespace,
    interfaces: [Tun; 2],
    mtu: u32,
}

/// A network whose links are at work.
#[derive(Debug)]
pub(super) struct Running {
    emulator: Emulator,
    /// Where each link of the experiment is: its direction and its place there.
    links: Vec<(usize, usize)>,
}

/// The most flows that addresses are numbered for.
const MOST_FLOWS: usize = 10_000;

/// The addresses of a flow's sender and receiver.
pub(super) fn addresses(flow: usize) -> [IpAddr; 2] {
    let number = flow as u16 + 1;
    [number, number | SIDE].map(|host| {
        let [high, low] = host.to_be_bytes();
        // 10.0.0.0/8 is for private networks (RFC 1918).
        Ipv4Addr::new(10, 77, high, low).into()
    })
}

fn addresses6(flow: usize) -> [IpAddr; 2] {
    let number = flow as u16 + 1;
    let address = |host| Ipv6Addr::new(0xfd66, 0x6f6e, 0x7469, 0x7373, 0, 0, 0, host).into();
    [number, number | SIDE].map(address)
}

impl Network {
    /// Makes the namespaces and interfaces of an experiment.
    pub(super) fn new(experiment: &Experiment, mtu: u32) -> Result<Self, TestbedError> {
        let flows = experiment.flows.len();
        if flows > MOST_FLOWS {
            return Err(TestbedError::Unsupported(format!(
                "{flows} flows are more than the {MOST_FLOWS} that a testbed takes"
            )));
        }
        let (senders, receivers) = (Namespace::new()?, Namespace::new()?);
        let side = |namespace: &Namespace, side: usize| {
            let both = |flow| [(addresses(flow)[side], 16), (addresses6(flow)[side], 64)];
            let addresses: Vec<(IpAddr, u8)> = (0..flows).flat_map(both).collect();
            let (name, addresses) = ("fontis0", &addresses[..]);
            let interface = Interface { name, addresses, mtu, default_route: false, offload: true };
            Tun::open(namespace, &interface)
        };
        let interfaces = [side(&senders, 0)?, side(&receivers, 1)?];
        Ok(Self { senders, receivers, interfaces, mtu })
    }

    /// The namespace of the senders.
    pub(super) const fn senders(&self) -> &Namespace {
        &self.senders
    }

    /// The largest packet.
    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Sets kernel parameters on both sides; gives those that could not be set.
    pub(super) fn set_parameters(
        &self,
        parameters: &[(&'static str, String)],
    ) -> Result<Vec<&'static str>, TestbedError> {
        self.senders.set_parameters(parameters)?;
        self.receivers.set_parameters(parameters)
    }

    /// Lets the links begin; their time is that of `clock`. The namespaces remain.
    pub(super) fn start(
        self,
        experiment: &Experiment,
        clock: Clock,
    ) -> Result<(Namespace, Namespace, Running), TestbedError> {
        let mut links = vec![(0, 0); experiment.links.len()];
        let mut directions = [Direction::default(), Direction::default()];
        for (index, link) in experiment.links.iter().enumerate() {
            let side = usize::from(link.from > link.to);
            links[index] = (side, directions[side].add(&link.name, &link.config));
        }
        for flow in &experiment.flows {
            for (side, direction) in directions.iter_mut().enumerate() {
                let links = way_of(experiment, &links, flow, side)?;
                let own = [("access", &flow.access), ("back", &flow.back)][side];
                direction.add_route(flow, own, links);
            }
        }
        let ways = directions.map(|direction| direction.way(experiment.seed));
        let [a, b] = self.interfaces;
        let emulator = Emulator::start(clock, a, b, ways)?;
        Ok((self.senders, self.receivers, Running { emulator, links }))
    }
}

/// The links between the routers of a flow, towards the receiver (side 0) or back, in the order of crossing.
fn way_of(
    experiment: &Experiment,
    links: &[(usize, usize)],
    flow: &FlowSpec,
    side: usize,
) -> Result<Vec<usize>, TestbedError> {
    let (mut at, to) = if side == 0 { (flow.from, flow.to) } else { (flow.to, flow.from) };
    let mut way = Vec::new();
    while at != to {
        // Routers stand in a row: every link leads from one to the next.
        let next = experiment.links.iter().position(|link| {
            link.from == at && if side == 0 { link.to == at + 1 } else { link.to + 1 == at }
        });
        let Some(next) = next else {
            return Err(TestbedError::Unsupported(format!(
                "{}: no link leads from router {at} towards router {to}",
                flow.name
            )));
        };
        way.push(links[next].1);
        at = experiment.links[next].to;
    }
    Ok(way)
}

/// A way under construction.
#[derive(Default)]
struct Direction {
    links: Vec<(String, LinkConfig)>,
    routes: Vec<Route>,
}

impl Direction {
    fn add(&mut self, name: &str, config: &LinkConfig) -> usize {
        self.links.push((name.to_owned(), config.clone()));
        self.links.len() - 1
    }

    fn add_route(&mut self, flow: &FlowSpec, own: (&str, &LinkConfig), mut links: Vec<usize>) {
        let (side, config) = own;
        if *config != LinkConfig::default() {
            let name = format!("{}/{side}", flow.name);
            links.insert(0, self.add(&name, config));
        }
        self.routes.push(Route { links, class: flow.class });
    }

    fn way(self, seed: u64) -> Way {
        let configs: Vec<&LinkConfig> = self.links.iter().map(|(_, config)| config).collect();
        let whole = SuperPackets::Auto.whole(&configs);
        Way::new(seed, self.links, self.routes, Flows::Address, whole)
    }
}

impl Running {
    /// What a link of the experiment has counted up to now, packets that wait in it, and its rate.
    pub(super) fn link(&self, index: usize) -> (LinkStats, usize, fontis_base::Rate) {
        let (side, place) = self.links[index];
        let now = self.emulator.now();
        let mut lane = self.emulator.lane(side);
        let link = lane.way.link(place);
        (link.observe(now), link.queue_len(), link.rate())
    }

    /// Bytes at the IP layer that have reached a flow's receiver.
    pub(super) fn carried(&self, flow: usize) -> u64 {
        self.emulator.lane(0).way.carried(flow)
    }

    /// How long after their due times packets were released, towards the receivers and back.
    pub(super) fn lateness(&self) -> [Lateness; 2] {
        [0, 1].map(|side| self.emulator.lane(side).lateness())
    }

    /// Packets that the system did not take, and packets of no flow.
    pub(super) fn astray(&self) -> (u64, u64) {
        let count = |side| {
            let lane = self.emulator.lane(side);
            (lane.unsent(), lane.way.strangers)
        };
        let (a, b) = (count(0), count(1));
        (a.0 + b.0, a.1 + b.1)
    }

    /// Whether a direction has ended before its time.
    pub(super) fn has_failed(&self) -> bool {
        self.emulator.has_failed()
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<(), TestbedError> {
        self.emulator.stop()
    }
}
