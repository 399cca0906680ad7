//! qlog 0.3 (the JSON-SEQ form of draft-ietf-quic-qlog-main-schema-02): how connections are told,
//! of real transfers and of simulated ones, for `fontis view`, qvis and people.
//!
//! Start here: [`Records`] is the text of a file. Events and their fields are those of QUIC; what
//! DFCP adds is in its frames, which `docs/view.md` lists.

use fontis_base::{Duration, Time};
use serde_json::{Map, Value, json};

/// Records of a JSON text sequence (RFC 7464), whole ones only.
#[derive(Clone, Debug, Default)]
pub struct Records {
    text: Vec<u8>,
}

/// An event: its name, and its data.
pub type QlogEvent = (&'static str, Value);

/// Begins a record.
const RECORD: u8 = 0x1e;

impl Records {
    /// What the file begins with. `common` holds what is true of all events; times are counted from
    /// `reference_time`, in milliseconds since 1970.
    pub fn head(
        &mut self,
        title: &str,
        role: &str,
        reference_time: f64,
        common: Map<String, Value>,
    ) {
        let mut fields = json!({ "time_format": "relative", "reference_time": reference_time });
        extend(&mut fields, common);
        self.record(&json!({
            "qlog_format": "JSON-SEQ",
            "qlog_version": "0.3",
            "title": title,
            "trace": { "vantage_point": { "type": role }, "common_fields": fields },
        }));
    }

    /// An event at `time`; `own` holds what is true of it and not of all.
    pub fn event(&mut self, time: Time, own: &Map<String, Value>, (name, data): QlogEvent) {
        let time = millis(time.since(Time::ZERO));
        let mut event = json!({ "time": time });
        extend(&mut event, own.clone());
        event["name"] = name.into();
        event["data"] = data;
        self.record(&event);
    }

    fn record(&mut self, value: &Value) {
        self.text.push(RECORD);
        serde_json::to_writer(&mut self.text, value).expect("memory takes all");
        self.text.push(b'\n');
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Forgets the text, which has been written.
    pub fn clear(&mut self) {
        self.text.clear();
    }
}

pub(crate) fn extend(value: &mut Value, fields: Map<String, Value>) {
    if let Value::Object(all) = value {
        all.extend(fields);
    }
}

/// Milliseconds, to the microsecond.
pub fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// A packet left. Those of a handshake have no number.
pub fn packet_sent(number: Option<u64>, size: u32, frames: Vec<Value>) -> QlogEvent {
    ("transport:packet_sent", packet(number, size, frames))
}

/// A packet came.
pub fn packet_received(number: Option<u64>, size: u32, frames: Vec<Value>) -> QlogEvent {
    ("transport:packet_received", packet(number, size, frames))
}

/// A packet was taken for lost.
pub fn packet_lost(number: u64) -> QlogEvent {
    ("recovery:packet_lost", json!({ "header": header(Some(number)) }))
}

/// What is known of the path has changed.
pub fn metrics_updated(metrics: Value) -> QlogEvent {
    ("recovery:metrics_updated", metrics)
}

fn packet(number: Option<u64>, size: u32, frames: Vec<Value>) -> Value {
    json!({ "header": header(number), "raw": { "length": size }, "frames": frames })
}

fn header(number: Option<u64>) -> Value {
    match number {
        Some(number) => json!({ "packet_type": "1RTT", "packet_number": number }),
        None => json!({ "packet_type": "initial" }),
    }
}
