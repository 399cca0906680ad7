//! The description of one run.

use std::collections::BTreeMap;
use std::sync::Arc;

use fontis_base::{Duration, Rate, Size, Time};
use fontis_net::{FlowFacts, Limit, LinkConfig};

use crate::app::Application;
use crate::host::controller::ControllerConfig;
use crate::host::identity::Stay;
use crate::host::table::Transport;
use crate::swarm::SwarmSpec;
use crate::world::graph::Graph;

/// Flows over a network of routers, machines and links, run in virtual time and recorded.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Decides every random process.
    pub seed: u64,
    /// The number of vertices: routers and machines, counted together.
    pub vertices: usize,
    /// The machines that flows share.
    pub machines: Vec<MachineSpec>,
    /// The links between vertices.
    pub links: Vec<LinkSpec>,
    /// The groups of interfaces.
    pub groups: Vec<GroupSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// The swarm that is run in place of flows.
    pub swarm: Option<Arc<SwarmSpec>>,
    /// The controller of the rates of flows that have no controller of their own.
    pub controller: ControllerConfig,
    /// How long it runs.
    pub duration: Duration,
    /// When the measurement window begins; it ends with the run.
    pub warmup: Duration,
    /// How often counters are read.
    pub sample: Duration,
    /// The time that each flow takes from the window's beginning to deliver so many bytes is
    /// recorded; the run ends when all have delivered them.
    pub measure: Option<u64>,
    /// Whether to stop as soon as every flow that has an end has come to it.
    pub until_done: bool,
    /// Whether every packet of TCP and DFCP passes through the wire format and back; the recording
    /// is the same.
    pub wire: bool,
}

/// A machine with interfaces of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Its name.
    pub name: String,
    /// Its vertex.
    pub vertex: usize,
    /// Its interfaces.
    pub interfaces: Vec<InterfaceSpec>,
}

/// An interface of a machine: two links, by their places in the experiment's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// The link by which packets leave.
    pub out: usize,
    /// The link by which packets come.
    pub back: usize,
}

/// A group of interfaces, which packets reach by one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Its members, in the order of their names in recordings.
    pub members: Vec<MemberSpec>,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSpec {
    /// The interface.
    pub at: InterfaceIndex,
    /// When it joins.
    pub join: Time,
    /// When it leaves.
    pub leave: Option<Time>,
}

/// Names an interface: the machine and the interface of it, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterfaceIndex {
    /// The machine.
    pub machine: usize,
    /// The interface.
    pub interface: usize,
}

/// A link between two vertices, in one direction.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub from: usize,
    /// Where it leads.
    pub to: usize,
    /// What it does.
    pub config: LinkConfig,
    /// Whether it is recorded.
    pub bottleneck: bool,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// Where its sender is.
    pub from: End,
    /// Where its receivers are.
    pub to: Destination,
    /// When it begins.
    pub start: Time,
    /// Its transport.
    pub transport: Arc<dyn Transport>,
    /// Its traffic.
    pub application: Application,
    /// The traffic class of its packets.
    pub class: u8,
    /// What queues are told of it.
    pub facts: FlowFacts,
    /// Interfaces of its machines over which it has paths beside its first.
    pub paths: Vec<InterfaceIndex>,
    /// The links that the subflows of the kernel's Multipath TCP cross, on the testbed; none for
    /// plain TCP.
    pub subflows: Vec<Subflow>,
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// A host of the flow's own behind a router.
    Own {
        /// The router.
        router: usize,
        /// The host's link to it. Of thousands of flows most have the same.
        link: Arc<LinkConfig>,
    },
    /// An interface of a machine.
    Shared(InterfaceIndex),
}

/// The receivers of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// One receiver.
    One(End),
    /// The members of a group, by its place in the experiment's list.
    Group(usize),
}

/// The links between vertices that a subflow crosses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subflow {
    /// Towards the receiver, by their places in the experiment's list.
    pub forth: Vec<usize>,
    /// Towards the sender.
    pub back: Vec<usize>,
}

/// A receiver of a flow, as recordings have a row for it: a flow to a group has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The flow, by its place.
    pub flow: usize,
    /// The receiver, by its place among the flow's.
    pub receiver: usize,
    /// Its name if it is not the flow's: `flow@machine`.
    pub name: Option<String>,
}

impl Subject {
    /// Its name in recordings.
    pub fn name<'a>(&'a self, experiment: &'a Experiment) -> &'a str {
        self.name.as_deref().unwrap_or_else(|| &experiment.flows[self.flow].name)
    }
}

impl Experiment {
    /// The flow that only the testbed can run, if there is one, and the reason.
    pub fn testbed_only(&self) -> Option<(&FlowSpec, &'static str)> {
        self.flows.iter().find_map(|flow| match flow.transport.is_simulated() {
            false => Some((flow, "commands run")),
            true if !flow.subflows.is_empty() => Some((flow, "Multipath TCP runs")),
            true => None,
        })
    }

