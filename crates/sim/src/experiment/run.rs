//! The run of an experiment in virtual time.

mod observed;
mod paths;

use std::collections::BTreeSet;

use fontis_base::{Address, Duration, FlowId, Stream, Time};
use fontis_net::LinkConfig;
use fontis_proto::qlog::Records;
use fontis_trace::{Detail, Trace};

use crate::app::message::MessageLog;
use crate::experiment::observation::Observation;
use crate::experiment::spec::{Destination, End, Experiment, FlowSpec, InterfaceIndex, Subject};
use crate::experiment::swarm;
use crate::host::controller::{Controlled, Controller};
use crate::host::identity::{EndpointIdentity, Stay};
use crate::host::table::{AnyHost, FlowContext, Hosts, SharedConfigs};
use crate::recording::Recording;
use crate::world::World;
use crate::world::element::Element;
use crate::world::group::Groups;
use crate::world::network::Network;
use crate::world::observers::capture::{Capture, Sender};
use crate::world::observers::qlog::{Qlog, QlogSubject};
use crate::world::observers::recorder::Recorder;
use crate::world::switch::NodeIndex;

/// What is to be kept of a run beside its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// A capture of so many of the first packets that the flows' senders send and receive; zero for
    /// none.
    pub capture: u64,
    /// Every packet's life, in this detail.
    pub packets: Option<Detail>,
    /// The packets and the beliefs of the flows' senders, as a qlog.
    pub qlog: bool,
}

/// The state of a run at a sample.
#[derive(Debug)]
pub struct RunView<'a> {
    /// The recorder of packets, if there is one.
    pub recorder: Option<&'a Recorder>,
    /// The records of the qlog since the last sample, whole ones; at the last sample all the rest.
    pub qlog: Option<Records>,
}

/// What was kept of a run.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its recording.
    pub recording: Recording,
    /// The capture, if there was to be one.
    pub capture: Option<Capture>,
    /// Every packet's life, if it was to be kept.
    pub trace: Option<Trace>,
}

/// The node and the address of one end of a flow.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    node: NodeIndex,
    address: Address,
}

/// The ends of a flow in a world.
#[derive(Clone, Debug)]
struct FlowEnds {
    sender: Endpoint,
    /// The only receiver of most flows.
    receiver: Endpoint,
    /// The receivers behind the first, of a flow to a group.
    others: Vec<Endpoint>,
}

/// A change of a group's members.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Time,
    group: Address,
    back: usize,
    joins: bool,
}

/// A running experiment.
struct Running<'a> {
    experiment: &'a Experiment,
    world: World,
    groups: Groups,
    /// Changes of groups that are still to come, the last first.
    changes: Vec<Change>,
    flows: Vec<FlowEnds>,
    logs: Vec<Option<MessageLog>>,
    subjects: Vec<Subject>,
    /// The nodes of the experiment's links.
    links: Vec<NodeIndex>,
}

impl Experiment {
    /// Runs it and gives the recording; `None` if `stop` said so, which is asked at each sample.
    pub fn run(&self, mut stop: impl FnMut() -> bool) -> Option<Recording> {
        Some(self.run_watched(Watch::default(), |_| stop())?.recording)
    }

