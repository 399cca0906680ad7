use std::collections::BTreeMap;

use fontis_base::{Duration, Time};
use serde_json::{Map, Value};

use super::frames::{PacketFacts, Streams, as_number};
use super::gaps::Gaps;
use super::{dfcp, frames};
use crate::builder::Builder;
use crate::handle::Handle;
use crate::kept::Detail;
use crate::lane::LaneKind;
use crate::packet::{Marks, TracePacket};
use crate::series::Group;
use crate::trace::Trace;

/// What the events of a qlog are turned into.
pub(super) struct Reading {
    pub(super) builder: Builder,
    pub(super) events: u64,
    /// Of the present trace; the place of the one that the present event is of.
    connections: Vec<Connection>,
    present: usize,
    /// By group of events: the place of its connection.
    groups: BTreeMap<String, usize>,
    /// The names of the fields of events that are arrays.
    fields: Vec<String>,
    is_delta: bool,
    is_server: bool,
    protocol: String,
    /// What all events are of, unless they say otherwise.
    id: String,
    /// Milliseconds of the first event, and of the last.
    first: Option<f64>,
    last: f64,
}

struct Connection {
    flow: u16,
    here: u16,
    there: u16,
    is_server: bool,
    is_dfcp: bool,
    /// Packets of DFCP that did not come, by their paths.
    gaps: BTreeMap<u8, Gaps>,
    /// Sent and neither acknowledged nor lost, by path and number.
    sent: BTreeMap<(u8, u64), (Handle, Time)>,
    streams: Streams,
    /// Packets of the handshake that were sent and not answered.
    shaken: BTreeMap<Time, Handle>,
    /// The shortest round trip so far.
    least: Option<Duration>,
    /// How long the last packet took that was acknowledged.
    forth: Duration,
    /// When the last acknowledgement left the other end.
    answered: Time,
    has_acks: bool,
}

impl Connection {
    fn sample(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        if self.forth == Duration::ZERO {
            self.forth = self.back();
        }
    }

    /// How long a packet takes from the other end, about.
    fn back(&self) -> Duration {
        self.least.unwrap_or_default().mul_ratio(1, 2)
    }
}

/// The farthest time from 1970 in milliseconds, in 2128: an event beyond it has no time. Two such
/// times are no farther apart than a [`Time`] can tell.
const FARTHEST: f64 = 5e12;

const DFCP: &str = "DFCP";
/// The longest name of a protocol in bytes.
const LONGEST_NAME: usize = 40;
/// Events that say something of a connection.
const TOLD: [&str; 5] =
    ["packet_sent", "packet_received", "packet_lost", "metrics_updated", "metric_update"];

/// The protocol that a trace or an event names first. A name of another maker is shown as it is.
fn protocol_of(types: &Value) -> Option<String> {
    let name = types.as_array()?.iter().find_map(Value::as_str)?;
    let is_name = name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    is_name.then(|| name.to_owned())
}

impl Reading {
    pub(super) fn new(title: &str, detail: Detail) -> Self {
        Self {
            builder: Builder::new(title, Time::ZERO, detail),
            events: 0,
            connections: Vec::new(),
            present: 0,
            groups: BTreeMap::new(),
            fields: Vec::new(),
            is_delta: false,
            is_server: false,
            protocol: "QUIC".to_owned(),
            id: String::new(),
            first: None,
            last: 0.0,
        }
    }

    pub(super) fn head(&mut self, head: &Map<String, Value>) {
        let empty = Value::Null;
        let common = head.get("common_fields").unwrap_or(&empty);
        self.is_server = head.get("vantage_point").is_some_and(|v| v["type"] == "server");
        self.is_delta = common["time_format"] == "delta";
        let id = common["ODCID"].as_str().or(common["group_id"].as_str());
        self.id = id.unwrap_or_default().to_owned();
        if let Some(protocol) = protocol_of(&common["protocol_type"]) {
            self.protocol = protocol;
        }
        if let Some(Value::Array(fields)) = head.get("event_fields") {
            self.fields = fields.iter().filter_map(Value::as_str).map(str::to_lowercase).collect();
        }
    }

    /// The next trace of a file is of another connection, or of its other end.
    pub(super) fn next_trace(&mut self) {
        self.tell_missing();
        self.connections.clear();
        self.groups.clear();
        self.fields.clear();
    }

    /// The connection that the present event is of.
    fn connection(&mut self) -> &mut Connection {
        &mut self.connections[self.present]
    }

