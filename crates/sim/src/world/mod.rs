//! Nodes, wires and virtual time.

mod agenda;
pub mod drops;
pub mod element;
pub mod graph;
pub mod group;
mod lookahead;
pub mod network;
pub mod observers;
pub mod switch;

use std::collections::BTreeMap;

use fontis_base::{Address, Packet, PacketId, Port, Time};
use fontis_net::Bundle;

use crate::host::payload::Payload;
use crate::host::tcp::pass_wire;
use crate::world::agenda::Agenda;
use crate::world::drops::SimLink;
use crate::world::element::Element;
use crate::world::observers::Observers;
use crate::world::observers::capture::Capture;
use crate::world::observers::qlog::Qlog;
use crate::world::observers::recorder::Recorder;
use crate::world::switch::{NodeIndex, Switch};

/// As small as can be: every packet passes several of them.
pub(crate) struct Slot {
    pub(crate) element: Element,
    /// Where the first port leads, node and port: nearly all nodes have one only. [`NOWHERE`] if
    /// there is none.
    pub(crate) to: u32,
    pub(crate) to_port: Port,
    /// A host, and the node at which the switches behind the first port let packets to it arrive;
    /// [`NOWHERE`] if none is known. The last one asked for: most nodes send to one host only.
    pub(crate) known: (Address, u32),
    /// It waits to be drained.
    touched: bool,
}

const NOWHERE: u32 = u32::MAX;
const UNKNOWN: (Address, u32) = (Address(0), NOWHERE);

/// So many nodes stay in the processor's cache by themselves.
const FEW: usize = 4000;

/// Nodes, wires, and virtual time.
///
/// Every node has at most one pending event; events at the same time come in the order in which
/// they were made, so a run is the same every time.
#[derive(Default)]
pub struct World {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda<Slot>,
    /// Where the other ports lead, by node, of those that have others.
    more_wires: BTreeMap<u32, Vec<(u32, Port)>>,
    processed: u64,
    /// Copies that switches have made.
    copies: u64,
    /// Nodes to be drained, kept for its memory.
    touched: Vec<u32>,
    /// Some node knows what switches said.
    knows: bool,
    observers: Option<Box<Observers>>,
}

