//! A trace as bytes: what the browser receives, and what lies in `.trace` files.
//!
//! `FONTISTR`, a version (4 bytes), the length of a head (4), the head, padding to 8 bytes,
//! columns. The head is JSON: all that is little, and where each column lies, what its values are
//! and how many. Columns are arrays of little-endian numbers, each at a multiple of 8 bytes: a
//! browser looks at them where they lie. Times are nanoseconds, as 64-bit floats; NaN is none.
//! `docs/view.md` has the columns.

use fontis_base::Time;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::blocks::Block;
use crate::counts::Counts;
use crate::finding::Finding;
use crate::lane::{Lane, LaneKind};
use crate::packet::{Fate, Kind, Marks, TracePacket};
use crate::series::{Group, Series};
use crate::trace::{Hop, Trace, TraceFlow};

/// How every stream begins.
pub const MAGIC: &[u8; 8] = b"FONTISTR";
const VERSION: u32 = 2;

/// Bytes that are no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// It does not begin as one.
    #[error("it is no trace of Fontis: it does not begin with FONTISTR")]
    Magic,
    /// It is of a version that is not known here.
    #[error("it is a trace of version {0}; this program reads version 2")]
    Version(u32),
    /// There are fewer bytes than it says.
    #[error("it is cut off: {0} is not all there")]
    Short(&'static str),
    /// The head makes no sense.
    #[error("its head is wrong: {0}")]
    Head(String),
}

/// Writes a trace.
pub fn encode(trace: &Trace) -> Vec<u8> {
    let mut columns = Columns::default();
    let packets = &trace.packets;
    columns.f64("sent", packets.iter().map(|p| nanos(p.sent)));
    columns.f64("ended", packets.iter().map(|p| nanos(p.ended)));
    columns.f64("seq", packets.iter().map(|p| p.seq as f64));
    columns.f64("ack", packets.iter().map(|p| p.ack as f64));
    columns.f64("number", packets.iter().map(|p| p.number as f64));
    columns.u32("len", packets.iter().map(|p| p.len));
    columns.u32("size", packets.iter().map(|p| p.size));
    columns.u32("block", packets.iter().map(|p| p.block));
    columns.u16("flow", packets.iter().map(|p| p.flow));
    columns.u16("channel", packets.iter().map(|p| p.channel));
    columns.u16("marks", packets.iter().map(|p| p.marks.0));
    columns.u16("from", packets.iter().map(|p| p.from));
    columns.u16("to", packets.iter().map(|p| p.to));
    columns.u8("path", packets.iter().map(|p| p.path));
    columns.u8("kind", packets.iter().map(|p| p.kind as u8));
    columns.u8("fate", packets.iter().map(|p| p.fate as u8));
    columns.u16("place", packets.iter().map(|p| p.place));
    columns.u32("hop_packet", trace.hops.iter().map(|hop| hop.packet));
    columns.u16("hop_lane", trace.hops.iter().map(|hop| hop.lane));
    columns.f64("hop_enter", trace.hops.iter().map(|hop| nanos(hop.enter)));
    columns.f64("hop_leave", trace.hops.iter().map(|hop| nanos(hop.leave)));
    let blocks = &trace.blocks;
    columns.u16("block_flow", blocks.iter().map(|b| b.flow));
    columns.u32("block_channel", blocks.iter().map(|b| b.channel));
    columns.u32("block_number", blocks.iter().map(|b| b.block));
    columns.u32("block_k", blocks.iter().map(|b| b.k));
    columns.u32("block_sent", blocks.iter().map(|b| b.sent));
    columns.u32("block_received", blocks.iter().map(|b| b.received));
    columns.u32("block_useless", blocks.iter().map(|b| b.useless));
    columns.f64("block_begun", blocks.iter().map(|b| nanos(b.begun)));
    columns.f64("block_done", blocks.iter().map(|b| nanos(b.done)));
    for (index, series) in trace.series.iter().enumerate() {
        columns.f64(&format!("series_{index}_time"), series.points.iter().map(|p| nanos(p.0)));
        columns.f32(&format!("series_{index}_value"), series.points.iter().map(|p| p.1));
    }
    let head = json!({
        "title": trace.title,
        // JSON's numbers are floats in a browser: nanoseconds since 1970 do not fit one.
        "origin": trace.origin.as_nanos().to_string(),
        "end": trace.end.as_nanos() as f64,
        "total": trace.total,
        "kept": trace.kept,
        "lanes": trace.lanes.iter().map(lane_json).collect::<Vec<_>>(),
        "flows": trace.flows.iter().map(flow_json).collect::<Vec<_>>(),
        "kinds": Kind::ALL.map(Kind::name),
        "marks": Marks::ALL.map(|(_, name)| name),
        "series": trace.series.iter().map(series_json).collect::<Vec<_>>(),
        "findings": trace.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "notes": trace.notes,
        "columns": columns.places,
    });
    let head = head.to_string();
    let mut out = Vec::with_capacity(24 + head.len() + columns.bytes.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(head.len() as u32).to_le_bytes());
    out.extend_from_slice(head.as_bytes());
    out.resize(out.len().next_multiple_of(8), b' ');
    out.extend_from_slice(&columns.bytes);
    out
}

