use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};

use fontis::udp::Clock;
use fontis_net::{LinkConfig, LinkStats};
use fontis_sim::Experiment;
use fontis_sim::experiment::spec::{Destination, End, FlowSpec, InterfaceIndex, LinkSpec, Subflow};
use fontis_sim::world::observers::capture::Capture;

use super::emulator::Emulator;
use super::error::TestbedError;
use super::namespace::Namespace;
use super::plan::{
    OWN_SITES, Plan, RECEIVERS, SENDERS, addresses, beside, interface_address, interface_name,
    path_ends, port_of, receiver,
};
use super::shell::SuperPackets;
use super::tun::{Interface, Tun};
use super::way::{Flows, Hop, Route, Tap, Way};
use crate::lateness::Lateness;

/// A namespace with an address for every sender of a flow's own, one with an address for every such
/// receiver, one for each machine with an interface for each of its links, and between them the
/// links of an experiment.
///
/// The kernels of all senders are one, and those of all receivers: they share the machine, not a
/// queue, since their interface waits for nobody.
#[derive(Debug)]
pub(super) struct Network {
    sites: Vec<Site>,
    ports: Vec<Tun>,
    mtu: u32,
}

/// The machine of one end of flows, or of several.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) namespace: Namespace,
}

/// A network whose links are at work.
#[derive(Debug)]
pub(super) struct Running {
    emulator: Emulator,
    /// Where each link of the experiment is: its way and its place there.
    links: Vec<(usize, usize)>,
    /// Whether one way carries both directions.
    both_sides: bool,
}

/// One end of a flow on the testbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndSite<'a> {
    pub(super) namespace: &'a Namespace,
    /// The address of the flow's end; of a group's member, that of its interface.
    pub(super) address: IpAddr,
}

/// The most flows that addresses are numbered for.
const MOST_FLOWS: usize = 10_000;

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
        let is_multipath = experiment.flows.iter().any(|flow| !flow.subflows.is_empty());
        if is_multipath && !experiment.machines.is_empty() {
            return Err(TestbedError::Unsupported(
                "subflows and hosts with several flows do not go together".to_owned(),
            ));
        }
        let plan = Plan::new(experiment);
        let (mut sites, mut ports) = (Vec::new(), Vec::new());
        for interfaces in &plan.sites {
            let site = Site { namespace: Namespace::new()? };
            for (number, port) in interfaces.iter().enumerate() {
                let name = interface_name(number);
                let interface = Interface {
                    name: &name,
                    addresses: &port.addresses,
                    mtu,
                    default_route: false,
                    host_routes: &port.routes,
                    offload: true,
                };
                ports.push(Tun::open(&site.namespace, &interface)?);
            }
            sites.push(site);
        }
        Ok(Self { sites, ports, mtu })
    }

    /// The namespace of the flows' own senders.
    pub(super) fn senders(&self) -> &Namespace {
        &self.sites[SENDERS].namespace
    }

    /// The largest packet.
    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Sets kernel parameters everywhere; gives those that could not be set.
    pub(super) fn set_parameters(
        &self,
        parameters: &[(&'static str, String)],
    ) -> Result<Vec<&'static str>, TestbedError> {
        let mut refused = Vec::new();
        for site in &self.sites {
            refused = site.namespace.set_parameters(parameters)?;
        }
        Ok(refused)
    }

    /// Lets the links begin; their time is that of `clock`. The sites remain. A capture sees the
    /// packets that senders send and receive.
    pub(super) fn start(
        self,
        experiment: &Experiment,
        clock: Clock,
        capture: Option<Arc<Mutex<Capture>>>,
    ) -> Result<(Vec<Site>, Running), TestbedError> {
        let both_sides = !experiment.machines.is_empty();
        let (mut ways, links) = match both_sides {
            true => self.one_way(experiment)?,
            false => two_ways(experiment)?,
        };
        if let Some(capture) = capture {
            for ((way, _), tap) in ways.iter_mut().zip([Tap::Begin, Tap::End]) {
                way.watch(tap, Arc::clone(&capture));
            }
        }
        let emulator = Emulator::start(clock, self.ports, ways)?;
        Ok((self.sites, Running { emulator, links, both_sides }))
    }

    /// One way for all links and both directions: a machine may be a sender and a receiver.
    fn one_way(&self, experiment: &Experiment) -> Result<Built, TestbedError> {
        let mut links = LinkRow::default();
        // Both directions of a flow have numbers of their own, one after the other.
        let twice = |config: &LinkConfig| {
            let mut config = config.clone();
            let facts = config.queue_options.flows.iter().flat_map(|facts| [*facts, *facts]);
            config.queue_options.flows = facts.collect();
            config
        };
        let places: Vec<(usize, usize)> = experiment
            .links
            .iter()
            .map(|link| (0, links.add(&link.name, &twice(&link.config))))
            .collect();
        let (mut routes, mut owns) = (Vec::new(), Vec::new());
        for flow in &experiment.flows {
            let own = |links: &mut LinkRow, end: &End, side: &str| {
                let config = end.own_link().filter(|config| **config != LinkConfig::default());
                config.map(|config| links.add(&format!("{}/{side}", flow.name), config))
            };
            let access = own(&mut links, &flow.from, "access");
            let Destination::One(to) = &flow.to else {
                // Members come with the first change of the group.
                routes.extend([Route::of_class(flow.class), Route::of_class(flow.class)]);
                owns.push([access, None]);
                continue;
            };
            let back = own(&mut links, to, "back");
            owns.push([access, back]);
            let ends = [&flow.from, to];
            for ([from, to], own) in [(ends, access), ([to, &flow.from], back)] {
                let mut row: Vec<usize> = own.into_iter().collect();
                row.extend(crossed(experiment, flow, from, to)?);
                let side = usize::from(routes.len() % 2 == 0);
                routes.push(Route::row(&row, port_of(experiment, to, side), flow.class));
            }
        }
        for (number, place) in beside(experiment) {
            let flow = &experiment.flows[number];
            let ends = path_ends(flow, flow.paths[place - 1]);
            for side in [0, 1] {
                let [from, to] = [&ends[side], &ends[1 - side]];
                // The link of a host of the flow's own is one for all of its paths.
                let own = owns[number][side].filter(|_| from.machine().is_none());
                let mut row: Vec<usize> = own.into_iter().collect();
                row.extend(crossed(experiment, flow, from, to)?);
                routes.push(Route::row(&row, port_of(experiment, to, 1 - side), flow.class));
            }
        }
        let ports = (0..self.ports.len()).collect();
        Ok((vec![(links.way(experiment.seed, routes, Flows::BothSides), ports)], places))
    }
}

