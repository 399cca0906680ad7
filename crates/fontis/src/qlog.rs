use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use fontis_proto::dfcp::{ConnectionId, TraceEvent, Traced};
use serde_json::json;

/// Writes one connection's trace as qlog (the JSON-SEQ form of draft-ietf-quic-qlog-main-schema), for qvis and people.
pub(crate) struct Qlog {
    out: BufWriter<File>,
}

/// Begins a JSON text sequence's record (RFC 7464).
const RECORD: &[u8] = b"\x1e";

impl Qlog {
    /// Creates `ID_ROLE.sqlog` in `folder`.
    pub(crate) fn create(folder: &Path, id: ConnectionId, role: &str) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let id = format!("{id:?}");
        let mut qlog =
            Self { out: BufWriter::new(File::create(folder.join(format!("{id}_{role}.sqlog")))?) };
        qlog.record(&json!({
            "qlog_format": "JSON-SEQ",
            "qlog_version": "0.3",
            "title": "Fontis DFCP",
            "trace": {
                "vantage_point": { "type": role },
                "common_fields": { "ODCID": id, "time_format": "absolute", "protocol_type": ["DFCP"] },
            },
        }))?;
        Ok(qlog)
    }

    /// Writes one event.
    pub(crate) fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let (name, data) = match &event.what {
            Traced::Sent { number, size, frames } => {
                ("transport:packet_sent", packet(*number, *size, frames))
            }
            Traced::Received { number, size, frames } => {
                ("transport:packet_received", packet(*number, *size, frames))
            }
            Traced::Metrics { srtt, rate, in_flight, loss } => {
                let data = json!({
                    "smoothed_rtt": srtt.as_secs_f64() * 1e3,
                    "pacing_rate": rate.as_bps(),
                    "bytes_in_flight": in_flight,
                    "loss_rate": loss,
                });
                ("recovery:metrics_updated", data)
            }
        };
        self.record(&json!({ "time": event.time.as_secs_f64() * 1e3, "name": name, "data": data }))
    }

    fn record(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.out.write_all(RECORD)?;
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }
}

fn packet(number: Option<u64>, size: u32, frames: &[&str]) -> serde_json::Value {
    let frames: Vec<_> = frames.iter().map(|name| json!({ "frame_type": name })).collect();
    let packet_type = if number.is_some() { "1RTT" } else { "initial" };
    json!({
        "header": { "packet_type": packet_type, "packet_number": number },
        "raw": { "length": size },
        "frames": frames,
    })
}