/// Reads a trace.
pub fn decode(bytes: &[u8]) -> Result<Trace, StreamError> {
    if !bytes.starts_with(MAGIC) {
        return Err(StreamError::Magic);
    }
    let word = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(u32::from_le_bytes).ok_or(StreamError::Short("the head"))
    };
    let version = word(8)?;
    if version != VERSION {
        return Err(StreamError::Version(version));
    }
    let length = word(12)? as usize;
    let end = length.checked_add(16).ok_or(StreamError::Short("the head"))?;
    let head = bytes.get(16..end).ok_or(StreamError::Short("the head"))?;
    let head: Value =
        serde_json::from_slice(head).map_err(|error| StreamError::Head(error.to_string()))?;
    let body = bytes.get(end.next_multiple_of(8)..).unwrap_or(&[]);
    let read = Reader { head: &head, body };
    let mut trace = Trace {
        title: read.text(&head, "title"),
        origin: Time::from_nanos(read.text(&head, "origin").parse().unwrap_or(0)),
        end: time(head["end"].as_f64().unwrap_or(0.0)),
        lanes: read.list("lanes").map(lane_of).collect(),
        flows: read.list("flows").map(flow_of).collect(),
        packets: Vec::new(),
        hops: Vec::new(),
        blocks: Vec::new(),
        series: Vec::new(),
        findings: read.list("findings").map(finding_of).collect(),
        notes: read.list("notes").filter_map(Value::as_str).map(str::to_owned).collect(),
        total: head["total"].as_u64().unwrap_or(0),
        kept: [head["kept"][0].as_u64().unwrap_or(1), head["kept"][1].as_u64().unwrap_or(1)],
    };
    trace.packets = read.packets()?;
    trace.hops = read.hops(trace.packets.len())?;
    trace.blocks = read.blocks()?;
    for (index, one) in read.list("series").enumerate() {
        let group = Group::from_title(&read.text(one, "group"));
        let group =
            group.ok_or_else(|| StreamError::Head("a series without a group".to_owned()))?;
        let flow = one["flow"].as_u64().map(|flow| flow as u16);
        let mut series = Series::new(group, read.text(one, "name"), flow);
        let times = read.f64(&format!("series_{index}_time"))?;
        let values = read.f64(&format!("series_{index}_value"))?;
        series.points = times.map(time).zip(values.map(|value| value as f32)).collect();
        trace.series.push(series);
    }
    Ok(trace)
}

fn nanos(at: Time) -> f64 {
    if at == Time::MAX { f64::NAN } else { at.as_nanos() as f64 }
}

fn time(nanos: f64) -> Time {
    if nanos.is_nan() { Time::MAX } else { Time::from_nanos(nanos.max(0.0) as u64) }
}

#[derive(Default)]
struct Columns {
    bytes: Vec<u8>,
    places: Map<String, Value>,
}

