use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use fontis_base::{Ecn, FlowId, HostId, Packet, PacketId, Stream, Time};
use fontis_net::{Delivery, Link, LinkConfig};
use fontis_sim::Capture;

use super::frame::{Datagram, Frame};

/// One direction through a network: links in a row, and which of them the packets of each flow
/// cross.
#[derive(Debug)]
pub(super) struct Way {
    links: Vec<Link<Frame>>,
    /// The links of each flow, by its number; the last entry is for all further flows.
    routes: Vec<Route>,
    flows: Flows,
    super_packets: bool,
    next_packet: u64,
    /// Bytes at the IP layer that left, by flow; where flows are numbered.
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

/// The links of a flow's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// The links, by their numbers in the way.
    pub(super) links: Vec<usize>,
    /// The traffic class of the packets.
    pub(super) class: u8,
}

/// The fields that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flows {
    /// Addresses and ports make a flow; all take the same route.
    Transport,
    /// The number in the addresses is the flow's: see [`flow_of`].
    Address,
}

/// The bit of a numbered address that says on which side the host is.
pub(super) const SIDE: u16 = 0x8000;

/// The flow of a host, by its address: the last 15 bits, counted from 1.
fn flow_of(address: IpAddr) -> Option<usize> {
    let number = match address {
        IpAddr::V4(address) => u16::from_be_bytes([address.octets()[2], address.octets()[3]]),
        IpAddr::V6(address) => address.segments()[7],
    };
    usize::from(number & !SIDE).checked_sub(1)
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

    fn capture(&self, at: Tap, now: Time, frame: &Frame, ecn: Ecn) {
        if let Some((_, capture)) = self.tap.as_ref().filter(|(tap, _)| *tap == at) {
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

    /// Takes a packet of an interface at `now`. A packet that crosses no link is returned at once.
    pub(super) fn enter(&mut self, now: Time, bytes: Vec<u8>) -> Option<Delivery<Frame>> {
        let Some(datagram) = Datagram::parse(bytes) else {
            self.strangers += 1;
            return None;
        };
        let (flow, number) = match self.flows {
            Flows::Transport => (FlowId(datagram.flow_hash()), 0),
            Flows::Address => {
                // A subflow's own address is at one end of it, and the highest; groups and such are
                // no host of ours.
                let ends = [datagram.source(), datagram.destination()].map(flow_of);
                let number = ends.into_iter().flatten().filter(|n| *n < self.routes.len()).max();
                let Some(number) = number else {
                    self.strangers += 1;
                    return None;
                };
                (FlowId(number as u32), number)
            }
        };
        let Some(route) = self.routes.get(number).or(self.routes.last()) else {
            self.strangers += 1;
            return None;
        };
        let (class, first) = (route.class, route.links.first().copied());
        let (ecn, datagram) = (datagram.ecn(), Arc::new(datagram));
        let segments = datagram.segments();
        if self.tap.is_some() {
            self.capture(Tap::Begin, now, &Frame::whole(Arc::clone(&datagram)), ecn);
        }
        let mut packet = |frame: Frame, segments| {
            let id = PacketId(self.next_packet);
            self.next_packet += 1;
            let size = frame.size() as u32;
            let (src, dst) = (HostId(0), HostId(1));
            let payload = frame;
            Packet { id, src, dst, flow, size, segments, ecn, corrupt: false, class, payload }
        };
        let Some(first) = first else {
            let delivery = Delivery { at: now, packet: packet(Frame::whole(datagram), segments) };
            self.capture(Tap::End, now, &delivery.packet.payload, ecn);
            return Some(delivery);
        };
        if self.super_packets || segments == 1 {
            let packet = packet(Frame::whole(datagram), segments);
            self.links[first].enter(now, packet);
        } else {
            for index in 0..segments {
                let packet = packet(Frame::one(&datagram, index), 1);
                self.links[first].enter(now, packet);
            }
        }
        None
    }

    /// The time at which the next packet may be due.
    pub(super) fn next(&self) -> Option<Time> {
        self.earliest().map(|(at, _)| at)
    }

    /// The next packet that leaves the way by `now`, in the order of due times.
    pub(super) fn leave(&mut self, now: Time) -> Option<Delivery<Frame>> {
        while let Some((at, index)) = self.earliest().filter(|(at, _)| *at <= now) {
            // Not at `now`: another link's packet may be due before this one's next.
            let Some(delivery) = self.links[index].deliver(at) else { continue };
            let number = match self.flows {
                Flows::Transport => 0,
                Flows::Address => delivery.packet.flow.0 as usize,
            };
            let links = &self.routes[number.min(self.routes.len() - 1)].links;
            let place = links.iter().position(|link| *link == index);
            match place.and_then(|place| links.get(place + 1)).copied() {
                Some(next) => self.links[next].enter(delivery.at, delivery.packet),
                None => {
                    let packet = &delivery.packet;
                    self.capture(Tap::End, now, &packet.payload, packet.ecn);
                    if let Some(carried) = self.carried.get_mut(number) {
                        *carried += u64::from(delivery.packet.size);
                    }
                    return Some(delivery);
                }
            }
        }
        None
    }

    fn earliest(&self) -> Option<(Time, usize)> {
        let due = |(index, link): (usize, &Link<Frame>)| Some((link.next_delivery()?, index));
        self.links.iter().enumerate().filter_map(due).min()
    }
}