/// Ways with the ports whose packets they take, and each link's way and place.
type Built = (Vec<(Way, Vec<usize>)>, Vec<(usize, usize)>);

/// A way for each direction, on a thread of its own.
fn two_ways(experiment: &Experiment) -> Result<Built, TestbedError> {
    let routes = routes(experiment)?;
    let sides = sides(experiment, &routes)?;
    let mut rows = [LinkRow::default(), LinkRow::default()];
    let add =
        |(link, side): (&LinkSpec, &usize)| (*side, rows[*side].add(&link.name, &link.config));
    let links: Vec<(usize, usize)> = experiment.links.iter().zip(&sides).map(add).collect();
    let firsts = (0..experiment.flows.len()).map(|flow| (flow, 0));
    let mut built = [Vec::new(), Vec::new()];
    for ((flow, subflow), routes) in firsts.chain(beside(experiment)).zip(routes) {
        let flow = &experiment.flows[flow];
        for (side, route) in routes.iter().enumerate() {
            let (name, config) =
                [("access", own_link(&flow.from)), ("back", own_link(receiver(flow)))][side];
            let name = match subflow {
                0 => format!("{}/{name}", flow.name),
                _ => format!("{}/{name}.{}", flow.name, subflow + 1),
            };
            let mut row: Vec<usize> = route.iter().map(|link| links[*link].1).collect();
            if *config != LinkConfig::default() {
                row.insert(0, rows[side].add(&name, config));
            }
            built[side].push(Route::row(&row, 1 - side, flow.class));
        }
    }
    let ways = rows.into_iter().zip(built).enumerate().map(|(side, (row, routes))| {
        (row.way(experiment.seed, routes, Flows::Address), vec![side])
    });
    Ok((ways.collect(), links))
}

/// The links that packets from one end to another cross, those of machines' interfaces included.
fn crossed(
    experiment: &Experiment,
    flow: &FlowSpec,
    from: &End,
    to: &End,
) -> Result<Vec<usize>, TestbedError> {
    let interface = |end: &End| match end {
        End::Shared(at) => Some(experiment.interface(*at)),
        End::Own { .. } => None,
    };
    let mut links: Vec<usize> = interface(from).map(|spec| spec.out).into_iter().collect();
    let routers = [experiment.router(from), experiment.router(to)];
    links.extend(route(experiment, flow, routers)?);
    links.extend(interface(to).map(|spec| spec.back));
    Ok(links)
}

/// The links that packets from one router to another cross.
fn route(
    experiment: &Experiment,
    flow: &FlowSpec,
    [from, to]: [usize; 2],
) -> Result<Vec<usize>, TestbedError> {
    experiment.route(from, to).ok_or_else(|| {
        TestbedError::Unsupported(format!(
            "{}: no link leads from router {from} towards router {to}",
            flow.name
        ))
    })
}

