//! The forwarding of packets at routers.

use std::collections::BTreeMap;

use fontis_base::{Address, Prefetch, prefetch};

/// Names a node of a world.
pub type NodeIndex = usize;

/// Sends each packet towards its destination, at once and without a queue: links have the queues.
///
/// A packet to a host that no way leads to is dropped and counted.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// By host, the node that its packets go to next.
    ways: Vec<u32>,
    /// By sender and group, the nodes that its packets go to next.
    groups: BTreeMap<(Address, Address), Vec<u32>>,
    unroutable: u64,
}

const NOWHERE: u32 = u32::MAX;

impl Prefetch for Switch {
    /// The way to a host.
    type Part = Address;

    fn prefetch(&self, host: Address) {
        self.ways.get(host.0 as usize).into_iter().for_each(prefetch);
    }
}

impl Switch {
    /// A switch that knows no host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for ways to hosts up to this one.
    pub(crate) fn reserve(&mut self, last: Address) {
        let places = last.0 as usize + 1;
        self.ways.reserve_exact(places.saturating_sub(self.ways.len()));
    }

    /// From now on packets to `host` go to `node`.
    ///
    /// # Panics
    /// With more than four thousand million nodes.
    pub fn route(&mut self, host: Address, node: NodeIndex) {
        let index = host.0 as usize;
        if self.ways.len() <= index {
            self.ways.resize(index + 1, NOWHERE);
        }
        self.ways[index] = u32::try_from(node).expect("nodes are counted with 32 bits");
    }

    /// From now on packets from `sender` to `group` go to each of these nodes.
    ///
    /// # Panics
    /// With more than four thousand million nodes.
    pub fn route_group(&mut self, sender: Address, group: Address, nodes: &[NodeIndex]) {
        let nodes = nodes.iter().map(|node| u32::try_from(*node).expect("nodes have 32 bits"));
        self.groups.insert((sender, group), nodes.collect());
    }

    /// The nodes that a packet to a group goes to.
    pub(crate) fn group_ways(&self, sender: Address, group: Address) -> &[u32] {
        self.groups.get(&(sender, group)).map_or(&[], Vec::as_slice)
    }

    /// Packets dropped because no way leads to where they should go.
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Where a packet to `host` would go.
    pub(crate) fn leads(&self, host: Address) -> Option<u32> {
        self.ways.get(host.0 as usize).copied().filter(|node| *node != NOWHERE)
    }

    /// Where a packet to `host` goes; counts it if there is no way.
    pub(crate) fn way(&mut self, host: Address) -> Option<NodeIndex> {
        match self.ways.get(host.0 as usize) {
            Some(&node) if node != NOWHERE => Some(node as NodeIndex),
            _ => {
                self.unroutable += 1;
                None
            }
        }
    }
}
