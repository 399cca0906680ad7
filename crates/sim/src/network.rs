use fontis_base::HostId;
use fontis_net::LinkConfig;

use crate::drops::link;
use crate::{Element, NodeIndex, World};

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
                let link = link(name, self.seed, config).unnamed();
                let link = self.world.add(Element::Link(Box::new(link)));
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

/// For each router, the first link of the way that leads there from `from`; links lead from one router to another.
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

/// The links that packets from one router to another cross, in their order; `None` if no way leads there.
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
