//! The addresses and interfaces of a testbed: which machine has which.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fontis_proto::tcp::TcpConfig;
use fontis_sim::Experiment;
use fontis_sim::experiment::spec::{Destination, End, FlowSpec, InterfaceIndex};
use fontis_sim::host::rows;

use super::netlink::HostRoute;
use super::way::SIDE;

/// The site of senders of flows' own, and that of such receivers.
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVERS: usize = 1;
/// The sites before those of machines.
pub(super) const OWN_SITES: usize = 2;

/// The name of a namespace's first interface.
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

/// The subflows beside the first of a flow of Multipath TCP, and the paths beside the first of one
/// of DFCP, by their flow and their places in it from 1 on. Their addresses have the numbers behind
/// those of all flows.
pub(super) fn beside(experiment: &Experiment) -> impl Iterator<Item = (usize, usize)> {
    let flows = experiment.flows.iter().enumerate();
    flows.flat_map(|(flow, spec)| {
        let count = spec.subflows.len().saturating_sub(1) + spec.paths.len();
        (1..=count).map(move |place| (flow, place))
    })
}

/// The addresses of the subflows or paths beside the first of a flow: of its sender and receiver. A
/// path has an address of its own at the end whose interface it takes; the other end has the
/// flow's.
pub(super) fn addresses_beside(experiment: &Experiment, flow: usize) -> Vec<[IpAddr; 2]> {
    let numbers = (experiment.flows.len()..).zip(beside(experiment));
    let own = numbers.filter(|(_, (of, _))| *of == flow);
    let ends = own.map(|(number, (_, place))| {
        let mut ends = addresses(number);
        if let Some(at) = experiment.flows[flow].paths.get(place - 1) {
            let other = 1 - path_side(&experiment.flows[flow], *at);
            ends[other] = addresses(flow)[other];
        }
        ends
    });
    ends.collect()
}

/// The end of a flow whose machine has this interface: 0 for its sender, 1 for its receiver.
pub(super) fn path_side(flow: &FlowSpec, at: InterfaceIndex) -> usize {
    usize::from(flow.from.machine() != Some(at.machine))
}

/// The name of an interface in the namespace of its machine.
pub(super) fn interface_name(number: usize) -> String {
    format!("fontis{number}")
}

/// The sender's and the receiver's end of a path of a flow over this interface. Flows with paths
/// have one receiver, and its other end is a machine's.
pub(super) fn path_ends(flow: &FlowSpec, at: InterfaceIndex) -> [End; 2] {
    let mut ends = [flow.from.clone(), receiver(flow).clone()];
    ends[path_side(flow, at)] = End::Shared(at);
    ends
}

/// The only receiver of a flow.
pub(super) fn receiver(flow: &FlowSpec) -> &End {
    match &flow.to {
        Destination::One(end) => end,
        Destination::Group(_) => unreachable!("groups have machines"),
    }
}

/// The port at which packets reach an end: that of its machine's interface, or of all senders or
/// receivers (`side` 0 or 1) of flows' own.
pub(super) fn port_of(experiment: &Experiment, end: &End, side: usize) -> usize {
    match end {
        End::Own { .. } => side,
        End::Shared(at) => {
            let before = &experiment.machines[..at.machine];
            let before: usize = before.iter().map(|machine| machine.interfaces.len()).sum();
            OWN_SITES + before + at.interface
        }
    }
}

/// The interfaces of all sites, with their addresses.
pub(super) struct Plan {
    /// By site and interface.
    pub(super) sites: Vec<Vec<PortPlan>>,
}

#[derive(Default)]
pub(super) struct PortPlan {
    pub(super) addresses: Vec<(IpAddr, u8)>,
    /// Single addresses that packets reach by it.
    pub(super) routes: Vec<HostRoute>,
}