    /// The vertices and links by which ways are found.
    pub fn graph(&self) -> Graph {
        let mut forwards = vec![true; self.vertices];
        self.machines.iter().for_each(|machine| forwards[machine.vertex] = false);
        let links = self.links.iter().map(|link| (link.from, link.to)).collect();
        Graph { forwards, links }
    }

    /// The links that packets from one vertex to another cross, in their order: as few as possible;
    /// of several such ways, the one whose first link was made first. `None` if no way leads there.
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.graph().route(from, to)
    }

    /// The interfaces of a flow's receivers; the members of a group each once.
    pub fn receivers(&self, flow: &FlowSpec) -> Vec<End> {
        match &flow.to {
            Destination::One(end) => vec![end.clone()],
            Destination::Group(_) => {
                self.members(flow).into_iter().map(|(at, _)| End::Shared(at)).collect()
            }
        }
    }

    /// The members of a flow's group, each once and without the flow's sender, and when each is
    /// there: from its first joining to its last leaving.
    pub fn members(&self, flow: &FlowSpec) -> Vec<(InterfaceIndex, Stay)> {
        let Destination::Group(group) = flow.to else { return Vec::new() };
        let mut members: Vec<(InterfaceIndex, Stay)> = Vec::new();
        let mut places = BTreeMap::new();
        for MemberSpec { at, join, leave } in &self.groups[group].members {
            if flow.from.machine() == Some(at.machine) {
                continue;
            }
            let place = *places.entry(*at).or_insert(members.len());
            match members.get_mut(place) {
                None => members.push((*at, Stay { from: *join, to: *leave })),
                Some((_, stay)) => {
                    stay.from = stay.from.min(*join);
                    stay.to = stay.to.zip(*leave).map(|(one, other)| one.max(other));
                }
            }
        }
        members
    }

    /// The rows of a recording's sample: every receiver of every flow.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut subjects = Vec::with_capacity(self.flows.len());
        for (flow, spec) in self.flows.iter().enumerate() {
            match &spec.to {
                Destination::One(_) => subjects.push(Subject { flow, receiver: 0, name: None }),
                Destination::Group(_) => {
                    for (receiver, end) in self.receivers(spec).iter().enumerate() {
                        let machine = end.machine().map(|machine| &*self.machines[machine].name);
                        let name = format!("{}@{}", spec.name, machine.unwrap_or_default());
                        subjects.push(Subject { flow, receiver, name: Some(name) });
                    }
                }
            }
        }
        subjects
    }

    /// The router at which packets of an end enter the network, and where they come from it.
    pub fn router(&self, end: &End) -> usize {
        match end {
            End::Own { router, .. } => *router,
            End::Shared(at) => {
                let InterfaceSpec { out, .. } = self.interface(*at);
                self.links[out].to
            }
        }
    }

    /// An interface.
    pub fn interface(&self, at: InterfaceIndex) -> InterfaceSpec {
        self.machines[at.machine].interfaces[at.interface]
    }

    /// The rate of the sender's own link; unlimited for a sender without one.
    pub fn access_rate(&self, flow: &FlowSpec) -> Rate {
        match &flow.from {
            End::Own { link, .. } => link.rate,
            End::Shared(at) => self.links[self.interface(*at).out].config.rate,
        }
    }

    /// More bytes than a flow can send while the experiment lasts.
    pub fn more_than_fits(&self, flow: &FlowSpec) -> u64 {
        let rate = match self.access_rate(flow) {
            Rate::MAX => {
                self.links.iter().map(|link| link.config.rate).filter(|r| *r < Rate::MAX).max()
            }
            rate => Some(rate),
        };
        rate.unwrap_or(Rate::from_mbps(10_000)).bytes_in(self.duration).saturating_mul(2).max(1)
    }
}

impl End {
    /// The machine, if it is an interface of one.
    pub const fn machine(&self) -> Option<usize> {
        match self {
            Self::Own { .. } => None,
            Self::Shared(at) => Some(at.machine),
        }
    }

    /// The link of a host of the flow's own.
    pub fn own_link(&self) -> Option<&LinkConfig> {
        match self {
            Self::Own { link, .. } => Some(link),
            Self::Shared(_) => None,
        }
    }
}

impl FlowSpec {
    /// Whether it ends by itself.
    pub fn has_end(&self) -> bool {
        self.transport.has_end(&self.application)
    }
}

impl LinkSpec {
    /// The buffer in the unit in which its queue is summed up: bytes, or packets.
    pub(crate) fn buffer(&self) -> Option<(f64, bool)> {
        match self.config.buffer {
            Limit::Bytes(size) if size == Size::from_bytes(u64::MAX) => None,
            Limit::Bytes(size) => Some((size.as_bytes() as f64, true)),
            Limit::Packets(packets) => Some((packets as f64, false)),
        }
    }
}