    /// Turns to the connection of a group of events, which may have a protocol of its own.
    fn turn_to(&mut self, group: Option<&str>, protocol: &Value) {
        let id = group.unwrap_or(&self.id);
        if let Some(place) = self.groups.get(id) {
            self.present = *place;
            return;
        }
        let (id, protocol) = (id.to_owned(), protocol_of(protocol));
        let protocol = protocol.as_ref().unwrap_or(&self.protocol);
        let (builder, is_server) = (&mut self.builder, self.is_server);
        let connection = {
            let (here, there) = if is_server { ("server", "client") } else { ("client", "server") };
            // Who asks stands on the left.
            let client = builder.lane("client", LaneKind::Host);
            let server = builder.lane("server", LaneKind::Host);
            let lane = |name| if name == "client" { client } else { server };
            let name = if id.is_empty() {
                format!("{here}’s connection")
            } else {
                format!("{id} ({here})")
            };
            let unit = if protocol == DFCP { "symbols" } else { "packets" };
            let flow = builder.flow(&name, protocol, unit);
            Connection {
                flow,
                here: lane(here),
                there: lane(there),
                is_server,
                is_dfcp: protocol == DFCP,
                gaps: BTreeMap::new(),
                sent: BTreeMap::new(),
                streams: BTreeMap::new(),
                shaken: BTreeMap::new(),
                least: None,
                forth: Duration::ZERO,
                answered: Time::ZERO,
                has_acks: false,
            }
        };
        self.present = self.connections.len();
        self.groups.insert(id, self.present);
        self.connections.push(connection);
    }

