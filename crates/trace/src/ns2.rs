//! Trace files of ns-2 (`$ns trace-all`), what the original PacketViz read.
//!
//! A line is an event at a link: `+` into its queue, `-` out of it, `r` received behind it, `d`
//! dropped; then time, the link's two nodes, type, size, flags, flow, source, destination, sequence
//! number, the packet's number. With `show_sctphdr_` there is a line for each chunk, with the
//! number of chunks, TSN, stream and place in the stream (trace/trace.cc of ns-2.35).

use std::collections::BTreeMap;
use std::io::BufRead;

use fontis_base::Time;
use thiserror::Error;

use crate::builder::Builder;
use crate::handle::Handle;
use crate::header::PacketHeader;
use crate::kept::Detail;
use crate::lane::LaneKind;
use crate::packet::{Kind, TracePacket};
use crate::trace::Trace;

/// What is wrong with a trace file.
#[derive(Debug, Error)]
pub enum Ns2Error {
    /// A line is none.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// It cannot be read.
    #[error("line {line}: {error}")]
    Io {
        /// Where.
        line: u64,
        /// Why.
        error: std::io::Error,
    },
}

/// Whether a line is one of a trace of ns-2.
pub fn is_line(line: &str) -> bool {
    Line::parse(line).is_ok()
}

/// Reads a trace file.
pub fn read(mut input: impl BufRead, title: &str, detail: Detail) -> Result<Trace, Ns2Error> {
    let mut reading = Reading {
        builder: Builder::new(title, Time::ZERO, detail),
        flows: BTreeMap::new(),
        under_way: BTreeMap::new(),
        lanes: BTreeMap::new(),
    };
    reading.builder.sort_lanes();
    let (mut bytes, mut number, mut skipped) = (Vec::new(), 0, 0u64);
    loop {
        bytes.clear();
        number += 1;
        // A file without line ends must not fill the memory.
        let mut limited = std::io::Read::take(&mut input, MOST_IN_A_LINE);
        let read = limited.read_until(b'\n', &mut bytes);
        if read.map_err(|error| Ns2Error::Io { line: number, error })? == 0 {
            break;
        }
        let is_whole = bytes.last() == Some(&b'\n');
        let text = String::from_utf8_lossy(&bytes);
        // Variables that are traced, and the lines of nam and of wireless nodes, stand between.
        if text.trim().is_empty() || !text.starts_with(['+', '-', 'r', 'd', 'h', 'e']) {
            skipped += u64::from(!text.trim().is_empty());
            continue;
        }
        match Line::parse(&text) {
            Ok(line) => reading.take(&line),
            Err(_) if !is_whole => {
                reading
                    .builder
                    .note("The file is cut off in its last line; it was read up to there.");
                break;
            }
            Err(problem) => return Err(Ns2Error::Line { line: number, problem }),
        }
    }
    if skipped > 0 {
        reading.builder.note(format!("{skipped} lines are no events of links and were left out."));
    }
    Ok(reading.builder.finish())
}

const MOST_IN_A_LINE: u64 = 4096;

struct Line<'a> {
    event: char,
    at: Time,
    from: &'a str,
    to: &'a str,
    kind: &'a str,
    size: u32,
    flags: &'a str,
    flow: &'a str,
    source: &'a str,
    destination: &'a str,
    seq: i64,
    uid: u64,
    /// Chunks in the packet, of SCTP.
    chunks: u32,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Result<Self, &'static str> {
        let mut words = text.split_ascii_whitespace();
        let mut next = || words.next().ok_or("it has too few fields for an event of a link");
        let event = next()?;
        let event = match event {
            "+" | "-" | "r" | "d" | "e" | "h" => event.chars().next().unwrap_or('+'),
            _ => return Err("it does not begin with +, -, r or d"),
        };
        let at: f64 = next()?.parse().map_err(|_| "its time is no number")?;
        if !(0.0..1e9).contains(&at) {
            return Err("its time is no time");
        }
        let (from, to, kind) = (next()?, next()?, next()?);
        let size = next()?.parse().map_err(|_| "its size is no number")?;
        let (flags, flow, source, destination) = (next()?, next()?, next()?, next()?);
        let number = |text: &str| text.parse::<i64>().map_err(|_| "its sequence number is none");
        let (first, second) = (number(next()?)?, number(next()?)?);
        let rest: Vec<&str> = words.collect();
        let (chunks, seq, uid) = match (kind, rest.len()) {
            // Chunks, TSN, the packet's number, stream, place in the stream.
            ("sctp", 3..) => (first.clamp(0, 1000) as u32, second, number(rest[0])?),
            _ => (0, first, second),
        };
        Ok(Self {
            event,
            at: Time::from_nanos((at * 1e9).round() as u64),
            from,
            to,
            kind,
            size,
            flags,
            flow,
            source,
            destination,
            seq,
            uid: u64::try_from(uid).map_err(|_| "its packet has no number")?,
            chunks,
        })
    }

    fn header(&self) -> PacketHeader {
        let seq = u64::try_from(self.seq).ok();
        let data = |len, bits| PacketHeader {
            kind: Kind::Data,
            seq,
            len,
            bits,
            ..PacketHeader::default()
        };
        let ack = || PacketHeader {
            kind: Kind::Ack,
            ack: seq.map(|seq| seq + 1),
            ..PacketHeader::default()
        };
        let chunk = self.flags.chars().nth(7);
        match (self.kind, chunk) {
            ("sctp", Some('D')) => data(self.chunks.max(1), 0),
            ("sctp", Some('S')) => ack(),
            ("sctp", Some('I' | 'C' | 'A')) => PacketHeader::of(Kind::Handshake),
            ("sctp", _) if self.size <= 60 => ack(),
            ("sctp", _) => data(1, 0),
            ("tcp", _) => data(1, 0),
            ("ack", _) => ack(),
            (kind, _) if kind.to_ascii_lowercase().ends_with("ack") || kind.ends_with("Ctl") => {
                PacketHeader::of(Kind::Ack)
            }
            // Every packet of these has a number of its own.
            _ => data(1, 64),
        }
    }

    fn protocol(&self) -> (&'static str, &'static str) {
        match self.kind {
            "tcp" | "ack" => ("TCP", "packets"),
            "sctp" => ("SCTP", "chunks"),
            kind if kind.starts_with("DCCP") => ("DCCP", "packets"),
            kind if kind.starts_with("tcpFriend") => ("TFRC", "packets"),
            _ => ("UDP", "packets"),
        }
    }
}