macro_rules! write_column {
    ($($kind:ident),*) => {$(
        fn $kind(&mut self, name: &str, values: impl Iterator<Item = $kind>) {
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            let begin = self.bytes.len();
            for value in values {
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            let count = (self.bytes.len() - begin) / size_of::<$kind>();
            let place = json!({ "type": stringify!($kind), "at": begin, "count": count });
            self.places.insert(name.to_owned(), place);
        }
    )*};
}

impl Columns {
    write_column!(f64, f32, u32, u16, u8);
}

struct Reader<'a> {
    head: &'a Value,
    body: &'a [u8],
}

impl<'a> Reader<'a> {
    fn text(&self, of: &Value, key: &str) -> String {
        of[key].as_str().unwrap_or_default().to_owned()
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.head[key].as_array().map(Vec::as_slice).unwrap_or_default().iter()
    }

    /// A column's values as floats, whatever their type.
    fn f64(&self, name: &str) -> Result<impl Iterator<Item = f64> + use<'a>, StreamError> {
        let column = &self.head["columns"][name];
        let short = || StreamError::Short("a column");
        let number = |key: &str| column[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let (at, count) = number("at").zip(number("count")).ok_or_else(short)?;
        let (width, read): (usize, fn(&[u8]) -> f64) = match column["type"].as_str() {
            Some("f64") => (8, |b| f64::from_le_bytes(b.try_into().unwrap_or_default())),
            Some("f32") => (4, |b| f32::from_le_bytes(b.try_into().unwrap_or_default()).into()),
            Some("u32") => (4, |b| u32::from_le_bytes(b.try_into().unwrap_or_default()).into()),
            Some("u16") => (2, |b| u16::from_le_bytes(b.try_into().unwrap_or_default()).into()),
            Some("u8") => (1, |b| f64::from(b[0])),
            _ => return Err(StreamError::Head(format!("column {name} has no known type"))),
        };
        let end = count.checked_mul(width).and_then(|length| length.checked_add(at));
        let bytes = end.and_then(|end| self.body.get(at..end)).ok_or_else(short)?;
        Ok(bytes.chunks_exact(width).map(read))
    }

    fn packets(&self) -> Result<Vec<TracePacket>, StreamError> {
        let sent = self.f64("sent")?;
        let mut packets: Vec<TracePacket> =
            sent.map(|sent| TracePacket::sent(0, time(sent), 0, 0, 0)).collect();
        let mut set = |name: &str, put: fn(&mut TracePacket, f64)| -> Result<(), StreamError> {
            for (packet, value) in packets.iter_mut().zip(self.f64(name)?) {
                put(packet, value);
            }
            Ok(())
        };
        set("ended", |p, v| p.ended = time(v))?;
        set("seq", |p, v| p.seq = v as u64)?;
        set("ack", |p, v| p.ack = v as u64)?;
        set("number", |p, v| p.number = v as u64)?;
        set("len", |p, v| p.len = v as u32)?;
        set("size", |p, v| p.size = v as u32)?;
        set("block", |p, v| p.block = v as u32)?;
        set("flow", |p, v| p.flow = v as u16)?;
        set("channel", |p, v| p.channel = v as u16)?;
        set("marks", |p, v| p.marks = Marks(v as u16))?;
        set("from", |p, v| p.from = v as u16)?;
        set("to", |p, v| p.to = v as u16)?;
        set("path", |p, v| p.path = v as u8)?;
        set("kind", |p, v| p.kind = Kind::ALL.get(v as usize).copied().unwrap_or(Kind::Opaque))?;
        set("fate", |p, v| {
            p.fate = [Fate::Unknown, Fate::Arrived, Fate::Lost]
                .get(v as usize)
                .copied()
                .unwrap_or_default();
        })?;
        set("place", |p, v| p.place = v as u16)?;
        Ok(packets)
    }

    fn hops(&self, packets: usize) -> Result<Vec<Hop>, StreamError> {
        let times = self.f64("hop_enter")?.zip(self.f64("hop_leave")?);
        let names = self.f64("hop_packet")?.zip(self.f64("hop_lane")?);
        let all = names.zip(times).map(|((packet, lane), (enter, leave))| Hop {
            packet: packet as u32,
            lane: lane as u16,
            enter: time(enter),
            leave: time(leave),
        });
        Ok(all.filter(|hop| (hop.packet as usize) < packets).collect())
    }