    pub(super) fn event(&mut self, event: &Value) {
        let field = |name: &str| match event {
            Value::Array(values) => {
                let place = self.fields.iter().position(|field| field == name)?;
                values.get(place)
            }
            _ => event.get(name),
        };
        let time = field("time").or_else(|| field("relative_time")).or_else(|| field("delta_time"));
        let millis = match time {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let is_time = |millis: &f64| millis.abs() <= FARTHEST;
        let Some(millis) = millis.filter(is_time) else { return };
        let name = match (field("name"), field("event").or_else(|| field("event_type"))) {
            (Some(name), _) => name.as_str().unwrap_or_default(),
            (None, Some(name)) => name.as_str().unwrap_or_default(),
            (None, None) => return,
        };
        let name = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
        let null = Value::Null;
        let data = field("data").unwrap_or(&null).clone();
        let is_delta = self.is_delta || self.fields.iter().any(|field| field == "delta_time");
        let millis = if is_delta { self.last + millis } else { millis };
        if !is_time(&millis) {
            return;
        }
        self.last = millis;
        let first = *self.first.get_or_insert(millis);
        let at = Time::from_nanos(((millis - first).max(0.0) * 1e6) as u64);
        let group = field("group_id").and_then(Value::as_str).map(str::to_owned);
        let protocol = field("protocol_type").cloned().unwrap_or_default();
        self.events += 1;
        if TOLD.contains(&&*name) {
            self.turn_to(group.as_deref(), &protocol);
        }
        match &*name {
            "packet_sent" => self.packet(at, &data, true),
            "packet_received" => self.packet(at, &data, false),
            "packet_lost" => {
                let number =
                    data["header"]["packet_number"].as_u64().or(data["packet_number"].as_u64());
                let place = number.map(|number| (path_of(&data), number));
                let connection = self.connection();
                if let Some((handle, _)) = place.and_then(|place| connection.sent.remove(&place)) {
                    let after = connection.forth;
                    self.builder.lost_after(handle, after);
                }
            }
            "metrics_updated" | "metric_update" => self.metrics(at, &data),
            _ => {}
        }
    }

    fn packet(&mut self, at: Time, data: &Value, is_sent: bool) {
        let head = &data["header"];
        let number =
            [&head["packet_number"], &data["packet_number"]].into_iter().find_map(as_number);
        let sizes =
            [&data["raw"]["length"], &head["packet_size"], &data["packet_size"], &head["length"]];
        let size =
            sizes.into_iter().find_map(as_number).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
        let kind = [&head["packet_type"], &data["packet_type"]].into_iter().find_map(Value::as_str);
        // Initial and handshake packets are numbered apart.
        let is_protected = matches!(kind, Some("1RTT" | "0RTT") | None);
        let counted = number.filter(|_| is_protected);
        let frames = data["frames"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_dfcp = self.connection().is_dfcp;
        let mut said = if is_dfcp {
            dfcp::said(counted, frames)
        } else {
            let streams = is_sent.then(|| &mut self.connection().streams);
            frames::said(counted, frames, streams)
        };
        said.header.path = path_of(data);
        let path = said.header.path;
        let connection = self.connection();
        let (flow, here, there) = (connection.flow, connection.here, connection.there);
        let back = connection.is_server == is_sent;
        let (from, to) = if is_sent { (here, there) } else { (there, here) };
        let departed = if is_sent { at } else { self.answered(at, &mut said) };
        let mut packet = TracePacket::sent(number.unwrap_or(0), departed, from, to, size);
        (packet.flow, packet.path) = (flow, path);
        if let Some(stream) = said.stream {
            packet.block = stream.min(u64::from(u32::MAX)) as u32;
        }
        if said.again {
            packet.marks.set(Marks::RETRANSMITTED);
        }
        if !is_sent {
            packet.marks.set(Marks::ESTIMATED);
        }
        let handle = self.builder.sent(at, packet, said.header, back, false);
        if !is_sent {
            self.builder.arrived(handle, at);
            if let Some(number) = counted.filter(|_| is_dfcp) {
                self.connection().gaps.entry(path).or_default().came(number, departed, size);
            }
            return;
        }
        if said.again {
            self.builder.retransmitted(flow, back);
        }
        let connection = self.connection();
        match counted {
            Some(number) => {
                connection.sent.insert((path, number), (handle, at));
            }
            None => {
                connection.shaken.insert(at, handle);
            }
        }
    }

    /// When what is received at `at` was sent; what it acknowledges had arrived before.
    fn answered(&mut self, at: Time, said: &mut PacketFacts) -> Time {
        said.acks.sort_unstable();
        let delay = said.header.ack_delay;
        let connection = self.connection();
        let largest = said.acks.iter().map(|(_, high)| *high).max();
        // Packets of a path are acknowledged on that path.
        let path = said.header.path;
        let largest = largest.and_then(|largest| connection.sent.get(&(path, largest)));
        let largest = largest.map(|(_, at)| *at);
        if let Some(sent) = largest {
            connection.sample(at.since(sent) - delay);
        }
        let before = connection.answered;
        // Answers are small and rarely wait: what a round trip takes beyond the shortest, the data
        // took.
        let departed = Time::from_nanos(at.as_nanos().saturating_sub(connection.back().as_nanos()));
        let departed = departed.max(before);
        if let Some(sent) = largest {
            connection.forth = departed.since(sent) - delay;
        }
        let forth = connection.forth;
        if said.header.seq.is_none()
            && let Some((handle, sent)) =
                connection.shaken.pop_first().map(|(at, handle)| (handle, at))
        {
            self.builder.believed(handle, (sent + forth).min(departed).max(sent), true);
        }
        for (low, high) in &said.acks {
            let connection = self.connection();
            connection.has_acks = true;
            // What is beyond was acknowledged before or was never sent.
            let range = connection.sent.range((path, *low)..=(path, (*high).max(*low)));
            let done: Vec<_> = range.map(|(place, _)| *place).collect();
            for place in done {
                if let Some((handle, sent)) = self.connection().sent.remove(&place) {
                    // The acknowledgement before this one did not have it yet.
                    let arrived = (sent + forth).clamp(before, departed);
                    self.builder.believed(handle, arrived.max(sent), true);
                }
            }
        }
        if !said.acks.is_empty() {
            self.connection().answered = departed;
        }
        departed
    }

    fn metrics(&mut self, at: Time, data: &Value) {
        let connection = self.connection();
        let flow = connection.flow;
        let is_server = connection.is_server;
        let millis = |key: &str| as_float(&data[key]).filter(|value| (0.0..1e7).contains(value));
        if let Some(srtt) = millis("smoothed_rtt") {
            connection.sample(Duration::from_nanos((srtt * 1e6) as u64));
            self.builder.measure(Group::RoundTrip, "smoothed", Some(flow), at, srtt);
        }
        if let Some(latest) = millis("latest_rtt") {
            let sample = Duration::from_nanos((latest * 1e6) as u64);
            self.builder.measure_round_trip(flow, is_server, at, sample);
        }
        let series = [
            ("congestion_window", Group::Window, "congestion window", 1.0),
            ("bytes_in_flight", Group::Window, "in flight", 1.0),
            ("pacing_rate", Group::Rate, "pacing", 1e-6),
            ("loss_rate", Group::Loss, "loss", 100.0),
        ];
        for (key, group, name, scale) in series {
            if let Some(value) = as_float(&data[key]) {
                self.builder.measure(group, name, Some(flow), at, value * scale);
            }
        }
    }

    /// What never came is drawn as lost on its way here.
    fn tell_missing(&mut self) {
        for connection in &mut self.connections {
            for (path, gaps) in core::mem::take(&mut connection.gaps) {
                for (number, sent, size) in gaps.missing() {
                    let mut packet =
                        TracePacket::sent(number, sent, connection.there, connection.here, size);
                    (packet.flow, packet.path) = (connection.flow, path);
                    packet.ended = self.builder.relative(sent + connection.back());
                    self.builder.missing(packet, !connection.is_server);
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Trace {
        self.tell_missing();
        self.builder.note(
            "Written at one end: times at the other end are computed from the round-trip time.",
        );
        for connection in core::mem::take(&mut self.connections) {
            let forth = connection.forth;
            if !connection.has_acks {
                self.builder.note("It does not say which packets were acknowledged: sent packets are drawn as if they arrived.");
                for (handle, sent) in connection.sent.into_values() {
                    self.builder.believed(handle, sent + forth, false);
                }
            }
            for (sent, handle) in connection.shaken {
                self.builder.believed(handle, sent + forth, false);
            }
        }
        self.builder.finish()
    }
}

fn as_float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|value: &f64| value.is_finite())
}

/// The path of an event: the first unless it says otherwise.
fn path_of(data: &Value) -> u8 {
    data["path_id"].as_u64().and_then(|path| u8::try_from(path).ok()).unwrap_or(0)
}
