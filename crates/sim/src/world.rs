use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fontis_base::{Node, Packet, Port, Time};
use fontis_net::Link;

use crate::{Host, Payload, Switch};

/// Names a node of a world.
pub type NodeIndex = usize;

/// A node of a world.
#[expect(
    clippy::large_enum_variant,
    reason = "nodes are few, and boxes would cost a miss at every event"
)]
pub enum Element {
    /// One direction of a path.
    Link(Link<Payload>),
    /// Where flows begin and end.
    Host(Host),
    /// Where the ways of several hosts part.
    Switch(Switch),
}

impl Element {
    fn node(&mut self) -> &mut dyn Node<Payload> {
        match self {
            Self::Link(link) => link,
            Self::Host(host) => host,
            Self::Switch(switch) => switch,
        }
    }
}

struct Slot {
    element: Element,
    /// Where each port leads: a node and its port.
    wires: Vec<(NodeIndex, Port)>,
    /// The one event that is pending for the node, if any.
    pending: Option<Time>,
}

/// Nodes, wires, and virtual time.
///
/// Every node has at most one pending event; events at the same time come in the order in which they were made, so a
/// run is the same every time.
#[derive(Default)]
pub struct World {
    now: Time,
    slots: Vec<Slot>,
    events: BinaryHeap<Reverse<(Time, u64, NodeIndex)>>,
    sequence: u64,
    processed: u64,
}

impl World {
    /// A world without nodes, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn add(&mut self, element: Element) -> NodeIndex {
        self.slots.push(Slot { element, wires: Vec::new(), pending: None });
        self.slots.len() - 1
    }

    /// Leads what leaves `from` by the next of its ports to port `port` of `to`; returns the port of `from`.
    pub fn wire(&mut self, from: NodeIndex, to: NodeIndex, port: Port) -> Port {
        self.slots[from].wires.push((to, port));
        (self.slots[from].wires.len() - 1) as Port
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub const fn processed(&self) -> u64 {
        self.processed
    }

    /// A host.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn host(&self, index: NodeIndex) -> &Host {
        match &self.slots[index].element {
            Element::Host(host) => host,
            Element::Link(_) | Element::Switch(_) => panic!("node {index} is no host"),
        }
    }

    /// A link.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn link(&self, index: NodeIndex) -> &Link<Payload> {
        match &self.slots[index].element {
            Element::Link(link) => link,
            Element::Host(_) | Element::Switch(_) => panic!("node {index} is no link"),
        }
    }

    /// Lets every node have its first say.
    pub fn start(&mut self) {
        for index in 0..self.slots.len() {
            self.settle(index);
        }
    }

    /// Processes the next event, if it comes no later than `until`; false if there is none.
    pub fn step(&mut self, until: Time) -> bool {
        while let Some(Reverse((at, _, index))) = self.events.peek().copied() {
            if at > until {
                return false;
            }
            self.events.pop();
            if self.slots[index].pending != Some(at) {
                continue;
            }
            self.slots[index].pending = None;
            self.now = at;
            self.processed += 1;
            self.settle(index);
            return true;
        }
        false
    }

    /// Runs until `done` says so, nothing is left to happen, or time `until` has come; true in the first case.
    pub fn run_until(&mut self, until: Time, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return done(self);
            }
        }
    }

    /// Drains a node after it was touched, passes on what it gives, and schedules its next event.
    fn settle(&mut self, first: NodeIndex) {
        let mut touched = vec![first];
        while let Some(index) = touched.pop() {
            while let Some((port, packet)) = self.slots[index].element.node().poll(self.now) {
                let Some(&(to, port)) = self.slots[index].wires.get(usize::from(port)) else {
                    continue;
                };
                self.deliver(to, port, packet);
                touched.push(to);
            }
            let next = self.slots[index].element.node().timeout().map(|(at, _)| at.max(self.now));
            if next != self.slots[index].pending {
                self.slots[index].pending = next;
                if let Some(at) = next {
                    self.sequence += 1;
                    self.events.push(Reverse((at, self.sequence, index)));
                }
            }
        }
    }

    fn deliver(&mut self, to: NodeIndex, port: Port, packet: Packet<Payload>) {
        self.slots[to].element.node().handle(self.now, port, packet);
    }
}
