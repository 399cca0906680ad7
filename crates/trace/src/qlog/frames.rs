use std::collections::BTreeMap;

use fontis_base::{Duration, IntervalSet};
use serde_json::Value;

use crate::header::PacketHeader;
use crate::packet::Kind;

/// The sum of a packet's frames.
pub(super) struct PacketFacts {
    pub(super) header: PacketHeader,
    /// Packets that it acknowledges: first and last.
    pub(super) acks: Vec<(u64, u64)>,
    /// The stream of its last data.
    pub(super) stream: Option<u64>,
    /// All its data had been sent before.
    pub(super) again: bool,
}

/// Of each stream, what was sent.
pub(super) type Streams = BTreeMap<u64, IntervalSet>;

/// More holes than this in a stream say that the file does not tell all of it.
const MOST_RANGES: usize = 10_000;

/// What a packet of QUIC says; `streams` are those of its sender, if they are to be followed.
pub(super) fn said(
    number: Option<u64>,
    frames: &[Value],
    mut streams: Option<&mut Streams>,
) -> PacketFacts {
    let (mut carries, mut bytes) = (false, 0u64);
    let (mut acks, mut is_ack) = (Vec::new(), false);
    let (mut stream, mut again) = (None, false);
    let mut delay = Duration::ZERO;
    for frame in frames {
        match frame["frame_type"].as_str().unwrap_or_default() {
            "stream" | "datagram" => {
                carries = true;
                let id = as_number(&frame["stream_id"]).unwrap_or(0);
                stream = Some(id);
                let length =
                    as_number(&frame["length"]).or(as_number(&frame["raw"]["payload_length"]));
                bytes = bytes.saturating_add(length.unwrap_or(0));
                let offset = as_number(&frame["offset"]);
                if let (Some((offset, length)), Some(streams)) =
                    (offset.zip(length), streams.as_deref_mut())
                {
                    let known = streams.entry(id).or_default();
                    let new = known.insert(offset, offset.saturating_add(length));
                    again |= length > 0 && new == 0 && known.intervals() < MOST_RANGES;
                }
            }
            "ack" => {
                is_ack = true;
                let millis = frame["ack_delay"].as_f64().unwrap_or(0.0).clamp(0.0, 1e6);
                delay = Duration::from_nanos((millis * 1e6) as u64);
                for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                    let low = as_number(&range[0]);
                    // A single number is a range, too.
                    acks.extend(low.zip(as_number(&range[1]).or(low)));
                }
            }
            _ => {}
        }
    }
    let kind = match () {
        () if carries => Kind::Data,
        () if number.is_none() => Kind::Handshake,
        () if is_ack => Kind::Ack,
        () => Kind::Control,
    };
    let largest = acks.iter().map(|(_, high)| *high).max();
    let header = PacketHeader {
        kind,
        len: u32::from(number.is_some()),
        bits: 64,
        seq: number,
        ack: largest.filter(|_| number.is_some()).map(|largest| largest.saturating_add(1)),
        ack_delay: delay,
        data: Some(if again { 0 } else { bytes.min(u64::from(u32::MAX)) as u32 }),
        ..PacketHeader::default()
    };
    PacketFacts { header, acks, stream, again }
}

/// A number, or a text of one.
pub(super) fn as_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
