use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use fontis_base::{Address, Ecn, FlowId, Packet, PacketId, Stream, Time};
use fontis_net::{Delivery, Link, LinkConfig};
use fontis_sim::world::observers::capture::Capture;

use super::frame::{Datagram, Frame};

/// A way through a network: links, and the route that the packets of each flow take over them.
#[derive(Debug)]
pub(super) struct Way {
    links: Vec<Link<Frame>>,
    /// The routes, by number; the last entry is for all flows that come after.
    routes: Vec<Route>,
    flows: Flows,
    super_packets: bool,
    next_packet: u64,
    /// Packets that have left, and the ports that they go to.
    out: VecDeque<(Delivery<Frame>, usize)>,
    /// Bytes at the IP layer that left, by route.
    carried: Vec<u64>,
    pub(super) flipped_bits: Stream,
    /// Packets that were no IP packets, or of no flow.
    pub(super) strangers: u64,
    tap: Option<(Tap, Arc<Mutex<Capture>>)>,
}

/// The place of the capture on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tap {
    /// On arrival, before the first link.
    Begin,
    /// Behind the last link.
    End,
}

/// The route of a flow's packets: a row of links, or a tree to the members of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    first: Vec<Hop>,
    /// By link, the hops behind it.
    then: BTreeMap<usize, Vec<Hop>>,
    /// The traffic class of the packets.
    class: u8,
}

/// A place that a packet goes to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// A link, by its number in the way.
    Link(usize),
    /// An interface, by its number in the emulator.
    Port(usize),
}

impl Route {
    /// A row of links that leads to a port.
    pub(super) fn row(links: &[usize], port: usize, class: u8) -> Self {
        let hops = links.iter().map(|link| Hop::Link(*link)).chain([Hop::Port(port)]);
        let mut route = Self { class, ..Self::default() };
        let mut before = None;
        for hop in hops {
            route.add(before, hop);
            before = match hop {
                Hop::Link(link) => Some(link),
                Hop::Port(_) => None,
            };
        }
        route
    }

    /// A route that leads nowhere yet.
    pub(super) fn of_class(class: u8) -> Self {
        Self { class, ..Self::default() }
    }

    /// Adds a hop behind a link, or the first one; each once.
    pub(super) fn add(&mut self, behind: Option<usize>, hop: Hop) {
        let hops = match behind {
            None => &mut self.first,
            Some(link) => self.then.entry(link).or_default(),
        };
        if !hops.contains(&hop) {
            hops.push(hop);
        }
    }

    fn behind(&self, link: usize) -> &[Hop] {
        self.then.get(&link).map_or(&[], Vec::as_slice)
    }
}

/// The fields that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flows {
    /// Addresses and ports make a flow; all take the same route.
    Transport,
    /// The number in the addresses is the flow's and the route's: see [`flow_of`].
    Address,
    /// The same, for a way that carries both directions: a flow's data take route 2n, its answers
    /// route 2n + 1.
    BothSides,
    /// Each ordered pair of so many hosts is a flow: from host i to host j it takes route i·n + j.
    Pairs(usize),
}

/// The bit of a numbered address that says on which side the host is.
pub(super) const SIDE: u16 = 0x8000;

/// The last 16 bits of an address of the testbed: of a host in 10.77.0.0/16 or fd66::/16, or of a
/// group in 239.77.0.0/16.
fn number_of(address: IpAddr) -> Option<u16> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [10 | 239, 77, high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        },
        IpAddr::V6(address) => (address.segments()[0] == 0xfd66).then(|| address.segments()[7]),
    }
}

/// The flow of a host, by its address: the last 15 bits, counted from 1.
fn flow_of(address: IpAddr) -> Option<usize> {
    usize::from(number_of(address)? & !SIDE).checked_sub(1)
}

/// The side of a host, by its address: 0 for senders, 1 for receivers.
fn side_of(address: IpAddr) -> usize {
    usize::from(number_of(address).is_some_and(|number| number & SIDE != 0))
}

impl Way {
    /// A way over links with these names and configurations.
    pub(super) fn new(
        seed: u64,
        links: Vec<(String, LinkConfig)>,
        routes: Vec<Route>,
        flows: Flows,
        super_packets: bool,
    ) -> Self {
        let bits = links.first().map_or("", |(name, _)| name);
        let flipped_bits = Stream::new(seed, &format!("{bits}/flipped bits"));
        let links = links.into_iter().map(|(name, config)| Link::new(name, seed, config));
        Self {
            links: links.collect(),
            out: VecDeque::new(),
            carried: vec![0; routes.len()],
            routes,
            flows,
            super_packets,
            next_packet: 0,
            flipped_bits,
            strangers: 0,
            tap: None,
        }
    }

    /// Lets a capture see the packets at one of its ends.
    pub(super) fn watch(&mut self, at: Tap, capture: Arc<Mutex<Capture>>) {
        self.tap = Some((at, capture));
    }

    /// Gives a flow another route: members of its group have come or gone.
    pub(super) fn set_route(&mut self, number: usize, route: Route) {
        if let Some(old) = self.routes.get_mut(number) {
            *old = route;
        }
    }