/// The route of a flow to its group while `members` are the members.
fn group_route(experiment: &Experiment, flow: &FlowSpec, members: &[InterfaceIndex]) -> Route {
    let mut route = Route::of_class(flow.class);
    let router = experiment.router(&flow.from);
    let out = match &flow.from {
        End::Shared(at) => Some(experiment.interface(*at).out),
        // Groups have machines, whose senders have no links of their own but these.
        End::Own { .. } => None,
    };
    let leaves: Vec<usize> = members.iter().map(|at| experiment.interface(*at).back).collect();
    let tree = experiment.graph().tree(router, &leaves);
    out.into_iter().for_each(|link| route.add(None, Hop::Link(link)));
    for link in tree.iter().copied() {
        let from = experiment.links[link].from;
        if from == router {
            route.add(out, Hop::Link(link));
        } else {
            // The link of the tree that leads to where this one begins.
            let before = tree.iter().copied().find(|before| experiment.links[*before].to == from);
            before.into_iter().for_each(|before| route.add(Some(before), Hop::Link(link)));
        }
    }
    for at in members {
        let port = port_of(experiment, &End::Shared(*at), 1);
        let back = experiment.interface(*at).back;
        if tree.contains(&back) {
            route.add(Some(back), Hop::Port(port));
        }
    }
    route
}

impl Site {
    /// The ends of a flow: its sender, and its receivers.
    pub(super) fn ends<'a>(
        sites: &'a [Self],
        experiment: &Experiment,
        flow: usize,
    ) -> (EndSite<'a>, Vec<EndSite<'a>>) {
        let spec = &experiment.flows[flow];
        let namespace = |end: &End, side: usize| {
            let site = end.machine().map_or(side, |machine| OWN_SITES + machine);
            &sites[site].namespace
        };
        let hosts = experiment.flows.len() + beside(experiment).count();
        let [from, to] = addresses(flow);
        let sender = EndSite { namespace: namespace(&spec.from, SENDERS), address: from };
        let ends = experiment.receivers(spec);
        let receivers = ends.iter().map(|end| EndSite {
            namespace: namespace(end, RECEIVERS),
            address: match (&spec.to, end) {
                (Destination::Group(_), End::Shared(at)) => {
                    interface_address(experiment, hosts, *at)
                }
                _ => to,
            },
        });
        let receivers = receivers.collect();
        (sender, receivers)
    }
}

/// The link of a flow's own host.
fn own_link(end: &End) -> &LinkConfig {
    static NONE: LazyLock<LinkConfig> = LazyLock::new(LinkConfig::default);
    end.own_link().unwrap_or(&NONE)
}

/// The links that each flow's packets cross towards the receiver, and back; behind them those of
/// further subflows.
fn routes(experiment: &Experiment) -> Result<Vec<[Vec<usize>; 2]>, TestbedError> {
    let of_subflow = |subflow: &Subflow| [subflow.forth.clone(), subflow.back.clone()];
    let firsts = experiment.flows.iter().map(|flow| match flow.subflows.first() {
        Some(first) => Ok(of_subflow(first)),
        None => {
            let ends = [experiment.router(&flow.from), experiment.router(receiver(flow))];
            let [from, to] = ends;
            Ok([route(experiment, flow, [from, to])?, route(experiment, flow, [to, from])?])
        }
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

/// The links of a way under construction.
#[derive(Default)]
struct LinkRow {
    links: Vec<(String, LinkConfig)>,
}

impl LinkRow {
    fn add(&mut self, name: &str, config: &LinkConfig) -> usize {
        self.links.push((name.to_owned(), config.clone()));
        self.links.len() - 1
    }

    fn way(self, seed: u64, routes: Vec<Route>, flows: Flows) -> Way {
        let configs: Vec<&LinkConfig> = self.links.iter().map(|(_, config)| config).collect();
        let whole = SuperPackets::Auto.whole(&configs);
        Way::new(seed, self.links, routes, flows, whole)
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

    /// Bytes at the IP layer that have reached a flow's receiver over its first path.
    pub(super) fn carried(&self, flow: usize) -> u64 {
        let route = if self.both_sides { 2 * flow } else { flow };
        self.emulator.lane(0).way.carried(route)
    }

    /// Lets packets of a flow reach these members of its group, and nobody else.
    pub(super) fn set_members(
        &self,
        experiment: &Experiment,
        flow: usize,
        members: &[InterfaceIndex],
    ) {
        let route = group_route(experiment, &experiment.flows[flow], members);
        self.emulator.lane(0).way.set_route(2 * flow, route);
    }

    /// How long after their due times packets were released, by way.
    pub(super) fn lateness(&self) -> Vec<Lateness> {
        self.ways().map(|way| self.emulator.lane(way).lateness()).collect()
    }

    fn ways(&self) -> std::ops::Range<usize> {
        0..if self.both_sides { 1 } else { 2 }
    }

    /// Packets that the system did not take, and packets of no flow.
    pub(super) fn astray(&self) -> (u64, u64) {
        let counts = self.ways().map(|way| {
            let lane = self.emulator.lane(way);
            (lane.unsent(), lane.way.strangers)
        });
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
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
