//! qlog files (draft-ietf-quic-qlog-main-schema): of QUIC implementations, and what `--qlog` writes of DFCP.
//!
//! One JSON text, or a sequence of them (RFC 7464, or one a line); events as objects, or as arrays as in the first drafts. A file
//! of any size is read event by event. A qlog is written at one end: what became of a packet follows from acknowledgements and
//! losses that it reports.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use fontis_base::{Duration, Time};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;

use super::ranges::Ranges;
use super::{Builder, Detail, Group, Handle, Header, Kind, LaneKind, Marks, Packet, Trace};

/// What is wrong with a qlog.
#[derive(Debug, Error)]
pub enum QlogError {
    /// It is no JSON from some place on.
    #[error("event {event}: {error}")]
    Json {
        /// The event, from 1.
        event: u64,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// There is no event in it.
    #[error("there is no event in it that a qlog would have")]
    Empty,
}

/// Reads a qlog.
pub fn read(mut input: impl BufRead, title: &str, detail: Detail) -> Result<Trace, QlogError> {
    let mut reading = Reading::new(title, detail);
    let is_sequence = input.fill_buf().is_ok_and(|bytes| bytes.first() == Some(&RECORD));
    let result =
        if is_sequence { sequence(input, &mut reading) } else { texts(input, &mut reading) };
    if let Err(error) = result {
        // What can be read is shown.
        if reading.events == 0 {
            return Err(QlogError::Json { event: 1, error });
        }
        reading.builder.note(if error.is_eof() {
            "The file is cut off; it was read up to there.".to_owned()
        } else {
            format!("It was read up to event {}: {error}.", reading.events)
        });
    }
    if reading.events == 0 {
        return Err(QlogError::Empty);
    }
    Ok(reading.finish())
}

const RECORD: u8 = 0x1e;
/// No event is longer.
const MOST_IN_A_RECORD: u64 = 16 << 20;

fn sequence(mut input: impl BufRead, reading: &mut Reading) -> Result<(), serde_json::Error> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = Read::take(&mut input, MOST_IN_A_RECORD).read_until(RECORD, &mut bytes);
        if read.map_err(serde::de::Error::custom)? == 0 {
            return Ok(());
        }
        let text = bytes.strip_suffix(&[RECORD]).unwrap_or(&bytes).trim_ascii();
        if !text.is_empty() {
            let mut deserializer = serde_json::Deserializer::from_slice(text);
            Top(reading).deserialize(&mut deserializer)?;
        }
    }
}

fn texts(input: impl BufRead, reading: &mut Reading) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_reader(input);
    loop {
        // At the end of all texts.
        match deserializer.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_eof() => return Ok(()),
            Err(_) => {}
        }
        Top(reading).deserialize(&mut deserializer)?;
    }
}

/// A JSON text of a qlog: a file, its head, or an event.
struct Top<'a>(&'a mut Reading);
/// Its traces.
struct Traces<'a>(&'a mut Reading);
/// Their events.
struct Events<'a>(&'a mut Reading);

macro_rules! seeds {
    ($($seed:ident $method:ident),*) => {$(
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }
    )*};
}
seeds!(Top deserialize_map, Traces deserialize_seq, Events deserialize_seq);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut rest = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "traces" => map.next_value_seed(Traces(self.0))?,
                "events" => {
                    self.0.head(&rest);
                    map.next_value_seed(Events(self.0))?;
                }
                _ => {
                    rest.insert(key, map.next_value()?);
                }
            }
        }
        if let Some(Value::Object(head)) = rest.get("trace") {
            self.0.head(head);
        } else if rest.contains_key("time") || rest.contains_key("name") {
            self.0.event(&Value::Object(rest));
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Traces<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Top(self.0))?.is_some() {
            self.0.next_trace();
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Value>()? {
            self.0.event(&event);
        }
        Ok(())
    }
}

struct Reading {
    builder: Builder,
    events: u64,
    connection: Option<Connection>,
    /// The names of the fields of events that are arrays.
    fields: Vec<String>,
    is_delta: bool,
    is_server: bool,
    protocol: String,
    id: String,
    /// Milliseconds of the first event, and of the last.
    first: Option<f64>,
    last: f64,
}

