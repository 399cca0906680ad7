//! Groups: who is a member, and the trees by which packets reach the members.

use std::collections::{BTreeMap, BTreeSet};

use fontis_base::Address;

use crate::world::World;
use crate::world::graph::{Graph, GraphLink, VertexIndex};
use crate::world::switch::NodeIndex;

/// The groups of a world. Packets of a sender follow the tree of shortest ways from its first
/// router, so that each link carries one copy (as source-specific multicast, RFC 4607).
#[derive(Clone, Debug)]
pub struct Groups {
    switches: Vec<Option<NodeIndex>>,
    links: Vec<GraphLink>,
    /// By sender and group, the router behind which the sender is, and its machine if it is one.
    senders: BTreeMap<(Address, Address), (VertexIndex, Option<VertexIndex>)>,
    /// By group, the links that lead to members.
    members: BTreeMap<Address, BTreeSet<usize>>,
}

impl Groups {
    pub(crate) const fn new(switches: Vec<Option<NodeIndex>>, links: Vec<GraphLink>) -> Self {
        Self { switches, links, senders: BTreeMap::new(), members: BTreeMap::new() }
    }

    /// From now on packets of `sender`, which is behind `router`, reach the members of `group`. A
    /// sender on a machine gets no copies itself.
    pub fn add_sender(
        &mut self,
        world: &mut World,
        sender: Address,
        group: Address,
        router: VertexIndex,
        machine: Option<VertexIndex>,
    ) {
        self.senders.insert((sender, group), (router, machine));
        self.route(world, group);
    }

    /// The interface that link `back` leads to joins a group, when it is [routed](Self::route).
    pub fn join(&mut self, group: Address, back: usize) {
        self.members.entry(group).or_default().insert(back);
    }

    /// The interface that link `back` leads to leaves a group, when it is [routed](Self::route).
    pub fn leave(&mut self, group: Address, back: usize) {
        self.members.entry(group).or_default().remove(&back);
    }

    /// Tells all routers the ways to the members of a group.
    pub fn route(&self, world: &mut World, group: Address) {
        let graph = Graph {
            forwards: self.switches.iter().map(Option::is_some).collect(),
            links: self.links.iter().map(|link| (link.from, link.to)).collect(),
        };
        let members = self.members.get(&group);
        for (&(sender, of), &(router, machine)) in &self.senders {
            if of != group {
                continue;
            }
            let leaves = members.into_iter().flatten().copied();
            let leaves: Vec<usize> =
                leaves.filter(|back| Some(self.links[*back].to) != machine).collect();
            let tree = graph.tree(router, &leaves);
            for (vertex, switch) in self.switches.iter().enumerate() {
                let Some(switch) = *switch else { continue };
                let links = tree.iter().map(|link| self.links[*link]);
                let nodes: Vec<_> =
                    links.filter(|link| link.from == vertex).map(|link| link.node).collect();
                world.switch_mut(switch).route_group(sender, group, &nodes);
            }
        }
    }
}