impl World {
    /// A world without nodes, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for so many nodes more.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.agenda.reserve(nodes);
    }

    /// Adds a node.
    pub fn add(&mut self, element: Element) -> NodeIndex {
        self.agenda.add(Slot { element, to: NOWHERE, to_port: 0, known: UNKNOWN, touched: false })
    }

    /// Leads what leaves `from` by the next of its ports to port `port` of `to`; returns the port
    /// of `from`.
    pub fn wire(&mut self, from: NodeIndex, to: NodeIndex, port: Port) -> Port {
        let slot = &mut self.agenda[from];
        if slot.to == NOWHERE {
            (slot.to, slot.to_port) = (to as u32, port);
            return 0;
        }
        let more = self.more_wires.entry(from as u32).or_default();
        more.push((to as u32, port));
        more.len() as Port
    }

    fn observers(&mut self) -> &mut Observers {
        self.observers.get_or_insert_default()
    }

    /// Listens to what nodes send and receive from now on.
    pub fn set_capture(&mut self, capture: Capture) {
        self.observers().capture = Some(capture);
    }

    /// What was heard.
    pub fn capture(&self) -> Option<&Capture> {
        self.observers.as_ref()?.capture.as_ref()
    }

    /// Logs packets and events from now on.
    pub fn set_qlog(&mut self, qlog: Qlog) {
        for node in qlog.nodes_with_events() {
            if let Element::Host(host) = &mut self.agenda[node as usize].element {
                host.keep_events();
            }
        }
        self.observers().qlog = Some(qlog);
    }

    /// What is told in a qlog.
    pub fn qlog_mut(&mut self) -> Option<&mut Qlog> {
        self.observers.as_mut()?.qlog.as_mut()
    }

    /// Watches packets from now on.
    pub fn set_recorder(&mut self, recorder: Recorder) {
        for slot in self.agenda.iter_mut() {
            if let Element::Link(link) = &mut slot.element {
                link.observer_mut().watch();
            }
        }
        self.observers().recorder = Some(recorder);
    }

    /// Who watches packets.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.observers.as_ref()?.recorder.as_ref()
    }

    /// Who watches packets, to be told more.
    pub fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.observers.as_mut()?.recorder.as_mut()
    }

    /// Takes who watched packets.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.observers.as_mut()?.recorder.take()
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub const fn processed(&self) -> u64 {
        self.processed
    }

    /// A link.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn link(&self, index: NodeIndex) -> &SimLink {
        match &self.agenda[index].element {
            Element::Link(link) => link,
            _ => panic!("node {index} is no link"),
        }
    }

    /// A link, to be observed or changed.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn link_mut(&mut self, index: NodeIndex) -> &mut SimLink {
        match &mut self.agenda[index].element {
            Element::Link(link) => link,
            _ => panic!("node {index} is no link"),
        }
    }

    /// A bundle, to be given lines.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn bundle_mut(&mut self, index: NodeIndex) -> &mut Bundle<Payload> {
        match &mut self.agenda[index].element {
            Element::Bundle(bundle) => bundle,
            _ => panic!("node {index} is no bundle"),
        }
    }

    /// A node.
    pub fn element(&self, index: NodeIndex) -> &Element {
        &self.agenda[index].element
    }

    /// A node, to be changed.
    pub(crate) fn element_mut(&mut self, index: NodeIndex) -> &mut Element {
        &mut self.agenda[index].element
    }

    /// A switch, to be told ways.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn switch_mut(&mut self, index: NodeIndex) -> &mut Switch {
        if core::mem::take(&mut self.knows) {
            self.agenda.iter_mut().for_each(|slot| slot.known = UNKNOWN);
        }
        match &mut self.agenda[index].element {
            Element::Switch(switch) => switch,
            _ => panic!("node {index} is no switch"),
        }
    }

    /// Lets every node have its first say.
    pub fn start(&mut self) {
        for index in 0..self.agenda.len() {
            self.drain(index as u32);
            self.settle();
        }
    }

    /// Processes the next event, if it comes no later than `until`; false if there is none.
    pub fn step(&mut self, until: Time) -> bool {
        while let Some((at, index)) = self.agenda.pop(until) {
            if self.agenda.len() > FEW {
                self.look_ahead();
            }
            let element = &self.agenda[index as usize].element;
            // A host that has put its deadline off is asked when the old one comes: that is cheaper
            // than moving an event with every acknowledgement.
            if !matches!(element, Element::Link(_) | Element::Bundle(_)) {
                match element.timeout() {
                    None => continue,
                    Some(due) if due > at => {
                        self.agenda.set(index, due);
                        continue;
                    }
                    Some(_) => {}
                }
            }
            self.now = at;
            self.processed += 1;
            self.drain(index);
            self.settle();
            return true;
        }
        self.now = self.now.max(until);
        false
    }

    /// Runs until `done` says so, nothing is left to happen, or time `until` has come; true in the
    /// first case.
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

    /// Runs until time `until` has come.
    pub fn run_to(&mut self, until: Time) {
        while self.step(until) {}
    }

    fn touch(&mut self, index: u32) {
        let slot = &mut self.agenda[index as usize];
        if !slot.touched {
            slot.touched = true;
            self.touched.push(index);
        }
    }

    /// Drains the touched nodes.
    fn settle(&mut self) {
        while let Some(index) = self.touched.pop() {
            self.agenda[index as usize].touched = false;
            self.drain(index);
        }
    }

    /// Passes on what a node gives, and schedules its next event.
    ///
    /// The protocol is that of [`Node`](fontis_base::Node): poll until nothing comes, then read the
    /// time-out. Links, bundles and TCP hosts have narrower calls beside it, which mean the same;
    /// the functions below give the reasons.
    fn drain(&mut self, index: u32) {
        let next = match self.agenda[index as usize].element {
            Element::Link(_) => self.drain_link(index),
            Element::Bundle(_) => self.drain_bundle(index),
            _ => self.drain_host(index),
        };
        if self.observers.is_some() {
            self.tell_drained(index);
        }
        if self.agenda.len() > FEW {
            self.look_along(index);
        }
        // If there is none, or a later one, the event that is pending comes too early, which is
        // found out then.
        if let Some(next) = next {
            self.agenda.set_no_later(index, next);
        }
    }

    /// Passes on what a host gives; when it is to be asked again.
    ///
    /// A TCP host says first that a segment leaves, so that the packet is made where the next node
    /// finds it: a packet in an `Option` would be copied, in words of another size than it was
    /// written in, and the copy would wait for the memory.
    fn drain_host(&mut self, index: u32) -> Option<Time> {
        loop {
            match &mut self.agenda[index as usize].element {
                Element::Tcp(host) => {
                    let wire = host.passes_wire();
                    let Some(outgoing) = host.next(self.now) else {
                        return Some(host.rest(self.now)).filter(|at| *at < Time::MAX);
                    };
                    let packet = outgoing.packet();
                    match wire {
                        false => self.forward(index, 0, packet),
                        true => self.forward(index, 0, pass_wire(packet)),
                    }
                }
                other => {
                    let Some((port, packet)) = other.poll_host(self.now) else { break };
                    self.forward(index, port, packet);
                }
            }
        }
        self.agenda[index as usize].element.timeout()
    }

    /// Passes on what a link delivers; when it is to be asked again.
    ///
    /// A link as a node also wakes when its queue moves. The world needs deliveries alone, and half
    /// as many events; a link computes its queue when it is touched. It is asked for nothing that
    /// is not due, because packets that enter a link mostly make nothing due.
    fn drain_link(&mut self, index: u32) -> Option<Time> {
        loop {
            let Element::Link(link) = &mut self.agenda[index as usize].element else { return None };
            let next = link.next_delivery();
            if next.is_none_or(|at| at > self.now) {
                return next;
            }
            // What was to come may have been dropped as it left the queue, or be still on the line.
            let Some(delivery) = link.deliver(self.now) else { return link.next_delivery() };
            self.forward(index, 0, delivery.packet);
        }
    }

    /// The same for a bundle, which is no node: it computes a delivery as its packet enters, so
    /// nothing else happens in it.
    fn drain_bundle(&mut self, index: u32) -> Option<Time> {
        loop {
            let Element::Bundle(bundle) = &mut self.agenda[index as usize].element else {
                return None;
            };
            let Some(delivery) = bundle.deliver(self.now) else {
                return Some(bundle.next_delivery()).filter(|at| *at < Time::MAX);
            };
            self.forward(index, 0, delivery.packet);
        }
    }

    #[cold]
    fn tell_drained(&mut self, index: u32) {
        if let Some(observers) = &mut self.observers {
            observers.drained(index, &mut self.agenda[index as usize].element);
        }
    }

    /// Where what leaves a node by a port comes to.
    fn way(&self, from: u32, port: Port) -> Option<(u32, Port)> {
        if port > 0 {
            return self.more_wires.get(&from)?.get(port as usize - 1).copied();
        }
        let slot = &self.agenda[from as usize];
        (slot.to != NOWHERE).then_some((slot.to, slot.to_port))
    }

    /// The node at which packets to a host arrive that leave a node by a port, and the port there:
    /// behind all switches on the way.
    fn beyond(&mut self, from: u32, by: Port, host: Address) -> Option<(u32, Port)> {
        // A switch leads to the first port of the next node: hosts behind switches have no other.
        let (mut to, port) = self.way(from, by)?;
        while let Element::Switch(switch) = &mut self.agenda[to as usize].element {
            to = switch.way(host)? as u32;
        }
        if by == 0 {
            self.agenda[from as usize].known = (host, to);
            self.knows = true;
        }
        Some((to, port))
    }

    /// Brings a packet to the node that its wire leads to.
    fn forward(&mut self, from: u32, by: Port, packet: Packet<Payload>) {
        if self.observers.is_some() {
            return self.forward_watched(from, by, packet);
        }
        let Slot { known, to_port, .. } = self.agenda[from as usize];
        let (to, port) = match known.0 == packet.dst && known.1 != NOWHERE && by == 0 {
            true => (known.1, to_port),
            false if packet.dst.is_group() => return self.forward_to_group(from, by, packet),
            false => match self.beyond(from, by, packet.dst) {
                Some(there) => there,
                None => return,
            },
        };
        match &mut self.agenda[to as usize].element {
            Element::Link(link) => {
                // If so, what comes next stays the same.
                let moves = link.is_moving();
                link.enter(self.now, packet);
                if moves {
                    return;
                }
            }
            Element::Bundle(bundle) => {
                if !bundle.enter(self.now, port, packet) {
                    return;
                }
            }
            other => other.handle(self.now, port, packet),
        }
        self.touch(to);
    }

    /// The same, if there are observers.
    #[cold]
    fn forward_watched(&mut self, from: u32, by: Port, packet: Packet<Payload>) {
        if self.way(from, by).is_none() {
            return;
        }
        if let Some(observers) = &mut self.observers {
            observers.leaves(self.now, from, &packet);
        }
        if packet.dst.is_group() {
            return self.forward_to_group(from, by, packet);
        }
        let Some((to, port)) = self.beyond(from, by, packet.dst) else { return };
        self.arrive(to, port, packet);
    }

    /// Brings a packet to a node, and tells the observers.
    fn arrive(&mut self, to: u32, port: Port, packet: Packet<Payload>) {
        let element = &mut self.agenda[to as usize].element;
        let flow = packet.flow;
        if let Some(observers) = &mut self.observers {
            observers.comes(self.now, to, &packet);
        }
        element.handle(self.now, port, packet);
        if let Some(observers) = &mut self.observers {
            observers.handled(self.now, to, flow, element);
        }
        self.touch(to);
    }

    /// Brings a copy of a packet to each node that leads to members of its group: one for each
    /// link.
    #[cold]
    fn forward_to_group(&mut self, from: u32, by: Port, packet: Packet<Payload>) {
        let Some((to, port)) = self.way(from, by) else { return };
        let mut ends = Vec::new();
        let mut next = vec![(to, port)];
        while let Some((to, port)) = next.pop() {
            match &mut self.agenda[to as usize].element {
                Element::Switch(switch) => {
                    let ways = switch.group_ways(packet.src, packet.dst);
                    next.extend(ways.iter().rev().map(|to| (*to, 0)));
                }
                _ => ends.push((to, port)),
            }
        }
        let Some(((first, port), others)) = ends.split_first() else {
            if let Some(observers) = &mut self.observers {
                observers.ends(self.now, &packet);
            }
            return;
        };
        for (to, port) in others {
            self.copies += 1;
            let copy = Packet { id: PacketId(COPY | self.copies), ..packet.clone() };
            if let Some(observers) = &mut self.observers {
                observers.copied(self.now, &packet, &copy);
            }
            self.arrive(*to, *port, copy);
        }
        self.arrive(*first, *port, packet);
    }
}

/// The identifiers of copies that switches make.
const COPY: u64 = 1 << 63;