struct Connection {
    flow: u16,
    here: u8,
    there: u8,
    is_server: bool,
    sent: BTreeMap<u64, Handle>,
    streams: BTreeMap<u64, Ranges>,
    srtt: Duration,
    has_acks: bool,
}

impl Reading {
    fn new(title: &str, detail: Detail) -> Self {
        Self {
            builder: Builder::new(title, Time::ZERO, detail),
            events: 0,
            connection: None,
            fields: Vec::new(),
            is_delta: false,
            is_server: false,
            protocol: "QUIC".to_owned(),
            id: String::new(),
            first: None,
            last: 0.0,
        }
    }

    fn head(&mut self, head: &Map<String, Value>) {
        let empty = Value::Null;
        let common = head.get("common_fields").unwrap_or(&empty);
        self.is_server = head.get("vantage_point").is_some_and(|v| v["type"] == "server");
        self.is_delta = common["time_format"] == "delta";
        let id = common["ODCID"].as_str().or(common["group_id"].as_str());
        self.id = id.unwrap_or_default().to_owned();
        let is_dfcp =
            common["protocol_type"].as_array().is_some_and(|all| all.iter().any(|p| p == "DFCP"));
        if is_dfcp {
            self.protocol = "DFCP".to_owned();
        }
        if let Some(Value::Array(fields)) = head.get("event_fields") {
            self.fields = fields.iter().filter_map(Value::as_str).map(str::to_lowercase).collect();
        }
    }

    /// The next trace of a file is of another connection, or of its other end.
    fn next_trace(&mut self) {
        self.connection = None;
        self.fields.clear();
    }

    fn connection(&mut self) -> &mut Connection {
        let (builder, is_server) = (&mut self.builder, self.is_server);
        let (protocol, id) = (&self.protocol, &self.id);
        self.connection.get_or_insert_with(|| {
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
            let flow = builder.flow(&name, protocol, "packets");
            Connection {
                flow,
                here: lane(here),
                there: lane(there),
                is_server,
                sent: BTreeMap::new(),
                streams: BTreeMap::new(),
                srtt: Duration::ZERO,
                has_acks: false,
            }
        })
    }