    /// The same, with more to be kept of its packets; `stop` is shown what there is of them.
    pub fn run_watched(
        &self,
        watch: Watch,
        mut stop: impl FnMut(RunView<'_>) -> bool,
    ) -> Option<Watched> {
        if let Some(spec) = &self.swarm {
            let view = || RunView { recorder: None, qlog: None };
            let (outcome, events) = swarm::run(self, spec, || stop(view()))?;
            let recording = swarm::record(spec, &outcome, events);
            let draw = |detail| swarm::trace(spec, &outcome, "simulation", detail);
            return Some(Watched { recording, capture: None, trace: watch.packets.map(draw) });
        }
        let mut running = Running::build(self);
        running.watch(watch);
        let mut observation = Observation::new(self);
        running.world.start();
        let end = Time::ZERO + self.duration;
        let window = Time::ZERO + self.warmup;
        let mut at = Time::ZERO;
        observation.sample(self, &mut running);
        if self.warmup == Duration::ZERO {
            observation.begin_window();
        }
        while at < end {
            let next = (at + self.sample.max(Duration::from_nanos(1))).min(end);
            // The window begins with a sample of its own, wherever the others lie.
            let next = if at < window { next.min(window) } else { next };
            at = next;
            running.run_to(at);
            observation.sample(self, &mut running);
            if at == window {
                observation.begin_window();
            }
            let qlog = running.world.qlog_mut().map(Qlog::take);
            if stop(RunView { recorder: running.world.recorder(), qlog }) {
                return None;
            }
            if observation.all_measured(self) {
                break;
            }
            if self.until_done && running.all_done() {
                break;
            }
        }
        let events = running.world.processed();
        let capture = running.world.capture().cloned();
        let trace = running.world.take_recorder().map(Recorder::finish);
        let outcome = observation.outcome(&running);
        drop(running);
        let mut recording = observation.finish(self, &outcome, at);
        recording.events = events;
        Some(Watched { recording, capture, trace })
    }
}

/// Gives out addresses and numbers of endpoints.
#[derive(Default)]
struct Numbers {
    next: u32,
}

impl Numbers {
    fn next(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

impl<'a> Running<'a> {
    fn build(experiment: &'a Experiment) -> Self {
        let mut network = Network::new(experiment.seed);
        let is_machine = |vertex| experiment.machines.iter().any(|m| m.vertex == vertex);
        for vertex in 0..experiment.vertices {
            match is_machine(vertex) {
                true => network.machine(),
                false => network.router(),
            };
        }
        let links = experiment
            .links
            .iter()
            .map(|link| network.link(&link.name, link.from, link.to, link.config.clone()));
        let links: Vec<NodeIndex> = links.collect();
        // A flow has two hosts, and two links of its own if they are in no bundle.
        network.reserve(4 * experiment.flows.len(), 2 * experiment.flows.len());
        let mut builder = Builder {
            experiment,
            network,
            numbers: Numbers::default(),
            interfaces: Vec::new(),
            controller: Address::default(),
            shared: SharedConfigs::default(),
        };
        let addresses = builder.addresses();
        builder.add_interfaces();
        builder.controller = Address(builder.numbers.next());
        let mut logs = Vec::with_capacity(experiment.flows.len());
        let mut flows = Vec::with_capacity(experiment.flows.len());
        for (number, own) in (0..).zip(addresses) {
            let (ends, log) = builder.add_flow(number, own);
            flows.push(ends);
            logs.push(log);
        }
        builder.add_controller(&flows);
        let Builder { network, .. } = builder;
        let (mut world, mut groups) = network.build();
        for (flow, ends) in experiment.flows.iter().zip(&flows) {
            if let Destination::Group(group) = flow.to {
                let router = experiment.router(&flow.from);
                let machine = flow.from.machine().map(|m| experiment.machines[m].vertex);
                let group = Address::group(group as u32);
                groups.add_sender(&mut world, ends.sender.address, group, router, machine);
            }
        }
        let changes = changes(experiment);
        let subjects = experiment.subjects();
        let mut running = Self { experiment, world, groups, changes, flows, logs, subjects, links };
        running.change_groups(Time::ZERO);
        running
    }

    /// Sets up the observers that are asked for.
    fn watch(&mut self, watch: Watch) {
        let flows = || self.experiment.flows.iter().zip(&self.flows);
        if watch.capture > 0 {
            let senders = flows().map(|(flow, ends)| Sender {
                node: ends.sender.node,
                address: ends.sender.address,
                transport: flow.transport.row(),
            });
            let capture = Capture::new(senders.collect(), watch.capture);
            self.world.set_capture(capture);
        }
        if let Some(detail) = watch.packets {
            let recorder = self.recorder(detail);
            self.world.set_recorder(recorder);
        }
        if watch.qlog {
            let flows = self.experiment.flows.iter().zip(&self.flows);
            let subjects = flows.map(|(flow, ends)| QlogSubject {
                node: ends.sender.node,
                name: &flow.name,
                transport: flow.transport.row(),
            });
            self.world.set_qlog(Qlog::new(subjects));
        }
    }

    /// A recorder with a lane for each host and each bottleneck: senders on the left, receivers on
    /// the right.
    fn recorder(&self, detail: Detail) -> Recorder {
        let experiment = self.experiment;
        let mut recorder = Recorder::new("simulation", detail);
        let flows = || experiment.flows.iter().zip(&self.flows);
        let is_sender = |machine: usize| {
            experiment.flows.iter().any(|flow| flow.from.machine() == Some(machine))
        };
        self.machine_lanes(&mut recorder, is_sender);
        for (flow, ends) in flows() {
            if matches!(flow.from, End::Own { .. }) {
                let Endpoint { node, address } = ends.sender;
                recorder.host(node, &[address], &format!("{} sender", flow.name));
            }
        }
        for (spec, link) in experiment.links.iter().zip(&self.links) {
            match spec.bottleneck {
                true => recorder.queue(*link, &spec.name, spec.config.delay),
                false => recorder.line(*link),
            }
        }
        self.machine_lanes(&mut recorder, |machine| !is_sender(machine));
        for (flow, ends) in flows() {
            if matches!(flow.to, Destination::One(End::Own { .. })) {
                let Endpoint { node, address } = ends.receiver;
                recorder.host(node, &[address], &format!("{} receiver", flow.name));
            }
            recorder.flow(&flow.name, ends.sender.address, flow.transport.row());
        }
        recorder
    }

    /// Gives a lane to each machine that is asked for.
    fn machine_lanes(&self, recorder: &mut Recorder, mut wanted: impl FnMut(usize) -> bool) {
        for (index, machine) in self.experiment.machines.iter().enumerate() {
            if !wanted(index) {
                continue;
            }
            let mut addresses = Vec::new();
            let mut node = None;
            for (flow, ends) in self.experiment.flows.iter().zip(&self.flows) {
                let receivers = self.experiment.receivers(flow);
                let there = core::iter::once((&flow.from, ends.sender))
                    .chain(receivers.iter().zip((0..receivers.len()).map(|at| ends.receiver(at))));
                for (_, end) in there.filter(|(end, _)| end.machine() == Some(index)) {
                    addresses.push(end.address);
                    node = Some(end.node);
                }
            }
            if let Some(node) = node {
                recorder.host(node, &addresses, &machine.name);
            }
        }
    }

    /// Runs until a time; members of groups come and go at theirs.
    fn run_to(&mut self, at: Time) {
        while let Some(change) = self.changes.last().filter(|change| change.at <= at) {
            let then = change.at;
            self.world.run_to(then);
            self.change_groups(then);
        }
        self.world.run_to(at);
    }

    /// Carries out the changes of groups that are due.
    fn change_groups(&mut self, now: Time) {
        let mut changed = BTreeSet::new();
        while let Some(change) = self.changes.pop_if(|change| change.at <= now) {
            let Change { group, back, joins, .. } = change;
            match joins {
                true => self.groups.join(group, back),
                false => self.groups.leave(group, back),
            }
            changed.insert(group);
        }
        changed.into_iter().for_each(|group| self.groups.route(&mut self.world, group));
    }

    fn all_done(&self) -> bool {
        let mut with_end =
            self.experiment.flows.iter().enumerate().filter(|(_, flow)| flow.has_end());
        with_end.all(|(flow, _)| {
            let ends = &self.flows[flow];
            core::iter::once(&ends.receiver).chain(&ends.others).all(|end| {
                let host = self.world.element(end.node).endpoint(FlowId(flow as u32));
                host.is_none_or(|host| host.is_done())
            })
        })
    }

    /// Both ends of a subject.
    fn ends(&self, subject: usize) -> (FlowId, Endpoint, Endpoint) {
        let Subject { flow, receiver, .. } = self.subjects[subject];
        let ends = &self.flows[flow];
        (FlowId(flow as u32), ends.sender, ends.receiver(receiver))
    }
}

/// The changes of all groups, the last first.
fn changes(experiment: &Experiment) -> Vec<Change> {
    let mut changes = Vec::new();
    for (number, group) in (0..).zip(&experiment.groups) {
        let group_address = Address::group(number);
        for member in &group.members {
            let back = experiment.interface(member.at).back;
            changes.push(Change { at: member.join, group: group_address, back, joins: true });
            if let Some(at) = member.leave {
                changes.push(Change { at, group: group_address, back, joins: false });
            }
        }
    }
    // Of changes at one time the first in the file comes first.
    changes.sort_by_key(|change| change.at);
    changes.reverse();
    changes
}

impl FlowEnds {
    fn receiver(&self, index: usize) -> Endpoint {
        match index {
            0 => self.receiver,
            index => self.others[index - 1],
        }
    }
}

/// Builds the world of an experiment.
struct Builder<'a> {
    experiment: &'a Experiment,
    network: Network,
    numbers: Numbers,
    /// By machine, the addresses of its interfaces.
    interfaces: Vec<Vec<Address>>,
    controller: Address,
    shared: SharedConfigs,
}

impl Builder<'_> {
    /// Numbers the flows' own hosts: of each flow the sender and the receiver, if they are its own.
    fn addresses(&mut self) -> Vec<[Option<Address>; 2]> {
        let flows = self.experiment.flows.iter().map(|flow| {
            let mut own = |is_own: bool| is_own.then(|| Address(self.numbers.next()));
            let sender = own(matches!(flow.from, End::Own { .. }));
            [sender, own(matches!(flow.to, Destination::One(End::Own { .. })))]
        });
        flows.collect()
    }

