//! The forwarding of packets at routers.

use fontis_base::{HostId, prefetch};

use crate::world::NodeIndex;

/// Sends each packet towards its destination, at once and without a queue: links have the queues.
///
/// A packet to a host that no way leads to is dropped and counted.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// By host, the node that its packets go to next.
    ways: Vec<u32>,
    unroutable: u64,
}

const NOWHERE: u32 = u32::MAX;

impl Switch {
    /// A switch that knows no host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for ways to hosts up to this one.
    pub(crate) fn reserve(&mut self, last: HostId) {
        let places = last.0 as usize + 1;
        self.ways.reserve_exact(places.saturating_sub(self.ways.len()));
    }

    /// From now on packets to `host` go to `node`.
    ///
    /// # Panics
    /// With more than four thousand million nodes.
    pub fn route(&mut self, host: HostId, node: NodeIndex) {
        let index = host.0 as usize;
        if self.ways.len() <= index {
            self.ways.resize(index + 1, NOWHERE);
        }
        self.ways[index] = u32::try_from(node).expect("nodes are counted with 32 bits");
    }

    /// Packets dropped because no way leads to where they should go.
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Where a packet to `host` would go.
    pub(crate) fn leads(&self, host: HostId) -> Option<u32> {
        self.ways.get(host.0 as usize).copied().filter(|node| *node != NOWHERE)
    }

    /// Brings near what is known of the way to `host`.
    pub(crate) fn bring_near(&self, host: HostId) {
        self.ways.get(host.0 as usize).into_iter().for_each(prefetch);
    }

    /// Where a packet to `host` goes; counts it if there is no way.
    pub(crate) fn way(&mut self, host: HostId) -> Option<NodeIndex> {
        match self.ways.get(host.0 as usize) {
            Some(&node) if node != NOWHERE => Some(node as NodeIndex),
            _ => {
                self.unroutable += 1;
                None
            }
        }
    }
}
