use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use fontis::udp::Clock;
use fontis_net::{LinkConfig, LinkStats};
use fontis_sim::{Capture, Experiment, FlowSpec, LinkSpec, Subflow};

use super::emulator::Emulator;
use super::error::TestbedError;
use super::namespace::Namespace;
use super::shell::SuperPackets;
use super::tun::{Interface, Tun};
use super::way::{Flows, Route, SIDE, Tap, Way};
use crate::lateness::Lateness;

/// A namespace with an address for every sender, one with an address for every receiver, and
/// between them the links of an experiment.
///
/// All senders share a kernel, as do all receivers. They share the machine but no queue, since
/// their interface queues no packets.
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
    /// The direction and the place of each link of the experiment.
    links: Vec<(usize, usize)>,
}

/// The most flows that addresses are numbered for.
const MOST_FLOWS: usize = 10_000;
/// The names of the interfaces.
pub(super) const INTERFACE: &str = "fontis0";

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

/// The subflows beside the first of a flow of Multipath TCP, by their flow and their places in it.
/// Their addresses have the numbers behind those of all flows.
fn beside(experiment: &Experiment) -> impl Iterator<Item = (usize, usize)> {
    let flows = experiment.flows.iter().enumerate();
    flows.flat_map(|(flow, spec)| (1..spec.subflows.len()).map(move |subflow| (flow, subflow)))
}

/// The addresses of the subflows beside the first of a flow.
pub(super) fn addresses_beside(experiment: &Experiment, flow: usize) -> Vec<[IpAddr; 2]> {
    let numbers = (experiment.flows.len()..).zip(beside(experiment));
    numbers.filter(|(_, (of, _))| *of == flow).map(|(number, _)| addresses(number)).collect()
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
        if experiment.flows.iter().filter(|flow| flow.subflows.len() > 1).count() > 1 {
            return Err(TestbedError::Unsupported(
                "only one flow of a run may have several subflows: the kernel's path manager would mix them".to_owned(),
            ));
        }
        let (senders, receivers) = (Namespace::new()?, Namespace::new()?);
        let hosts = flows + beside(experiment).count();
        let side = |namespace: &Namespace, side: usize| {
            let both = |flow| [(addresses(flow)[side], 16), (addresses6(flow)[side], 64)];
            let addresses: Vec<(IpAddr, u8)> = (0..hosts).flat_map(both).collect();
            let (name, addresses) = (INTERFACE, &addresses[..]);
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

    /// Lets the links begin; their time is that of `clock`. The namespaces remain. A capture sees
    /// what senders send and receive.
    pub(super) fn start(
        self,
        experiment: &Experiment,
        clock: Clock,
        capture: Option<Arc<Mutex<Capture>>>,
    ) -> Result<(Namespace, Namespace, Running), TestbedError> {
        let routes = routes(experiment)?;
        let sides = sides(experiment, &routes)?;
        let mut directions = [Direction::default(), Direction::default()];
        let add = |(link, side): (&LinkSpec, &usize)| {
            (*side, directions[*side].add(&link.name, &link.config))
        };
        let links: Vec<(usize, usize)> = experiment.links.iter().zip(&sides).map(add).collect();
        let firsts = (0..experiment.flows.len()).map(|flow| (flow, 0));
        for ((flow, subflow), routes) in firsts.chain(beside(experiment)).zip(routes) {
            let flow = &experiment.flows[flow];
            for (side, (direction, route)) in directions.iter_mut().zip(routes).enumerate() {
                let (name, config) = [("access", &*flow.access), ("back", &*flow.back)][side];
                let name = match subflow {
                    0 => format!("{}/{name}", flow.name),
                    _ => format!("{}/{name}.{}", flow.name, subflow + 1),
                };
                let route = route.iter().map(|link| links[*link].1).collect();
                direction.add_route(flow.class, (name, config), route);
            }
        }
        let mut ways = directions.map(|direction| direction.way(experiment.seed));
        if let Some(capture) = capture {
            for (way, tap) in ways.iter_mut().zip([Tap::Begin, Tap::End]) {
                way.watch(tap, Arc::clone(&capture));
            }
        }
        let [a, b] = self.interfaces;
        let emulator = Emulator::start(clock, a, b, ways)?;
        Ok((self.senders, self.receivers, Running { emulator, links }))
    }
}

/// The links that each flow's packets cross towards the receiver, and back; behind them those of
/// further subflows.
fn routes(experiment: &Experiment) -> Result<Vec<[Vec<usize>; 2]>, TestbedError> {
    let route = |flow: &FlowSpec, from, to| {
        experiment.route(from, to).ok_or_else(|| {
            TestbedError::Unsupported(format!(
                "{}: no link leads from router {from} towards router {to}",
                flow.name
            ))
        })
    };
    let of_subflow = |subflow: &Subflow| [subflow.forth.clone(), subflow.back.clone()];
    let firsts = experiment.flows.iter().map(|flow| match flow.subflows.first() {
        Some(first) => Ok(of_subflow(first)),
        None => Ok([route(flow, flow.from, flow.to)?, route(flow, flow.to, flow.from)?]),
    });
    let others =
        beside(experiment).map(|(flow, subflow)| &experiment.flows[flow].subflows[subflow]);
    firsts.chain(others.map(|subflow| Ok(of_subflow(subflow)))).collect()
}

/// The side of each link: towards the receivers, or back. Each side is a thread.
fn sides(experiment: &Experiment, routes: &[[Vec<usize>; 2]]) -> Result<Vec<usize>, TestbedError> {
    let mut sides = vec![None; experiment.links.len()];
    for routes in routes {
        for (side, route) in routes.iter().enumerate() {
            for link in route {
                if *sides[*link].get_or_insert(side) != side {
                    return Err(TestbedError::Unsupported(format!(
                        "link {:?} carries data of one flow and answers of another; on the testbed \
                         all flows must go one way over a link",
                        experiment.links[*link].name
                    )));
                }
            }
        }
    }
    Ok(sides.into_iter().map(|side| side.unwrap_or(0)).collect())
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

    fn add_route(&mut self, class: u8, own: (String, &LinkConfig), mut links: Vec<usize>) {
        let (name, config) = own;
        if *config != LinkConfig::default() {
            links.insert(0, self.add(&name, config));
        }
        self.routes.push(Route { links, class });
    }

    fn way(self, seed: u64) -> Way {
        let configs: Vec<&LinkConfig> = self.links.iter().map(|(_, config)| config).collect();
        let whole = SuperPackets::Auto.whole(&configs);
        Way::new(seed, self.links, self.routes, Flows::Address, whole)
    }
}

impl Running {
    /// The present counters of a link of the experiment, and its waiting packets.
    pub(super) fn link(&self, index: usize) -> (LinkStats, usize) {
        let (side, place) = self.links[index];
        let now = self.emulator.now();
        let mut lane = self.emulator.lane(side);
        let link = lane.way.link(place);
        (link.observe(now), link.queue_len())
    }

    /// Bytes at the IP layer that have reached a flow's receiver.
    pub(super) fn carried(&self, flow: usize) -> u64 {
        self.emulator.lane(0).way.carried(flow)
    }

    /// The lateness of packets, towards the receivers and back.
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

    /// Returns true if a direction has ended early.
    pub(super) fn has_failed(&self) -> bool {
        self.emulator.has_failed()
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<(), TestbedError> {
        self.emulator.stop()
    }
}
