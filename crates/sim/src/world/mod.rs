//! Nodes, wires and virtual time.

mod agenda;
pub mod drops;
mod lookahead;
pub mod network;
pub mod observers;
pub mod switch;

use std::collections::BTreeMap;

use fontis_base::{HostId, Node, Packet, Port, Time};
use fontis_net::Bundle;

use crate::host::controller::Controller;
use crate::host::datagram::DatagramHost;
use crate::host::dfcp::Host;
use crate::host::payload::Payload;
use crate::host::published::PublishedHost;
use crate::host::tcp::TcpHost;
use crate::host::tcp::pass_wire;
use crate::world::agenda::Agenda;
use crate::world::drops::SimLink;
use crate::world::observers::Watchers;
use crate::world::observers::capture::Capture;
use crate::world::observers::qlog::Qlog;
use crate::world::observers::recorder::Recorder;
use crate::world::switch::Switch;

/// Names a node of a world.
pub type NodeIndex = usize;

/// A node of a world. All are boxed: of thousands of nodes what says where they are and where they
/// lead stays in the processor's cache.
pub enum Element {
    /// One direction of a path.
    Link(Box<SimLink>),
    /// The links of many hosts to one router.
    Bundle(Box<Bundle<Payload>>),
    /// Where DFCP flows begin and end.
    Host(Box<Host>),
    /// Where TCP flows begin and end.
    Tcp(Box<TcpHost>),
    /// Where flows of the DFCP of 2015 begin and end.
    Published(Box<PublishedHost>),
    /// Who tells senders their rates.
    Controller(Box<Controller>),
    /// Where datagrams without a transport begin and end.
    Datagram(Box<DatagramHost>),
    /// Where the ways of several hosts part.
    Switch(Box<Switch>),
}

impl Element {
    fn handle(&mut self, now: Time, port: Port, packet: Packet<Payload>) {
        match self {
            Self::Link(link) => link.enter(now, packet),
            Self::Bundle(bundle) => _ = bundle.enter(now, port, packet),
            Self::Tcp(host) => host.handle(now, packet),
            other => other.handle_other(now, port, packet),
        }
    }

    #[inline(never)]
    fn handle_other(&mut self, now: Time, port: Port, packet: Packet<Payload>) {
        match self {
            Self::Host(host) => host.handle(now, port, packet),
            Self::Published(host) => host.handle(now, port, packet),
            Self::Controller(host) => host.handle(now, port, packet),
            Self::Datagram(host) => host.handle(now, port, packet),
            Self::Link(_) | Self::Bundle(_) | Self::Tcp(_) => {}
            Self::Switch(_) => unreachable!("a switch forwards at once"),
        }
    }

    /// What leaves a node that is neither link nor TCP, apart from them: the loop that all packets
    /// go through stays small.
    #[inline(never)]
    fn poll_other(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        match self {
            Self::Host(host) => host.poll(now),
            Self::Published(host) => host.poll(now),
            Self::Controller(host) => host.poll(now),
            Self::Datagram(host) => host.poll(now),
            Self::Link(_) | Self::Bundle(_) | Self::Tcp(_) | Self::Switch(_) => None,
        }
    }

    #[inline]
    fn timeout(&self) -> Option<Time> {
        match self {
            // What moves inside a link is computed when it is next touched.
            Self::Link(link) => link.next_delivery(),
            Self::Bundle(bundle) => Some(bundle.next_delivery()).filter(|at| *at < Time::MAX),
            Self::Tcp(host) => Some(host.deadline()).filter(|at| *at < Time::MAX),
            other => other.other_timeout(),
        }
    }

    #[inline(never)]
    fn other_timeout(&self) -> Option<Time> {
        let timeout = match self {
            Self::Host(host) => host.timeout(),
            Self::Published(host) => host.timeout(),
            Self::Controller(host) => host.timeout(),
            Self::Datagram(host) => host.timeout(),
            Self::Link(_) | Self::Bundle(_) | Self::Tcp(_) | Self::Switch(_) => None,
        };
        timeout.map(|(at, _)| at)
    }
}

/// As small as can be: every packet passes several of them.
pub(crate) struct Slot {
    pub(crate) element: Element,
    /// Where the first port leads, node and port: nearly all nodes have one only. [`NOWHERE`] if
    /// there is none.
    pub(crate) to: u32,
    pub(crate) to_port: Port,
    /// A host, and the node at which the switches behind the first port let packets to it arrive;
    /// [`NOWHERE`] if none is known. The last one asked for: most nodes send to one host only.
    pub(crate) known: (HostId, u32),
    /// It waits to be drained.
    touched: bool,
}

