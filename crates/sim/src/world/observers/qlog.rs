//! The qlog of a simulation.

use std::collections::BTreeMap;

use fontis_base::{Packet, Time};
use fontis_proto::dfcp::TraceEvent;
use fontis_proto::qlog::{
    Records, metrics_updated, millis, of_dfcp, packet_lost, packet_received, packet_sent,
};
use fontis_proto::tcp::{Flags, Segment, SenderStats};
use serde_json::{Map, Value, json};

use crate::host::payload::Payload;

/// What flows' senders send, receive and believe, as one qlog: each flow is a group of events. Who
/// sends a flow's data is called the server.
///
/// Of DFCP it tells what a real transfer's does. TCP numbers its bytes: its packets are counted as
/// they leave and as they come, its data is that of stream 0, what it acknowledges is told by those
/// counts, and a copy counts as lost when it is sent again. Of other transports it tells packets
/// alone.
#[derive(Clone, Debug)]
pub struct Qlog {
    records: Records,
    /// By node: the flow that it sends, if it is to be told.
    nodes: Vec<Option<u32>>,
    flows: Vec<Told>,
}

/// A flow that is told.
#[derive(Clone, Debug)]
struct Told {
    /// What is true of its events and not of all.
    own: Map<String, Value>,
    sent: u64,
    received: u64,
    tcp: Tcp,
}

/// What a flow's sender knows of TCP's bytes.
#[derive(Clone, Debug, Default)]
struct Tcp {
    /// The sequence numbers of both sides' first bytes.
    first: Option<u32>,
    peer_first: Option<u32>,
    /// One beyond what was sent, the end included, and one beyond what came.
    end: u64,
    peer_end: u64,
    /// Sent and not acknowledged, by where it begins: where it ends, and the packet.
    outstanding: BTreeMap<u64, (u64, u64)>,
    /// What was acknowledged last.
    acknowledged: u32,
    metrics: Map<String, Value>,
}

impl Qlog {
    /// A qlog of these flows: the node that sends one's data, its name, and the name of its
    /// protocol.
    pub fn new<'a>(flows: impl IntoIterator<Item = (usize, &'a str, &'a str)>) -> Self {
        let flows: Vec<_> = flows.into_iter().collect();
        let mut protocols: Vec<&str> = flows.iter().map(|(.., protocol)| *protocol).collect();
        protocols.sort_unstable();
        protocols.dedup();
        let differ = protocols.len() > 1;
        let mut records = Records::default();
        let mut common = Map::new();
        common.insert("protocol_type".to_owned(), json!(protocols));
        records.head("Fontis simulation", "server", 0.0, common);
        let mut qlog = Self { records, nodes: Vec::new(), flows: Vec::new() };
        for (node, name, protocol) in flows {
            if qlog.nodes.len() <= node {
                qlog.nodes.resize(node + 1, None);
            }
            qlog.nodes[node] = Some(qlog.flows.len() as u32);
            let mut own = Map::new();
            own.insert("group_id".to_owned(), name.into());
            if differ {
                own.insert("protocol_type".to_owned(), json!([protocol]));
            }
            qlog.flows.push(Told { own, sent: 0, received: 0, tcp: Tcp::default() });
        }
        qlog
    }

    /// Whether a node is told of.
    pub(crate) fn tells(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(Option::is_some)
    }

    fn flow(&mut self, node: u32) -> Option<(&mut Records, &mut Told)> {
        let flow = (*self.nodes.get(node as usize)?)?;
        Some((&mut self.records, &mut self.flows[flow as usize]))
    }

    /// A packet leaves a node.
    pub(crate) fn leaves(&mut self, now: Time, node: u32, packet: &Packet<Payload>) {
        let Some((records, told)) = self.flow(node) else { return };
        let (number, frames) = match &packet.payload {
            Payload::Tcp(segment) if segment.flags.has(Flags::SYN) => {
                told.tcp.first = Some(segment.seq.wrapping_add(1));
                (None, Vec::new())
            }
            Payload::Tcp(segment) => {
                let number = told.sent;
                let (again, frames) = told.tcp.sent(segment, number, told.received);
                for lost in again {
                    records.event(now, &told.own, packet_lost(lost));
                }
                (Some(number), frames)
            }
            Payload::Published(_) => (Some(told.sent), Vec::new()),
            Payload::Datagram(_) => (Some(told.sent), vec![datagram(packet.size)]),
            // DFCP tells itself; what a controller says takes no part of the network.
            Payload::Dfcp(_) | Payload::Rate(_) | Payload::Active(_) => return,
        };
        told.sent += u64::from(number.is_some());
        records.event(now, &told.own, packet_sent(number, packet.size, frames));
    }

    /// A packet comes to a node.
    pub(crate) fn comes(&mut self, now: Time, node: u32, packet: &Packet<Payload>) {
        let Some((records, told)) = self.flow(node).filter(|_| !packet.corrupt) else { return };
        let (number, frames) = match &packet.payload {
            Payload::Tcp(segment) if segment.flags.has(Flags::SYN) => {
                told.tcp.peer_first = Some(segment.seq.wrapping_add(1));
                (None, Vec::new())
            }
            Payload::Tcp(segment) => (Some(told.received), told.tcp.received(segment)),
            Payload::Published(_) => (Some(told.received), Vec::new()),
            Payload::Datagram(_) => (Some(told.received), vec![datagram(packet.size)]),
            Payload::Dfcp(_) | Payload::Rate(_) | Payload::Active(_) => return,
        };
        told.received += u64::from(number.is_some());
        records.event(now, &told.own, packet_received(number, packet.size, frames));
    }

    /// What TCP at a node knows of the path: of it is told what has changed.
    pub(crate) fn tcp_knows(&mut self, now: Time, node: u32, stats: SenderStats) {
        let Some((records, told)) = self.flow(node) else { return };
        let threshold = (stats.ssthresh < u64::MAX).then_some(stats.ssthresh);
        let all = [
            ("smoothed_rtt", stats.srtt.map(millis).map(Value::from)),
            ("min_rtt", stats.min_rtt.map(millis).map(Value::from)),
            ("congestion_window", Some(stats.cwnd.into())),
            ("bytes_in_flight", Some(stats.in_flight.into())),
            ("ssthresh", threshold.map(Value::from)),
        ];
        let mut changed = Map::new();
        for (name, value) in all {
            let Some(value) = value.filter(|value| told.tcp.metrics.get(name) != Some(value))
            else {
                continue;
            };
            told.tcp.metrics.insert(name.to_owned(), value.clone());
            changed.insert(name.to_owned(), value);
        }
        if !changed.is_empty() {
            records.event(now, &told.own, metrics_updated(changed.into()));
        }
    }

    /// What DFCP at a node tells itself.
    pub(crate) fn dfcp_tells(&mut self, node: u32, event: &TraceEvent) {
        let Some((records, told)) = self.flow(node) else { return };
        records.event(event.time, &told.own, of_dfcp(event));
    }

    /// Takes what was told since the last time: whole records.
    pub fn take(&mut self) -> Records {
        core::mem::take(&mut self.records)
    }
}

