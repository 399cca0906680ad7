use fontis_base::HostId;
use fontis_net::LinkConfig;

use crate::drops::link;
use crate::{Element, NodeIndex, Switch, World};

/// Names a router of a network.
pub type RouterIndex = usize;

/// A world under construction: routers, links between them, and hosts behind them. Packets take the way with the
/// fewest links; of several such, the one whose first link was made first.
#[derive(Default)]
pub struct Network {
    world: World,
    seed: u64,
    routers: Vec<NodeIndex>,
    links: Vec<(RouterIndex, RouterIndex, NodeIndex)>,
    /// Each host, its router, and the node by which packets reach it from there.
    hosts: Vec<(HostId, RouterIndex, NodeIndex)>,
}

impl Network {
    /// An empty network whose random processes follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Adds a router.
    pub fn router(&mut self) -> RouterIndex {
        self.routers.push(self.world.add(Element::Switch(Switch::new())));
        self.routers.len() - 1
    }

    /// Adds a link from one router to another, in this direction only.
    pub fn link(
        &mut self,
        name: &str,
        from: RouterIndex,
        to: RouterIndex,
        config: LinkConfig,
    ) -> NodeIndex {
        let link = self.world.add(Element::Link(link(name, self.seed, config)));
        self.world.wire(link, self.routers[to], 0);
        self.links.push((from, to, link));
        link
    }

    /// Adds a host behind a router, with a link that leads from it, or none if packets get there at once.
    pub fn host(
        &mut self,
        id: HostId,
        router: RouterIndex,
        element: Element,
        uplink: Option<(&str, LinkConfig)>,
    ) -> NodeIndex {
        let host = self.world.add(element);
        let first = match uplink {
            None => self.routers[router],
            Some((name, config)) => {
                let link = self.world.add(Element::Link(link(name, self.seed, config)));
                self.world.wire(link, self.routers[router], 0);
                link
            }
        };
        self.world.wire(host, first, 0);
        self.hosts.push((id, router, host));
        host
    }

    /// Adds a host that has a way of its own to some others, by their second port.
    pub fn aside(
        &mut self,
        id: HostId,
        element: Element,
        others: impl IntoIterator<Item = (HostId, NodeIndex)>,
    ) -> NodeIndex {
        let host = self.world.add(element);
        let switch = self.world.add(Element::Switch(Switch::new()));
        self.world.wire(host, switch, 0);
        self.world.switch_mut(switch).route(id, host);
        for (other, node) in others {
            self.world.wire(node, switch, 0);
            self.world.switch_mut(switch).route(other, node);
        }
        host
    }

    /// Tells every router the ways to all hosts, and gives the world, ready to start.
    pub fn build(mut self) -> World {
        for router in 0..self.routers.len() {
            let first = self.first_links(router);
            let switch = self.routers[router];
            for &(host, at, node) in &self.hosts {
                let way = if at == router { Some(node) } else { first[at] };
                if let Some(way) = way {
                    self.world.switch_mut(switch).route(host, way);
                }
            }
        }
        self.world
    }

    /// For each router, the first link of the way that leads there from `from`.
    fn first_links(&self, from: RouterIndex) -> Vec<Option<NodeIndex>> {
        let mut first: Vec<Option<NodeIndex>> = vec![None; self.routers.len()];
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            for &(begin, end, link) in &self.links {
                if begin == at && end != from && first[end].is_none() {
                    first[end] = first[at].or(Some(link));
                    reached.push(end);
                }
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_the_way_with_the_fewest_links() {
        let mut network = Network::new(1);
        let routers: Vec<RouterIndex> = (0..4).map(|_| network.router()).collect();
        let mut link = |from: usize, to: usize| {
            network.link("link", routers[from], routers[to], LinkConfig::default())
        };
        let [first, _, third] = [link(0, 1), link(1, 2), link(0, 3)];
        let _ = (link(2, 3), link(3, 0));
        let ways = network.first_links(0);
        assert_eq!(ways, [None, Some(first), Some(first), Some(third)]);
        // Nothing leads from 3 to 2 but by way of 0 and 1.
        let from_last = network.first_links(3);
        assert_eq!(from_last[2], from_last[0]);
    }
}