    fn add_interfaces(&mut self) {
        for machine in &self.experiment.machines {
            let mut addresses = Vec::new();
            for interface in &machine.interfaces {
                let address = Address(self.numbers.next());
                self.network.interface(machine.vertex, address, interface.out, interface.back);
                addresses.push(address);
            }
            self.interfaces.push(addresses);
        }
    }

    /// The address of an interface.
    fn interface(&self, at: InterfaceIndex) -> Address {
        self.interfaces[at.machine][at.interface]
    }

    /// The address of an end: that of the flow's own host, or of the machine's interface.
    fn address(&self, end: &End, own: Option<Address>) -> Address {
        match end {
            End::Own { .. } => own.unwrap_or_default(),
            End::Shared(at) => self.interface(*at),
        }
    }

    /// The number of an endpoint: an own host's address, or a new one.
    fn number(&mut self, own: Option<Address>) -> u32 {
        own.map_or_else(|| self.numbers.next(), |address| address.0)
    }

    fn add_flow(
        &mut self,
        number: u32,
        [own_sender, own_receiver]: [Option<Address>; 2],
    ) -> (FlowEnds, Option<MessageLog>) {
        let experiment = self.experiment;
        let spec = &experiment.flows[number as usize];
        let flow = FlowId(number);
        let ends = experiment.receivers(spec);
        let local = self.address(&spec.from, own_sender);
        let addresses: Vec<Address> =
            ends.iter().map(|end| self.address(end, own_receiver)).collect();
        let peer = match spec.to {
            Destination::One(_) => addresses[0],
            Destination::Group(group) => Address::group(group as u32),
        };
        let class = spec.class;
        let sender = EndpointIdentity { number: self.number(own_sender), local, peer, flow, class };
        let receivers: Vec<EndpointIdentity> = addresses
            .iter()
            .map(|address| {
                let number = self.number(own_receiver);
                EndpointIdentity { number, local: *address, peer: local, flow, class }
            })
            .collect();
        let stays: Vec<Stay> = experiment.members(spec).into_iter().map(|(_, stay)| stay).collect();
        let paths = self.paths(spec, local, addresses[0]);
        let context = FlowContext {
            paths: &paths,
            seed: experiment.seed,
            name: &spec.name,
            number,
            start: spec.start,
            application: &spec.application,
            sender,
            receivers: &receivers,
            stays: &stays,
            more_than_fits: experiment.more_than_fits(spec),
            wire: experiment.wire,
            controller: self.controller,
        };
        let Hosts { sender: host, receivers: hosts, log } =
            spec.transport.hosts(&context, &mut self.shared);
        let sender = self.add_end(spec, &spec.from, sender, host, "access");
        let mut added = Vec::with_capacity(hosts.len());
        for ((end, identity), host) in ends.iter().zip(&receivers).zip(hosts) {
            added.push(self.add_end(spec, end, *identity, host, "back"));
        }
        // A group without members has no receiver: its flow's counters are those of its sender.
        let receiver = added.first().copied().unwrap_or(sender);
        let others = added.split_off(added.len().min(1));
        (FlowEnds { sender, receiver, others }, log)
    }

