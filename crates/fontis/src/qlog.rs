use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use fontis_base::{Duration, Time};
use fontis_proto::dfcp::{ConnectionId, Frame, TraceEvent, Traced};
use serde_json::{Value, json};

/// Writes one connection's trace as qlog 0.3 (the JSON-SEQ form of draft-ietf-quic-qlog-main-schema-02), for `fontis view`,
/// qvis and people. Events and their fields are those of QUIC; what DFCP adds is in its frames, which `docs/view.md` lists.
pub(crate) struct Qlog {
    out: File,
    /// Whole records that wait to be written: whoever reads along, or comes when the process is gone, finds no part of one.
    pending: Vec<u8>,
    written: Time,
}

/// Records are written when there are so many bytes of them, or when they are so old.
const ENOUGH: usize = 8192;
const OLD: Duration = Duration::from_millis(100);

/// Begins a JSON text sequence's record (RFC 7464).
const RECORD: &[u8] = b"\x1e";

impl Qlog {
    /// Creates `ID_ROLE.sqlog` in `folder`; `now` is the time by which events are told.
    pub(crate) fn create(
        folder: &Path,
        id: ConnectionId,
        role: &str,
        now: Time,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let id = format!("{id:?}");
        let out = File::create(folder.join(format!("{id}_{role}.sqlog")))?;
        let mut qlog = Self { out, pending: Vec::new(), written: now };
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = Duration::from(wall) - now.since(Time::ZERO);
        qlog.record(&json!({
            "qlog_format": "JSON-SEQ",
            "qlog_version": "0.3",
            "title": "Fontis DFCP",
            "trace": {
                "vantage_point": { "type": role },
                "common_fields": {
                    "ODCID": id,
                    "time_format": "relative",
                    "reference_time": millis(began),
                    "protocol_type": ["DFCP"],
                },
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
            Traced::Lost { number } => {
                ("recovery:packet_lost", json!({ "header": header(Some(*number)) }))
            }
            Traced::Metrics { srtt, rate, in_flight, loss } => {
                let data = json!({
                    "smoothed_rtt": millis(*srtt),
                    "pacing_rate": rate.as_bps(),
                    "bytes_in_flight": in_flight,
                    "loss_rate": loss,
                });
                ("recovery:metrics_updated", data)
            }
        };
        let time = millis(event.time.since(Time::ZERO));
        self.record(&json!({ "time": time, "name": name, "data": data }))?;
        let is_last = match &event.what {
            Traced::Sent { frames, .. } | Traced::Received { frames, .. } => {
                frames.iter().any(|frame| matches!(frame, Frame::Close { .. } | Frame::FinAck))
            }
            _ => false,
        };
        let is_old = event.time.since(self.written) >= OLD;
        if is_last || is_old || self.pending.len() >= ENOUGH {
            self.written = event.time;
            self.write()?;
        }
        Ok(())
    }

    fn record(&mut self, value: &Value) -> io::Result<()> {
        self.pending.extend_from_slice(RECORD);
        serde_json::to_writer(&mut self.pending, value)?;
        self.pending.push(b'\n');
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

impl Drop for Qlog {
    fn drop(&mut self) {
        // A disk that fails loses the trace, not the connection.
        let _ = self.write();
    }
}

/// Milliseconds, to the microsecond.
fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

fn packet(number: Option<u64>, size: u32, frames: &[Frame]) -> Value {
    let frames: Vec<_> = frames.iter().map(frame).collect();
    json!({ "header": header(number), "raw": { "length": size }, "frames": frames })
}

fn header(number: Option<u64>) -> Value {
    match number {
        Some(number) => json!({ "packet_type": "1RTT", "packet_number": number }),
        None => json!({ "packet_type": "initial" }),
    }
}

fn frame(frame: &Frame) -> Value {
    let mut told = json!({ "frame_type": frame.name() });
    if let (Value::Object(all), Value::Object(fields)) = (&mut told, fields(frame)) {
        all.extend(fields);
    }
    told
}

/// What a frame says besides its kind.
fn fields(frame: &Frame) -> Value {
    match frame {
        Frame::Symbols(symbols) => {
            let mut told = json!({
                "channel": symbols.channel,
                "block": symbols.block,
                "esi": symbols.esi,
                "count": symbols.count,
                "length": symbols.len,
            });
            if let Some(live) = symbols.live {
                told["block_length"] = live.block_len.into();
                told["fin"] = live.fin.into();
            }
            if symbols.whole {
                told["whole"] = true.into();
            }
            told
        }
        Frame::Feedback(feedback) => {
            let received = feedback.ranges().filter(|(.., received)| *received);
            // QUIC's acknowledgements have their names for the same.
            let ranges: Vec<_> = received.map(|(first, last, _)| [first, last]).collect();
            json!({
                "ack_delay": f64::from(feedback.delay_us) / 1e3,
                "acked_ranges": ranges,
                "packets": feedback.packets,
                "ce": feedback.ce,
            })
        }
        Frame::Blocks(status) => {
            let needs = status.blocks.iter();
            let needs: Vec<_> = needs
                .map(
                    |need| json!({ "block": need.block, "needed": need.needed, "done": need.done }),
                )
                .collect();
            json!({
                "channel": status.channel,
                "floor": status.floor,
                "limit": status.limit,
                "blocks": needs,
            })
        }
        Frame::Open(open) => json!({
            "channel": open.channel,
            "size": open.object.size,
            "block_size": open.object.block_size,
            "symbol_size": open.object.symbol_size,
            "code": open.object.code,
        }),
        Frame::Done { channel } => json!({ "channel": channel }),
        Frame::Abandon { channel, code, .. } => json!({ "channel": channel, "error_code": code }),
        Frame::Limit { rate, .. } => json!({ "rate": rate.map(|rate| rate.as_bps()) }),
        Frame::Close { code, reason } => json!({ "error_code": code, "reason": reason }),
        Frame::Padding(length) => json!({ "length": length }),
        _ => json!({}),
    }
}