const NOWHERE: u32 = u32::MAX;
const UNKNOWN: (HostId, u32) = (HostId(0), NOWHERE);

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
    /// Nodes to be drained, kept for its memory.
    touched: Vec<u32>,
    /// Some node knows what switches said.
    knows: bool,
    watchers: Option<Box<Watchers>>,
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

    fn watchers(&mut self) -> &mut Watchers {
        self.watchers.get_or_insert_default()
    }

    /// Listens to what nodes send and receive from now on.
    pub fn set_capture(&mut self, capture: Capture) {
        self.watchers().capture = Some(capture);
    }

    /// What was heard.
    pub fn capture(&self) -> Option<&Capture> {
        self.watchers.as_ref()?.capture.as_ref()
    }

    /// Tells in a qlog what its nodes do from now on.
    pub fn set_qlog(&mut self, qlog: Qlog) {
        for (node, slot) in (0..).zip(self.agenda.iter_mut()) {
            if let Element::Host(host) = &mut slot.element
                && qlog.tells(node)
            {
                host.keep_trace();
            }
        }
        self.watchers().qlog = Some(qlog);
    }

    /// What is told in a qlog.
    pub fn qlog_mut(&mut self) -> Option<&mut Qlog> {
        self.watchers.as_mut()?.qlog.as_mut()
    }

    /// Watches packets from now on.
    pub fn set_recorder(&mut self, recorder: Recorder) {
        for slot in self.agenda.iter_mut() {
            if let Element::Link(link) = &mut slot.element {
                link.observer_mut().watch();
            }
        }
        self.watchers().recorder = Some(recorder);
    }

    /// Who watches packets.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.watchers.as_ref()?.recorder.as_ref()
    }

    /// Who watches packets, to be told more.
    pub fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.watchers.as_mut()?.recorder.as_mut()
    }

    /// Takes who watched packets.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.watchers.as_mut()?.recorder.take()
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub const fn processed(&self) -> u64 {
        self.processed
    }

    /// A DFCP host.
    ///
    /// # Panics
    /// If the node is not one.
    pub fn host(&self, index: NodeIndex) -> &Host {
        match &self.agenda[index].element {
            Element::Host(host) => host,
            _ => panic!("node {index} is no DFCP host"),
        }
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
    fn drain(&mut self, index: u32) {
        let next = match self.agenda[index as usize].element {
            Element::Link(_) => self.drain_link(index),
            Element::Bundle(_) => self.drain_bundle(index),
            _ => self.drain_host(index),
        };
        if self.watchers.is_some() {
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
    fn drain_host(&mut self, index: u32) -> Option<Time> {
        loop {
            match &mut self.agenda[index as usize].element {
                Element::Tcp(host) => {
                    let wire = host.passes_wire();
                    let Some(outgoing) = host.next(self.now) else { break };
                    let packet = outgoing.packet(self.now);
                    match wire {
                        false => self.forward(index, 0, packet),
                        true => self.forward(index, 0, pass_wire(packet)),
                    }
                }
                other => {
                    let Some((port, packet)) = other.poll_other(self.now) else { break };
                    self.forward(index, port, packet);
                }
            }
        }
        self.agenda[index as usize].element.timeout()
    }

    /// Passes on what a link delivers; when it is to be asked again. It is asked for nothing that
    /// is not due.
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

    /// The same for a bundle.
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
        if let Some(watchers) = &mut self.watchers {
            watchers.drained(index, &mut self.agenda[index as usize].element);
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
    fn beyond(&mut self, from: u32, by: Port, host: HostId) -> Option<(u32, Port)> {
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
        if self.watchers.is_some() {
            return self.forward_watched(from, by, packet);
        }
        let Slot { known, to_port, .. } = self.agenda[from as usize];
        let (to, port) = match known.0 == packet.dst && known.1 != NOWHERE && by == 0 {
            true => (known.1, to_port),
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

    /// The same, if somebody looks on.
    #[cold]
    fn forward_watched(&mut self, from: u32, by: Port, packet: Packet<Payload>) {
        if self.way(from, by).is_none() {
            return;
        }
        if let Some(watchers) = &mut self.watchers {
            watchers.leaves(self.now, from, &packet);
        }
        let Some((to, port)) = self.beyond(from, by, packet.dst) else { return };
        let element = &mut self.agenda[to as usize].element;
        if let Some(watchers) = &mut self.watchers {
            watchers.comes(self.now, to, &packet);
        }
        element.handle(self.now, port, packet);
        if let Some(watchers) = &mut self.watchers {
            watchers.handled(self.now, to, element);
        }
        self.touch(to);
    }
}