    /// Adds one end of a flow: a host of its own, or an endpoint on a machine.
    fn add_end(
        &mut self,
        flow: &FlowSpec,
        end: &End,
        identity: EndpointIdentity,
        host: AnyHost,
        side: &str,
    ) -> Endpoint {
        let address = identity.local;
        let node = match end {
            End::Own { router, link } => {
                let name = format!("{}/{side}", flow.name);
                let uplink = (**link != LinkConfig::default()).then(|| (&*name, (**link).clone()));
                self.network.host(address, *router, Element::from(host), uplink)
            }
            End::Shared(at) => {
                let vertex = self.experiment.machines[at.machine].vertex;
                let ports = Self::ports(flow, *at);
                let machine = self.network.machine_mut(vertex);
                machine.add(identity.flow, ports, host.into_boxed());
                self.network.node(vertex)
            }
        };
        Endpoint { node, address }
    }

    /// Adds a controller if there is a flow for it, with a way to the senders that is nobody
    /// else's.
    fn add_controller(&mut self, ends: &[FlowEnds]) {
        let experiment = self.experiment;
        let flows: Vec<usize> = (0..experiment.flows.len())
            .filter(|flow| experiment.flows[*flow].transport.is_controlled())
            .collect();
        if flows.is_empty() {
            return;
        }
        let controlled = flows.iter().map(|index| {
            let spec = &experiment.flows[*index];
            let Destination::One(to) = &spec.to else {
                unreachable!("only transports without a controller reach groups")
            };
            let way = experiment.route(experiment.router(&spec.from), experiment.router(to));
            Controlled {
                flow: FlowId(*index as u32),
                sender: ends[*index].sender.address,
                limit: experiment.access_rate(spec),
                links: way.unwrap_or_default(),
                is_active: false,
            }
        });
        let links = experiment.links.iter();
        let links = links.map(|link| (link.config.rate, link.config.rate_changes.clone()));
        let stream = Stream::new(experiment.seed, "controller");
        let (config, links) = (experiment.controller, links.collect());
        let controller =
            Controller::new(self.controller, config, links, controlled.collect(), stream);
        let ways =
            flows.iter().map(|index| (ends[*index].sender.address, ends[*index].sender.node));
        self.network.aside(self.controller, Element::Host(Box::new(controller)), ways);
    }
}
