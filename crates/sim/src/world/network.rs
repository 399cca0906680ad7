//! A world under construction: routers, links, hosts.

use std::collections::BTreeMap;

use fontis_base::{Duration, HostId, Port, Rate};
use fontis_net::{Bundle, LinkConfig};

use crate::world::drops::link;
use crate::world::{Element, NodeIndex, World};

/// Names a router of a network.
pub type RouterIndex = usize;

/// A world under construction: routers, links between them, and hosts behind them. Packets take the
/// way with the fewest links; of several such, the one whose first link was made first.
#[derive(Default)]
pub struct Network {
    world: World,
    seed: u64,
    routers: Vec<NodeIndex>,
    links: Vec<(RouterIndex, RouterIndex, NodeIndex)>,
    /// The lines of hosts that lead to a router, by rate, delay and jitter.
    bundles: BTreeMap<(RouterIndex, Rate, Duration, Duration), NodeIndex>,
    /// Each host, its router, and the node by which packets reach it from there.
    hosts: Vec<(HostId, RouterIndex, NodeIndex)>,
}

impl Network {
    /// An empty network whose random processes follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Makes room for so many nodes more, and for so many hosts among them.
    pub fn reserve(&mut self, nodes: usize, hosts: usize) {
        self.world.reserve(nodes);
        self.hosts.reserve_exact(hosts);
    }

    /// Adds a router.
    pub fn router(&mut self) -> RouterIndex {
        self.routers.push(self.world.add(Element::Switch(Box::default())));
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
        let link = self.world.add(Element::Link(Box::new(link(name, self.seed, config))));
        self.world.wire(link, self.routers[to], 0);
        self.links.push((from, to, link));
        link
    }

    /// Adds a host behind a router, with a link that leads from it, or none if packets get there at
    /// once. The router's links must have been added before.
    pub fn host(
        &mut self,
        id: HostId,
        router: RouterIndex,
        element: Element,
        uplink: Option<(&str, LinkConfig)>,
    ) -> NodeIndex {
        let host = self.world.add(element);
        let (first, port) = match uplink {
            None => (self.routers[router], 0),
            Some((name, config)) => self.uplink(name, router, config),
        };
        self.world.wire(host, first, port);
        self.hosts.push((id, router, host));
        host
    }

    /// Makes the link of a host to a router: where packets enter it.
    fn uplink(&mut self, name: &str, router: RouterIndex, config: LinkConfig) -> (NodeIndex, Port) {
        // Where much would wait for slow lines, all of it in one order would take longer than each
        // line by itself.
        let mut beyond = self.links.iter().filter(|(from, ..)| *from == router);
        let is_fast = beyond.all(|(.., link)| self.world.link(*link).rate() <= config.rate);
        let Some(bundle) = Bundle::new(&config).filter(|_| is_fast) else {
            let link = link(name, self.seed, config).unnamed();
            return (self.add_before(router, Element::Link(Box::new(link))), 0);
        };
        let kind = (router, config.rate, config.delay, config.jitter);
        let node = match self.bundles.get(&kind) {
            Some(node) => *node,
            None => self.add_before(router, Element::Bundle(Box::new(bundle))),
        };
        self.bundles.insert(kind, node);
        (node, self.world.bundle_mut(node).add(name, self.seed))
    }

    fn add_before(&mut self, router: RouterIndex, element: Element) -> NodeIndex {
        let node = self.world.add(element);
        self.world.wire(node, self.routers[router], 0);
        node
    }

    /// Adds a host that has a way of its own to some others, by their second port.
    pub fn aside(
        &mut self,
        id: HostId,
        element: Element,
        others: impl IntoIterator<Item = (HostId, NodeIndex)>,
    ) -> NodeIndex {
        let host = self.world.add(element);
        let switch = self.world.add(Element::Switch(Box::default()));
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
        let ends: Vec<_> = self.links.iter().map(|&(from, to, _)| (from, to)).collect();
        for router in 0..self.routers.len() {
            let first = first_links(self.routers.len(), &ends, router);
            let switch = self.routers[router];
            if let Some(last) = self.hosts.iter().map(|(host, ..)| *host).max() {
                self.world.switch_mut(switch).reserve(last);
            }
            for &(host, at, node) in &self.hosts {
                let way = match at == router {
                    true => Some(node),
                    false => first[at].map(|link| self.links[link].2),
                };
                if let Some(way) = way {
                    self.world.switch_mut(switch).route(host, way);
                }
            }
        }
        self.world
    }
}

/// For each router, the first link of the way that leads there from `from`; links lead from one
/// router to another.
pub(crate) fn first_links(
    routers: usize,
    links: &[(RouterIndex, RouterIndex)],
    from: RouterIndex,
) -> Vec<Option<usize>> {
    let mut first: Vec<Option<usize>> = vec![None; routers];
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        next += 1;
        for (link, &(begin, end)) in links.iter().enumerate() {
            if begin == at && end != from && first[end].is_none() {
                first[end] = first[at].or(Some(link));
                reached.push(end);
            }
        }
    }
    first
}

/// The links that packets from one router to another cross, in their order; `None` if no way leads
/// there.
pub(crate) fn route(
    routers: usize,
    links: &[(RouterIndex, RouterIndex)],
    from: RouterIndex,
    to: RouterIndex,
) -> Option<Vec<usize>> {
    let (mut at, mut way) = (from, Vec::new());
    while at != to {
        // Each router decides by itself; with every link the way that is left is shorter by one.
        let link = first_links(routers, links, at)[to]?;
        way.push(link);
        at = links[link].1;
    }
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_the_way_with_the_fewest_links() {
        let links = [(0, 1), (1, 2), (0, 3), (2, 3), (3, 0)];
        assert_eq!(first_links(4, &links, 0), [None, Some(0), Some(0), Some(2)]);
        // Nothing leads from 3 to 2 but by way of 0 and 1.
        assert_eq!(first_links(4, &links, 3)[2], Some(4));
        assert_eq!(route(4, &links, 3, 2), Some(vec![4, 0, 1]));
        assert_eq!(route(5, &links, 0, 4), None);
        assert_eq!(route(4, &links, 1, 1), Some(vec![]));
    }
}
