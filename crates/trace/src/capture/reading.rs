use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use fontis_base::Time;

use super::clocks::identity;
use super::flow_key::{End, FlowKey, key};
use super::frames::Frames;
use super::mptcp::{Connections, Subflow};
use super::views::Views;
use super::wire::ip_packet::{IpPacket, Protocol};
use crate::builder::Builder;
use crate::capture::wire::mptcp::Multipath;
use crate::handle::Handle;
use crate::header::PacketHeader;
use crate::kept::Detail;
use crate::lane::LaneKind;
use crate::packet::{Kind, Marks, TracePacket};
use crate::trace::Trace;

struct FlowKnown {
    index: u16,
    /// Who spoke first.
    first: End,
    protocol: Protocol,
}

pub(super) struct Reading {
    builder: Builder,
    flows: Vec<FlowKnown>,
    by_key: BTreeMap<FlowKey, usize>,
    connections: Connections,
    /// Subflows of Multipath TCP: their path, and the end of who spoke first in their connection.
    subflows: BTreeMap<FlowKey, (u8, End, Subflow)>,
    /// SCTP: by verification tag.
    by_tag: BTreeMap<u32, usize>,
    lanes: BTreeMap<IpAddr, u16>,
    /// Seen at one end and not yet at the other: by identity the side, the handle and when.
    waiting: BTreeMap<u64, VecDeque<(usize, Handle, u64)>>,
    by_time: VecDeque<(u64, u64)>,
    /// When the first and the last packet was captured at either place.
    ends: [Option<(u64, u64)>; 2],
    matched: u64,
    /// The longest way of a packet that was seen at both places.
    longest: u64,
    seen_first: u64,
}

/// A packet that has not been seen at the other end after this time is lost: longer than any queue.
const LOST_AFTER: u64 = 10_000_000_000;

impl Reading {
    pub(super) fn new(title: &str, origin: u64, detail: Detail) -> Self {
        Self {
            builder: Builder::new(title, Time::from_nanos(origin), detail),
            flows: Vec::new(),
            by_key: BTreeMap::new(),
            connections: Connections::default(),
            subflows: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            lanes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_time: VecDeque::new(),
            ends: [None; 2],
            matched: 0,
            longest: 0,
            seen_first: 0,
        }
    }

    fn lane(&mut self, address: IpAddr) -> u16 {
        if let Some(lane) = self.lanes.get(&address) {
            return *lane;
        }
        let lane = self.builder.lane(&address.to_string(), LaneKind::Host);
        self.lanes.insert(address, lane);
        lane
    }

    /// The flow of a packet, made if it is new.
    fn flow(&mut self, seen: &IpPacket) -> usize {
        let key = key(seen);
        let tagged = seen.tags[0].and_then(|tag| self.by_tag.get(&tag).copied());
        let known = tagged.or_else(|| self.by_key.get(&key).copied());
        let joined = match seen.multipath {
            Some(Multipath::Join(token)) if known.is_none() => self.connections.joined(token),
            _ => None,
        };
        let joins = joined.map(|(place, _)| place);
        let place = known.or(joins).unwrap_or_else(|| {
            let end = |(address, port): End| std::net::SocketAddr::new(address, port).to_string();
            let name = format!("{} → {}", end(seen.source), end(seen.destination));
            let (protocol, unit) = (seen.protocol.name(), seen.protocol.unit());
            let index = self.builder.flow(&name, protocol, unit);
            self.flows.push(FlowKnown { index, first: seen.source, protocol: seen.protocol });
            self.flows.len() - 1
        });
        if known.is_none() {
            self.by_key.insert(key, place);
        }
        for tag in seen.tags.into_iter().flatten() {
            self.by_tag.entry(tag).or_insert(place);
        }
        let flow = &mut self.flows[place];
        // A connection over UDP says what it is when it begins.
        if flow.protocol == Protocol::Udp && seen.protocol != Protocol::Udp {
            flow.protocol = seen.protocol;
            self.builder.name_protocol(flow.index, seen.protocol.name(), seen.protocol.unit());
        }
        match seen.multipath {
            Some(Multipath::Join(_)) if joined.is_none() => {
                self.builder.name_protocol(flow.index, "MPTCP, joined", "bytes");
            }
            Some(_) => self.builder.name_protocol(flow.index, "MPTCP", "bytes"),
            None => {}
        }
        if seen.multipath.is_some() && !self.subflows.contains_key(&key) {
            // Who joins is not always who spoke first.
            let first = match joined {
                Some((_, 0)) => seen.source,
                Some(_) => seen.destination,
                None => self.flows[place].first,
            };
            let other = if first == seen.source { seen.destination } else { seen.source };
            let path =
                self.builder.path(self.flows[place].index, &format!("{} – {}", first.0, other.0));
            self.subflows.insert(key, (path, first, Subflow::default()));
        }
        place
    }