    fn blocks(&self) -> Result<Vec<Block>, StreamError> {
        let mut blocks: Vec<Block> = self
            .f64("block_flow")?
            .map(|flow| Block { flow: flow as u16, ..Block::default() })
            .collect();
        let mut set = |name: &str, put: fn(&mut Block, f64)| -> Result<(), StreamError> {
            for (block, value) in blocks.iter_mut().zip(self.f64(name)?) {
                put(block, value);
            }
            Ok(())
        };
        set("block_channel", |b, v| b.channel = v as u32)?;
        set("block_number", |b, v| b.block = v as u32)?;
        set("block_k", |b, v| b.k = v as u32)?;
        set("block_sent", |b, v| b.sent = v as u32)?;
        set("block_received", |b, v| b.received = v as u32)?;
        set("block_useless", |b, v| b.useless = v as u32)?;
        set("block_begun", |b, v| b.begun = time(v))?;
        set("block_done", |b, v| b.done = time(v))?;
        Ok(blocks)
    }
}

fn lane_json(lane: &Lane) -> Value {
    let kind = match lane.kind {
        LaneKind::Host => "host",
        LaneKind::Queue => "queue",
        LaneKind::Node => "node",
    };
    json!({ "name": lane.name, "kind": kind })
}

fn lane_of(value: &Value) -> Lane {
    let kind = match value["kind"].as_str() {
        Some("queue") => LaneKind::Queue,
        Some("node") => LaneKind::Node,
        _ => LaneKind::Host,
    };
    Lane { name: value["name"].as_str().unwrap_or_default().to_owned(), kind }
}

fn flow_json(flow: &TraceFlow) -> Value {
    let counts: Vec<Value> = flow.counts.iter().map(counts_json).collect();
    json!({
        "name": flow.name, "protocol": flow.protocol, "unit": flow.unit, "paths": flow.paths, "counts": counts,
    })
}

fn flow_of(value: &Value) -> TraceFlow {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let paths = value["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    TraceFlow {
        name: text("name"),
        protocol: text("protocol"),
        unit: text("unit"),
        paths: paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        counts: [0, 1].map(|side| counts_of(&value["counts"][side])),
    }
}

fn counts_json(counts: &Counts) -> Value {
    json!({
        "packets": counts.packets, "bytes": counts.bytes, "data": counts.data, "lost": counts.lost,
        "retransmitted": counts.retransmitted, "spurious": counts.spurious, "reordered": counts.reordered,
        "marked": counts.marked, "delivered": counts.delivered,
    })
}

fn counts_of(value: &Value) -> Counts {
    let count = |key: &str| value[key].as_u64().unwrap_or(0);
    Counts {
        packets: count("packets"),
        bytes: count("bytes"),
        data: count("data"),
        lost: count("lost"),
        retransmitted: count("retransmitted"),
        spurious: count("spurious"),
        reordered: count("reordered"),
        marked: count("marked"),
        delivered: count("delivered"),
    }
}

fn series_json(series: &Series) -> Value {
    let (group, unit) = series.group.title();
    json!({ "group": group, "unit": unit, "name": series.name, "flow": series.flow })
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "text": finding.text, "flow": finding.flow, "from": nanos(finding.from), "until": nanos(finding.until),
        "marks": finding.marks.0, "lost": finding.lost, "weight": finding.weight,
    })
}

fn finding_of(value: &Value) -> Finding {
    let number = |key: &str| value[key].as_f64().unwrap_or(0.0);
    Finding {
        text: value["text"].as_str().unwrap_or_default().to_owned(),
        flow: number("flow") as u16,
        from: time(number("from")),
        until: time(number("until")),
        marks: Marks(number("marks") as u16),
        lost: value["lost"].as_bool().unwrap_or(false),
        weight: number("weight"),
    }
}
