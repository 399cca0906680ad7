//! A world under construction: routers, machines, links and hosts.

use std::collections::BTreeMap;

use fontis_base::{Address, Duration, Port, Rate};
use fontis_net::{Bundle, LinkConfig};

use crate::host::shared::SharedHost;
use crate::world::World;
use crate::world::drops::link;
use crate::world::element::Element;
use crate::world::graph::{Graph, GraphLink, VertexIndex};
use crate::world::group::Groups;
use crate::world::switch::NodeIndex;

/// A world under construction: routers, links between them, and hosts behind them. Packets take the
/// way with the fewest links; of several such, the one whose first link was made first.
#[derive(Default)]
pub struct Network {
    world: World,
    seed: u64,
    vertices: Vec<Vertex>,
    links: Vec<GraphLink>,
    /// The lines of hosts that lead to a router, by rate, delay and jitter.
    bundles: BTreeMap<(VertexIndex, Rate, Duration, Duration), NodeIndex>,
    /// Each host of a flow's own, its router, and the node by which packets reach it from there.
    hosts: Vec<(Address, VertexIndex, NodeIndex)>,
    /// Each interface of a machine: its address, and the link that leads to it.
    interfaces: Vec<(Address, usize)>,
}

/// A place that links join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vertex {
    Router(NodeIndex),
    Machine(NodeIndex),
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
    pub fn router(&mut self) -> VertexIndex {
        let node = self.world.add(Element::Switch(Box::default()));
        self.vertices.push(Vertex::Router(node));
        self.vertices.len() - 1
    }

    /// Adds a machine for any number of flows. Its interfaces come with [`interface`].
    ///
    /// [`interface`]: Self::interface
    pub fn machine(&mut self) -> VertexIndex {
        let node = self.world.add(Element::Host(Box::<SharedHost>::default()));
        self.vertices.push(Vertex::Machine(node));
        self.vertices.len() - 1
    }

    /// The node of a router or a machine.
    pub fn node(&self, vertex: VertexIndex) -> NodeIndex {
        match self.vertices[vertex] {
            Vertex::Router(node) | Vertex::Machine(node) => node,
        }
    }

    /// The host of a machine.
    ///
    /// # Panics
    /// If the vertex is a router.
    pub fn machine_mut(&mut self, vertex: VertexIndex) -> &mut SharedHost {
        let node = self.node(vertex);
        self.world.element_mut(node).shared_mut().expect("the vertex is a machine")
    }

    fn switch(&self, router: VertexIndex) -> NodeIndex {
        match self.vertices[router] {
            Vertex::Router(node) => node,
            Vertex::Machine(_) => panic!("vertex {router} is a machine, not a router"),
        }
    }

    /// Adds a link from one vertex to another, in this direction only.
    pub fn link(
        &mut self,
        name: &str,
        from: VertexIndex,
        to: VertexIndex,
        config: LinkConfig,
    ) -> NodeIndex {
        let node = self.world.add(Element::Link(Box::new(link(name, self.seed, config))));
        if let Vertex::Router(switch) = self.vertices[to] {
            self.world.wire(node, switch, 0);
        }
        self.links.push(GraphLink { from, to, node });
        node
    }

    /// Gives a machine its next interface: packets leave it by link `out` and come by link `back`,
    /// by their order. Returns the port.
    pub fn interface(
        &mut self,
        machine: VertexIndex,
        address: Address,
        out: usize,
        back: usize,
    ) -> Port {
        let node = self.node(machine);
        let port = self.world.wire(node, self.links[out].node, 0);
        self.world.wire(self.links[back].node, node, port);
        self.interfaces.push((address, back));
        port
    }

    /// Adds a host behind a router, with a link that leads from it, or none if packets get there at
    /// once. The router's links must have been added before.
    pub fn host(
        &mut self,
        address: Address,
        router: VertexIndex,
        element: Element,
        uplink: Option<(&str, LinkConfig)>,
    ) -> NodeIndex {
        let host = self.world.add(element);
        let (first, port) = match uplink {
            None => (self.switch(router), 0),
            Some((name, config)) => self.uplink(name, router, config),
        };
        self.world.wire(host, first, port);
        self.hosts.push((address, router, host));
        host
    }

    /// Makes the link of a host to a router: where packets enter it.
    fn uplink(&mut self, name: &str, router: VertexIndex, config: LinkConfig) -> (NodeIndex, Port) {
        // Where much would wait for slow lines, all of it in one order would take longer than each
        // line by itself.
        let mut beyond = self.links.iter().filter(|link| link.from == router);
        let is_fast = beyond.all(|link| self.world.link(link.node).rate() <= config.rate);
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

    fn add_before(&mut self, router: VertexIndex, element: Element) -> NodeIndex {
        let node = self.world.add(element);
        self.world.wire(node, self.switch(router), 0);
        node
    }

    /// Adds a host that has a way of its own to some others, by their second port.
    pub fn aside(
        &mut self,
        id: Address,
        element: Element,
        others: impl IntoIterator<Item = (Address, NodeIndex)>,
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

    /// Tells every router the ways to all hosts, and gives the world, ready to start, with the
    /// routing of its groups.
    pub fn build(mut self) -> (World, Groups) {
        let graph = self.graph();
        let hosts = self.hosts.iter().map(|(address, ..)| *address);
        let last = hosts.chain(self.interfaces.iter().map(|(address, _)| *address)).max();
        for router in 0..self.vertices.len() {
            let Vertex::Router(switch) = self.vertices[router] else { continue };
            let first = graph.first_links(router);
            if let Some(last) = last {
                self.world.switch_mut(switch).reserve(last);
            }
            let towards = |to: VertexIndex, there: NodeIndex| match to == router {
                true => Some(there),
                false => first[to].map(|link| self.links[link].node),
            };
            let hosts = self.hosts.iter().map(|&(address, at, node)| (address, towards(at, node)));
            let interfaces = self.interfaces.iter().map(|&(address, back)| {
                let back = self.links[back];
                (address, towards(back.from, back.node))
            });
            let ways: Vec<_> = hosts.chain(interfaces).collect();
            for (address, way) in ways {
                if let Some(way) = way {
                    self.world.switch_mut(switch).route(address, way);
                }
            }
        }
        let switches = self.vertices.iter().map(|vertex| match vertex {
            Vertex::Router(node) => Some(*node),
            Vertex::Machine(_) => None,
        });
        let groups = Groups::new(switches.collect(), self.links);
        (self.world, groups)
    }

    fn graph(&self) -> Graph {
        Graph {
            forwards: self.vertices.iter().map(|v| matches!(v, Vertex::Router(_))).collect(),
            links: self.links.iter().map(|link| (link.from, link.to)).collect(),
        }
    }
}