/// The node of an address: all of it but the port.
fn node(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(node, _)| node)
}

struct Reading {
    builder: Builder,
    /// By protocol, flow and ports: the trace's flow and the address that spoke first.
    flows: BTreeMap<(String, String), (u16, String)>,
    under_way: BTreeMap<u64, UnderWay>,
    lanes: BTreeMap<String, u16>,
}

struct UnderWay {
    handle: Handle,
    lane: u16,
    entered: Time,
    /// The link at whose queue it was last.
    link: (String, String),
}

impl Reading {
    fn lane(&mut self, node: &str, kind: LaneKind) -> u16 {
        if let Some(lane) = self.lanes.get(node) {
            return *lane;
        }
        let lane = self.builder.lane(&format!("node {node}"), kind);
        self.lanes.insert(node.to_owned(), lane);
        lane
    }

    fn take(&mut self, line: &Line<'_>) {
        match line.event {
            '+' => self.enter(line),
            '-' => {
                let Some(one) = self.under_way.get(&line.uid) else { return };
                // At its source a packet only waits for its own line.
                if one.link.0 == line.from && node(line.source) != line.from {
                    self.builder.hop(one.handle, one.lane, one.entered, line.at);
                }
            }
            'r' if line.to == node(line.destination) => {
                if let Some(one) = self.under_way.remove(&line.uid) {
                    self.builder.arrived(one.handle, line.at);
                }
            }
            'd' | 'e' => {
                let lane = self.lane(line.from, LaneKind::Queue);
                if let Some(one) = self.under_way.remove(&line.uid) {
                    self.builder.lost(one.handle, Some(lane), Some(line.at));
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, line: &Line<'_>) {
        let link = (line.from.to_owned(), line.to.to_owned());
        if let Some(one) = self.under_way.get(&line.uid) {
            // Another chunk of the same packet.
            if one.link == link && one.entered == line.at {
                return;
            }
            let lane = self.lane(line.from, LaneKind::Queue);
            if let Some(one) = self.under_way.get_mut(&line.uid) {
                (one.lane, one.entered, one.link) = (lane, line.at, link);
            }
            return;
        }
        let from = self.lane(node(line.source), LaneKind::Host);
        let to = self.lane(node(line.destination), LaneKind::Host);
        let (protocol, unit) = line.protocol();
        // A multihomed end has many addresses: its flow's number alone tells its packets.
        let ends = match protocol {
            "SCTP" => line.flow.to_owned(),
            _ => {
                let (low, high) =
                    (line.source.min(line.destination), line.source.max(line.destination));
                format!("{} {low} {high}", line.flow)
            }
        };
        let key = (protocol.to_owned(), ends);
        let (flow, first) = match self.flows.get(&key) {
            Some((flow, first)) => (*flow, first.clone()),
            None => {
                let name = format!("flow {} {} → {}", line.flow, line.source, line.destination);
                let flow = self.builder.flow(&name, protocol, unit);
                let port = line.source.rsplit_once('.').map_or("", |(_, port)| port).to_owned();
                let first = if protocol == "SCTP" { port } else { line.source.to_owned() };
                self.flows.insert(key, (flow, first.clone()));
                (flow, first)
            }
        };
        let header = line.header();
        let back = match protocol {
            // Whoever sends acknowledgements is the other end.
            "SCTP" => header.kind == Kind::Ack,
            _ => line.source != first,
        };
        let mut packet = TracePacket::sent(line.uid, line.at, from, to, line.size);
        packet.flow = flow;
        if protocol == "SCTP" {
            let (one, other) = (node(line.source), node(line.destination));
            let name =
                if back { format!("{other} – {one}") } else { format!("{one} – {other}") };
            packet.path = self.builder.path(flow, &name);
        }
        let handle = self.builder.sent(line.at, packet, header, back, false);
        self.under_way.insert(line.uid, UnderWay { handle, lane: from, entered: line.at, link });
    }
}
