//! TCP in qlog.

use std::collections::BTreeMap;

use fontis_base::Packet;
use fontis_proto::tcp::{Segment, TcpFlags};
use serde_json::{Value, json};

use crate::host::payload::Payload;
use crate::host::table::{QlogFlow, QlogPacket};

/// The bytes of a TCP connection, as packets and frames of qlog. Packets are counted as they leave
/// and as they come, data is that of stream 0, and a copy counts as the loss of the packet that
/// carried the bytes before.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpQlog {
    /// The sequence numbers of both sides' first bytes.
    first: Option<u32>,
    peer_first: Option<u32>,
    /// One beyond the last byte sent, the end included, and one beyond the last that came.
    end: u64,
    peer_end: u64,
    /// Ranges sent and not acknowledged, by their beginning: their end, and the packet.
    outstanding: BTreeMap<u64, (u64, u64)>,
    /// The last acknowledgement sent.
    acknowledged: u32,
}

impl QlogFlow for TcpQlog {
    fn sent(&mut self, packet: &Packet<Payload>, number: u64, received: u64) -> QlogPacket {
        let Payload::Tcp(segment) = &packet.payload else { return QlogPacket::default() };
        if segment.flags.has(TcpFlags::SYN) {
            self.first = Some(segment.seq.wrapping_add(1));
            return QlogPacket { is_handshake: true, ..QlogPacket::default() };
        }
        let (lost, frames) = self.segment_sent(segment, number, received);
        QlogPacket { lost, frames, ..QlogPacket::default() }
    }

    fn received(&mut self, packet: &Packet<Payload>, _number: u64) -> QlogPacket {
        let Payload::Tcp(segment) = &packet.payload else { return QlogPacket::default() };
        if segment.flags.has(TcpFlags::SYN) {
            self.peer_first = Some(segment.seq.wrapping_add(1));
            return QlogPacket { is_handshake: true, ..QlogPacket::default() };
        }
        QlogPacket { frames: self.segment_received(segment), ..QlogPacket::default() }
    }
}

impl TcpQlog {
    /// A segment leaves as packet `number`: which packets it takes for lost, and its frames.
    fn segment_sent(
        &mut self,
        segment: &Segment,
        number: u64,
        received: u64,
    ) -> (Vec<u64>, Vec<Value>) {
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
    fn segment_received(&mut self, segment: &Segment) -> Vec<Value> {
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
    let fin = segment.flags.has(TcpFlags::FIN);
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