impl Plan {
    pub(super) fn new(experiment: &Experiment) -> Self {
        let mut sites = vec![vec![PortPlan::default()], vec![PortPlan::default()]];
        let hosts = experiment.flows.len() + beside(experiment).count();
        for (number, machine) in experiment.machines.iter().enumerate() {
            let ports = (0..machine.interfaces.len()).map(|interface| {
                let at = InterfaceIndex { machine: number, interface };
                let address = (interface_address(experiment, hosts, at), 32);
                PortPlan { addresses: vec![address], routes: Vec::new() }
            });
            sites.push(ports.collect());
        }
        for flow in 0..hosts {
            let spec = experiment.flows.get(flow);
            if spec.is_none() && !experiment.machines.is_empty() {
                // What is beside flows between machines are their paths.
                break;
            }
            let place = |end: Option<&End>, side: usize| match end {
                Some(End::Shared(at)) => (OWN_SITES + at.machine, at.interface),
                _ => (side, 0),
            };
            let to = spec.map(|spec| experiment.receivers(spec)).unwrap_or_default();
            let is_group = spec.is_some_and(|spec| matches!(spec.to, Destination::Group(_)));
            let ends = [spec.map(|spec| &spec.from), to.first().filter(|_| !is_group)];
            for (side, end) in ends.into_iter().enumerate() {
                if is_group && side == 1 {
                    continue;
                }
                let (site, port) = place(end, side);
                let [own, peer] = [addresses(flow)[side], addresses(flow)[1 - side]];
                let port = &mut sites[site][port];
                // The sender of a flow's data is its first end.
                let window = spec.filter(|_| side == 0).and_then(initial_window);
                if site < OWN_SITES {
                    port.addresses.push((own, 16));
                    port.addresses.push((addresses6(flow)[side], 64));
                    let window = window.map(|window| host_route(peer, Some(window)));
                    port.routes.extend(window);
                } else {
                    port.addresses.push((own, 32));
                    port.routes.push(host_route(peer, window));
                }
            }
            if is_group {
                for end in &to {
                    let (site, port) = place(Some(end), 1);
                    sites[site][port].routes.push(host_route(addresses(flow)[0], None));
                }
            }
        }
        for (number, (flow, place)) in (experiment.flows.len()..).zip(beside(experiment)) {
            let spec = &experiment.flows[flow];
            if let Some(at) = spec.paths.get(place - 1) {
                let side = path_side(spec, *at);
                let [own, peer] = [addresses(number)[side], addresses(flow)[1 - side]];
                let port = &mut sites[OWN_SITES + at.machine][at.interface];
                port.addresses.push((own, 32));
                // The flow's first path keeps what is bound to no interface.
                port.routes.push(HostRoute { to: peer, window: None, metric: place as u32 });
                if let End::Shared(other) = &path_ends(spec, *at)[1 - side] {
                    let port = &mut sites[OWN_SITES + other.machine][other.interface];
                    port.routes.push(host_route(own, None));
                }
            }
        }
        Self { sites }
    }
}

/// A route that is taken before all others to the same address.
const fn host_route(to: IpAddr, window: Option<u32>) -> HostRoute {
    HostRoute { to, window, metric: 0 }
}

/// The initial window of a flow over TCP in segments, if the kernel's own is another.
fn initial_window(flow: &FlowSpec) -> Option<u32> {
    let tcp = flow.transport.as_any().downcast_ref::<rows::tcp::Tcp>()?;
    let window = tcp.config.initial_window;
    (window != TcpConfig::default().initial_window).then_some(window)
}

/// The address of an interface itself; those of flows come beside it. `hosts` numbers are taken.
pub(super) fn interface_address(
    experiment: &Experiment,
    hosts: usize,
    at: InterfaceIndex,
) -> IpAddr {
    let port = port_of(experiment, &End::Shared(at), 0);
    addresses(hosts + port)[0]
}

/// The address of the group that a flow sends to.
pub(super) fn group_address(flow: usize) -> Ipv4Addr {
    let [high, low] = (flow as u16 + 1).to_be_bytes();
    // 239.0.0.0/8 is for groups of one site (RFC 2365).
    Ipv4Addr::new(239, 77, high, low)
}