fn datagram(size: u32) -> Value {
    json!({ "frame_type": "datagram", "length": size.saturating_sub(HEADERS) })
}

/// Of IPv4 and UDP.
const HEADERS: u32 = 28;

impl Tcp {
    /// A segment leaves as packet `number`: which packets it takes for lost, and its frames.
    fn sent(&mut self, segment: &Segment, number: u64, received: u64) -> (Vec<u64>, Vec<Value>) {
        let (mut again, mut frames) = (Vec::new(), Vec::new());
        if let Some((start, end)) = range(self.first, self.end, segment) {
            // They do not overlap each other, so what this one overlaps are the last that begin
            // before its end.
            while let Some((at, (_, copy))) =
                self.outstanding.range(..end).next_back().filter(|(_, (until, _))| *until > start)
            {
                let (at, copy) = (*at, *copy);
                self.outstanding.remove(&at);
                again.push(copy);
            }
            again.reverse();
            self.outstanding.insert(start, (end, number));
            self.end = self.end.max(end);
            frames.push(stream(start, segment));
        }
        let news = core::mem::replace(&mut self.acknowledged, segment.ack) != segment.ack;
        if (news || frames.is_empty()) && received > 0 {
            frames.push(ack(&[(received - 1, received - 1)]));
        }
        (again, frames)
    }

    /// A segment comes: its frames.
    fn received(&mut self, segment: &Segment) -> Vec<Value> {
        let mut frames = Vec::new();
        if let Some((start, end)) = range(self.peer_first, self.peer_end, segment) {
            self.peer_end = self.peer_end.max(end);
            frames.push(stream(start, segment));
        }
        let Some(first) = self.first else { return frames };
        let mut numbers = Vec::new();
        let edge = position(first, self.end, segment.ack);
        while let Some(entry) = self.outstanding.first_entry().filter(|e| e.get().0 <= edge) {
            numbers.push(entry.remove().1);
        }
        for (left, right) in segment.sack() {
            let [left, right] = [left, right].map(|edge| position(first, self.end, *edge));
            if left < right {
                let inside = self.outstanding.range(left..right);
                let inside = inside.filter(|(_, (end, _))| *end <= right);
                let inside: Vec<(u64, u64)> = inside.map(|(at, (_, n))| (*at, *n)).collect();
                for (at, number) in inside {
                    self.outstanding.remove(&at);
                    numbers.push(number);
                }
            }
        }
        if frames.is_empty() || !numbers.is_empty() {
            numbers.sort_unstable();
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            for number in numbers {
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == number => *last = number,
                    _ => ranges.push((number, number)),
                }
            }
            frames.push(ack(&ranges));
        }
        frames
    }
}

fn ack(ranges: &[(u64, u64)]) -> Value {
    json!({ "frame_type": "ack", "acked_ranges": ranges })
}

fn stream(start: u64, segment: &Segment) -> Value {
    let fin = segment.flags.has(Flags::FIN);
    json!({ "frame_type": "stream", "stream_id": 0, "offset": start, "length": segment.len, "fin": fin })
}

/// The positions that a segment takes, its end included; `None` if it carries nothing.
fn range(first: Option<u32>, near: u64, segment: &Segment) -> Option<(u64, u64)> {
    let len = segment.sequence_len();
    let start = position(first?, near, segment.seq);
    (len > 0).then(|| (start, start + u64::from(len)))
}

/// The position in a stream that a sequence number stands for: the one nearest to `near`.
fn position(first: u32, near: u64, sequence: u32) -> u64 {
    let distance = sequence.wrapping_sub(first).wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(distance))
}