    /// The packet as the trace has it, its header, and whether the second speaker sent it.
    fn packet(
        &mut self,
        number: u64,
        sent: u64,
        seen: IpPacket,
    ) -> (TracePacket, PacketHeader, bool) {
        let place = self.flow(&seen);
        let (index, first, protocol) = {
            let flow = &self.flows[place];
            (flow.index, flow.first, flow.protocol)
        };
        let (from, to) = (self.lane(seen.source.0), self.lane(seen.destination.0));
        // Addresses of a multihomed end differ, its port does not.
        let back = match protocol {
            Protocol::Sctp if seen.source.1 != seen.destination.1 => seen.source.1 != first.1,
            Protocol::Sctp => seen.source.0 != first.0 && seen.tags[0].is_some(),
            _ => match self.subflows.get(&key(&seen)) {
                Some((_, first, _)) => seen.source != *first,
                None => seen.source != first,
            },
        };
        let mut packet = TracePacket::sent(number, Time::from_nanos(sent), from, to, seen.size);
        packet.flow = index;
        if protocol == Protocol::Sctp {
            let ends = if back {
                (seen.destination.0, seen.source.0)
            } else {
                (seen.source.0, seen.destination.0)
            };
            packet.path = self.builder.path(index, &format!("{} – {}", ends.0, ends.1));
        }
        let key = key(&seen);
        let mut header = seen.header;
        if let Some((path, _, subflow)) = self.subflows.get_mut(&key) {
            packet.path = *path;
            self.connections.translate(
                place,
                usize::from(back),
                seen.multipath,
                subflow,
                &mut header,
            );
        }
        if protocol == Protocol::Dfcp
            && header.kind == Kind::Opaque
            && header.seq.is_none()
            && let Some((path, number)) = seen.sealed
        {
            packet.path = path;
            header = PacketHeader { seq: Some(number), len: 1, bits: 64, path, ..header };
        }
        (packet, header, back)
    }

    pub(super) fn one_place(&mut self, number: u64, at: u64, seen: IpPacket, views: &Views) {
        let (at_source, rtt) = views.at_source(&seen);
        let way = rtt / 2;
        let sent = if at_source { at } else { at.saturating_sub(way) };
        let is_acknowledged =
            matches!(seen.protocol, Protocol::Tcp | Protocol::Sctp | Protocol::Dccp);
        let (mut packet, header, back) = self.packet(number, sent, seen);
        if !at_source && way > 0 {
            packet.marks.set(Marks::ESTIMATED);
        }
        let follow = at_source && header.len > 0 && header.seq.is_some() && is_acknowledged;
        let now = Time::from_nanos(at);
        let says = header.ack.is_some();
        let handle = self.builder.sent(now, packet, header, back, follow);
        if !at_source {
            self.builder.arrived(handle, now);
        } else if follow && says {
            self.builder.tells(handle, Time::from_nanos(at.saturating_add(way)));
        } else if !follow && is_acknowledged {
            self.builder.arrived_soon(handle, Time::from_nanos(at.saturating_add(way)));
        }
    }

    pub(super) fn both_places(&mut self, side: usize, number: u64, at: u64, seen: IpPacket) {
        let name = identity(&seen);
        let active = self.ends[side].get_or_insert((at, at));
        active.1 = at;
        self.give_up(at);
        let waiting = self.waiting.entry(name).or_default();
        if let Some((first, handle, left)) = waiting.front().copied()
            && first != side
        {
            waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&name);
            }
            self.matched += 1;
            self.longest = self.longest.max(at.saturating_sub(left));
            self.builder.arrived(handle, Time::from_nanos(at));
            return;
        }
        self.seen_first += 1;
        let (packet, header, back) = self.packet(number, at, seen);
        let has_data = header.len > 0;
        let handle = self.builder.sent(Time::from_nanos(at), packet, header, back, false);
        let waiting = self.waiting.entry(name).or_default();
        waiting.push_back((side, handle, at));
        if has_data && waiting.len() > 1 {
            // The same data again: the first never came. Acknowledgements may well be the same.
            let old = waiting.pop_front();
            if let Some((_, old, _)) = old {
                self.builder.lost(old, None, None);
            }
        }
        self.by_time.push_back((at, name));
    }

    /// Packets that were seen long ago at one end only are lost.
    pub(super) fn give_up(&mut self, now: u64) {
        let ends = self.ends;
        while let Some((at, name)) = self.by_time.front().copied() {
            if now.saturating_sub(at) < LOST_AFTER {
                break;
            }
            self.by_time.pop_front();
            let Some(waiting) = self.waiting.get_mut(&name) else { continue };
            let Some((side, handle, _)) = waiting.front().copied().filter(|(.., when)| *when == at)
            else {
                continue;
            };
            waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&name);
            }
            // When nobody listened there any more, nobody knows.
            let arrival = at.saturating_add(self.longest);
            if ends[1 - side].is_some_and(|(begin, end)| begin <= at && arrival < end) {
                self.builder.lost(handle, None, None);
            }
        }
    }

    /// What the reader of the trace should know of it.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.builder.note(text);
    }

    /// Says it if few packets were seen at both ends.
    pub(super) fn note_unmatched(&mut self) {
        if self.matched * 2 < self.seen_first {
            self.note("Few packets were seen at both ends: offloads may have joined or cut them (ethtool -K DEVICE tso off gso off gro off).");
        }
    }

    pub(super) fn finish(mut self, files: &[Frames<'_>]) -> Trace {
        for file in files {
            if let Some(error) = &file.damage {
                self.note(format!("It was read up to there: {error}."));
            } else if file.is_cut {
                self.note("The file is cut off in the middle of a frame; it was read up to there.");
            }
        }
        self.builder.finish()
    }
}