    fn event(&mut self, event: &Value) {
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
        let Some(millis) = millis.filter(|millis| millis.is_finite()) else { return };
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
        self.last = millis;
        let first = *self.first.get_or_insert(millis);
        let at = Time::from_nanos(((millis - first).max(0.0) * 1e6) as u64);
        self.events += 1;
        match &*name {
            "packet_sent" => self.packet(at, &data, true),
            "packet_received" => self.packet(at, &data, false),
            "packet_lost" => {
                let number =
                    data["header"]["packet_number"].as_u64().or(data["packet_number"].as_u64());
                let connection = self.connection();
                if let Some(handle) = number.and_then(|number| connection.sent.remove(&number)) {
                    let after = connection.srtt.mul_ratio(1, 2);
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
        let is_protected = matches!(kind, Some("1RTT" | "0RTT") | None);
        let empty = Vec::new();
        let frames = data["frames"].as_array().unwrap_or(&empty);
        let (mut carries, mut acks, mut again) = (false, Vec::new(), false);
        let (mut is_ack, mut stream) = (false, 0);
        let mut delay = Duration::ZERO;
        for frame in frames {
            match frame["frame_type"].as_str().unwrap_or_default() {
                "stream" | "datagram" | "symbols" | "SYMBOLS" => {
                    carries = true;
                    stream = as_number(&frame["stream_id"]).unwrap_or(0);
                    let length =
                        as_number(&frame["length"]).or(as_number(&frame["raw"]["payload_length"]));
                    let offset = as_number(&frame["offset"]);
                    if let Some((offset, length)) = offset.zip(length).filter(|_| is_sent) {
                        let known = self.connection().streams.entry(stream).or_default();
                        let new = known.add(offset, offset.saturating_add(length));
                        again |= length > 0 && new == 0 && known.len() < MOST_RANGES;
                    }
                }
                "ack" | "feedback" | "FEEDBACK" => {
                    is_ack = true;
                    let millis = frame["ack_delay"].as_f64().unwrap_or(0.0).clamp(0.0, 1e6);
                    delay = Duration::from_nanos((millis * 1e6) as u64);
                    for range in frame["acked_ranges"].as_array().unwrap_or(&empty) {
                        let low = as_number(&range[0]);
                        // A single number is a range, too.
                        acks.extend(low.zip(as_number(&range[1]).or(low)));
                    }
                }
                _ => {}
            }
        }
        let what = match () {
            () if carries => Kind::Data,
            () if !is_protected => Kind::Handshake,
            () if is_ack => Kind::Ack,
            () => Kind::Control,
        };
        let largest = acks.iter().map(|(_, high)| *high).max();
        let mut header = Header {
            kind: what,
            len: 1,
            bits: 64,
            // Initial and handshake packets are numbered apart.
            seq: number.filter(|_| is_protected),
            ack: largest.filter(|_| is_protected).map(|largest| largest.saturating_add(1)),
            ack_delay: delay,
            ..Header::default()
        };
        if header.seq.is_none() {
            header.len = 0;
        }
        let connection = self.connection();
        let (flow, here, there, srtt) =
            (connection.flow, connection.here, connection.there, connection.srtt);
        let way = srtt.mul_ratio(1, 2);
        let back = connection.is_server == is_sent;
        let (from, to) = if is_sent { (here, there) } else { (there, here) };
        let departed = if is_sent {
            at
        } else {
            Time::from_nanos(at.as_nanos().saturating_sub(way.as_nanos()))
        };
        let mut packet = Packet::sent(number.unwrap_or(0), departed, from, to, size);
        packet.flow = flow;
        packet.block = stream.min(u64::from(u32::MAX)) as u32;
        if again {
            packet.marks.set(Marks::RETRANSMITTED);
        }
        if is_sent {
            let handle = self.builder.sent(at, packet, header, back, false);
            if again {
                self.builder.retransmitted(flow, back);
            }
            let connection = self.connection();
            if let Some(number) = number.filter(|_| is_protected) {
                connection.sent.insert(number, handle);
            } else {
                self.builder.believed(handle, way, false);
            }
            return;
        }
        packet.marks.set(Marks::ESTIMATED);
        let handle = self.builder.sent(at, packet, header, back, false);
        self.builder.arrived(handle, at);
        if !is_protected {
            return;
        }
        for (low, high) in acks {
            let connection = self.connection();
            connection.has_acks = true;
            // What is beyond was acknowledged before or was never sent.
            let done: Vec<u64> =
                connection.sent.range(low..=high.max(low)).map(|(number, _)| *number).collect();
            for number in done {
                if let Some(handle) = self.connection().sent.remove(&number) {
                    self.builder.believed(handle, way, true);
                }
            }
        }
    }

    fn metrics(&mut self, at: Time, data: &Value) {
        let connection = self.connection();
        let flow = connection.flow;
        let is_server = connection.is_server;
        let millis = |key: &str| as_float(&data[key]).filter(|value| (0.0..1e7).contains(value));
        if let Some(srtt) = millis("smoothed_rtt") {
            connection.srtt = Duration::from_nanos((srtt * 1e6) as u64);
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

    fn finish(mut self) -> Trace {
        let has_acks = self.connection.as_ref().is_some_and(|connection| connection.has_acks);
        self.builder.note(
            "Written at one end: times at the other end are computed from the round-trip time.",
        );
        if let Some(connection) = self.connection.take().filter(|_| !has_acks) {
            self.builder.note("It does not say which packets were acknowledged: sent packets are drawn as if they arrived.");
            let way = connection.srtt.mul_ratio(1, 2);
            for handle in connection.sent.into_values() {
                self.builder.believed(handle, way, false);
            }
        }
        self.builder.finish()
    }
}

/// More holes than this in a stream say that the file does not tell all of it.
const MOST_RANGES: usize = 10_000;

fn as_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn as_float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|value: &f64| value.is_finite())
}