    fn capture(&self, at: Tap, route: usize, now: Time, frame: &Frame, ecn: Ecn) {
        // Where both directions share a way, data are seen as they come and answers as they leave.
        let is_tapped = |tap: Tap| match self.flows {
            Flows::BothSides => (at == Tap::Begin) == route.is_multiple_of(2),
            Flows::Transport | Flows::Address | Flows::Pairs(_) => tap == at,
        };
        if let Some((_, capture)) = self.tap.as_ref().filter(|(tap, _)| is_tapped(*tap)) {
            let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
            for packet in frame.packets() {
                let (bytes, original) = packet.beginning(ecn);
                capture.keep(now, &bytes, original);
            }
        }
    }

    pub(super) fn link(&mut self, index: usize) -> &mut Link<Frame> {
        &mut self.links[index]
    }

    /// Bytes at the IP layer that have left of a flow.
    pub(super) fn carried(&self, flow: usize) -> u64 {
        self.carried.get(flow).copied().unwrap_or(0)
    }

    /// Takes a packet that an interface gave at `now`.
    pub(super) fn enter(&mut self, now: Time, bytes: Vec<u8>) {
        let Some((datagram, number)) = self.parse(bytes) else {
            self.strangers += 1;
            return;
        };
        let flow = match self.flows {
            Flows::Transport => FlowId(datagram.flow_hash()),
            Flows::Address | Flows::BothSides | Flows::Pairs(_) => FlowId(number as u32),
        };
        let route = &self.routes[number];
        let (class, first) = (route.class, route.first.clone());
        let (ecn, datagram) = (datagram.ecn(), Arc::new(datagram));
        let segments = datagram.segments();
        if self.tap.is_some() {
            self.capture(Tap::Begin, number, now, &Frame::whole(Arc::clone(&datagram)), ecn);
        }
        let (src, dst) = (Address(0), Address(1));
        let whole = self.super_packets
            || segments == 1
            || first.iter().all(|hop| matches!(hop, Hop::Port(_)));
        let frames: Vec<(Frame, u16)> = match whole {
            true => vec![(Frame::whole(datagram), segments)],
            false => (0..segments).map(|index| (Frame::one(&datagram, index), 1)).collect(),
        };
        for (payload, segments) in frames {
            let id = PacketId(self.next_packet);
            self.next_packet += 1;
            let size = payload.size() as u32;
            let packet =
                Packet { id, src, dst, flow, size, segments, ecn, corrupt: false, class, payload };
            self.pass(now, now, number, &first, packet);
        }
    }

    /// A packet and its route; `None` if it is no IP packet or no flow's.
    fn parse(&self, bytes: Vec<u8>) -> Option<(Datagram, usize)> {
        let datagram = Datagram::parse(bytes)?;
        let last = self.routes.len().checked_sub(1)?;
        let ends = [datagram.source(), datagram.destination()];
        // A subflow's own address is at one end of it, and the highest.
        let flow = |routes: usize| {
            ends.into_iter().filter_map(flow_of).filter(|number| *number < routes).max()
        };
        let number = match self.flows {
            Flows::Transport => 0,
            Flows::Address => flow(self.routes.len())?,
            Flows::BothSides => 2 * flow(self.routes.len() / 2)? + side_of(ends[0]),
            Flows::Pairs(hosts) => {
                let [from, to] = ends.map(|end| flow_of(end).filter(|host| *host < hosts));
                from? * hosts + to?
            }
        };
        Some((datagram, number.min(last)))
    }

    /// Hands a packet that is due at `at` to its next hops, a copy to each.
    fn pass(&mut self, now: Time, at: Time, number: usize, hops: &[Hop], packet: Packet<Frame>) {
        let Some((last, others)) = hops.split_last() else { return };
        for hop in others {
            self.pass_to(now, at, number, *hop, packet.clone());
        }
        self.pass_to(now, at, number, *last, packet);
    }

    fn pass_to(&mut self, now: Time, at: Time, number: usize, hop: Hop, packet: Packet<Frame>) {
        match hop {
            Hop::Link(link) => self.links[link].enter(at, packet),
            Hop::Port(port) => {
                self.capture(Tap::End, number, now, &packet.payload, packet.ecn);
                if let Some(carried) = self.carried.get_mut(number) {
                    *carried += u64::from(packet.size);
                }
                self.out.push_back((Delivery { at, packet }, port));
            }
        }
    }

    /// The time at which the next packet may be due.
    pub(super) fn next(&self) -> Option<Time> {
        self.earliest().map(|(at, _)| at)
    }

    /// The next packet that leaves the way by `now`, in the order of due times, and its port.
    pub(super) fn leave(&mut self, now: Time) -> Option<(Delivery<Frame>, usize)> {
        loop {
            if let Some(out) = self.out.pop_front() {
                return Some(out);
            }
            let (at, index) = self.earliest().filter(|(at, _)| *at <= now)?;
            // Not at `now`: another link's packet may be due before this one's next.
            let Some(delivery) = self.links[index].deliver(at) else { continue };
            let number = match self.flows {
                Flows::Transport => 0,
                Flows::Address | Flows::BothSides | Flows::Pairs(_) => {
                    delivery.packet.flow.0 as usize
                }
            };
            let number = number.min(self.routes.len().saturating_sub(1));
            let hops = self.routes[number].behind(index).to_vec();
            self.pass(now, delivery.at, number, &hops, delivery.packet);
        }
    }

    fn earliest(&self) -> Option<(Time, usize)> {
        let due = |(index, link): (usize, &Link<Frame>)| Some((link.next_delivery()?, index));
        self.links.iter().enumerate().filter_map(due).min()
    }
}
