//! Captures of simulated packets in pcapng.

use bytes::BufMut;
use fontis_base::{HostId, Packet, Time};
use fontis_proto::tcp::wire::{Addresses, encode_headers};

use crate::host::payload::Payload;
use fontis_trace::Clear;

/// Packets as pcapng, for Wireshark: what some nodes send and receive, as raw IPv4 with nanosecond
/// times. Of TCP only the headers are kept; original lengths say how long packets were.
#[derive(Clone, Debug)]
pub struct Capture {
    out: Vec<u8>,
    packets: u64,
    /// When the last one was seen.
    last: Time,
    most: u64,
    /// By node: whether it is listened to.
    nodes: Vec<bool>,
}

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Packets begin with the IP header ("LINKTYPE_RAW").
const RAW: u16 = 101;
/// The option that says in which unit times are ("if_tsresol"): 10⁻⁹ s.
const RESOLUTION: u16 = 9;

impl Capture {
    /// A capture of the first `most` packets of these nodes.
    pub fn new(nodes: impl IntoIterator<Item = usize>, most: u64) -> Self {
        let mut listened = Vec::new();
        for node in nodes {
            if listened.len() <= node {
                listened.resize(node + 1, false);
            }
            listened[node] = true;
        }
        let mut capture =
            Self { out: Vec::new(), packets: 0, last: Time::ZERO, most, nodes: listened };
        let mut section = Vec::new();
        section.put_u32_le(BYTE_ORDER);
        section.put_u16_le(1);
        section.put_u16_le(0);
        section.put_i64_le(-1);
        capture.block(SECTION, &section);
        let mut interface = Vec::new();
        interface.put_u16_le(RAW);
        interface.put_u16_le(0);
        interface.put_u32_le(0);
        interface.put_u16_le(RESOLUTION);
        interface.put_u16_le(1);
        interface.put_u32_le(9);
        interface.put_u32_le(0);
        capture.block(INTERFACE, &interface);
        capture
    }

    /// Whether a node is listened to.
    pub(crate) fn listens(&self, node: u32) -> bool {
        self.nodes.get(node as usize).copied().unwrap_or(false)
    }

    /// Keeps a packet that a node sends or receives at `now`.
    pub(crate) fn take(&mut self, now: Time, packet: &Packet<Payload>) {
        if self.is_full() {
            return;
        }
        let mut bytes = Vec::with_capacity(80);
        encode(packet, &mut bytes);
        let original = (bytes.len() as u32).max(packet.size);
        self.keep(now, &bytes, original);
    }

    /// Keeps what there is of a packet of `original` bytes that was seen at `now`, and no earlier
    /// than the one before, as threads that watch together may come to have it.
    pub fn keep(&mut self, now: Time, bytes: &[u8], original: u32) {
        if self.is_full() {
            return;
        }
        self.packets += 1;
        self.last = self.last.max(now);
        let nanos = self.last.as_nanos();
        let mut body = Vec::with_capacity(bytes.len() + 24);
        body.put_u32_le(0);
        body.put_u32_le((nanos >> 32) as u32);
        body.put_u32_le(nanos as u32);
        body.put_u32_le(bytes.len() as u32);
        body.put_u32_le(original);
        body.extend_from_slice(bytes);
        self.block(ENHANCED_PACKET, &body);
    }

    /// Whether it has as many packets as it may.
    pub const fn is_full(&self) -> bool {
        self.packets >= self.most
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = body.len().wrapping_neg() % 4;
        let length = (12 + body.len() + padding) as u32;
        self.out.put_u32_le(kind);
        self.out.put_u32_le(length);
        self.out.extend_from_slice(body);
        self.out.put_bytes(0, padding);
        self.out.put_u32_le(length);
    }

    /// How many packets it holds.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }
}

/// Addresses that stand for a packet's hosts and flow: 10.0.0.0/8 by host; the sender of a flow's
/// data has port 5001, its receiver one that is the flow's.
pub(crate) fn addresses(packet: &Packet<Payload>) -> Addresses {
    let port = 10_000 + (packet.flow.0 % 50_000) as u16;
    // A flow's sender has the even number of its two hosts.
    let of = |host: HostId| {
        (0x0a00_0000 | (host.0 & 0x00ff_ffff), if host.0.is_multiple_of(2) { 5001 } else { port })
    };
    Addresses { source: of(packet.src), destination: of(packet.dst) }
}

fn encode(packet: &Packet<Payload>, out: &mut Vec<u8>) {
    let addresses = addresses(packet);
    match &packet.payload {
        Payload::Tcp(segment) => encode_headers(segment, packet.ecn, addresses, out),
        Payload::Dfcp(dfcp) => {
            let mut payload = Vec::new();
            // Resets are never made here; an empty datagram would stand for one.
            let _ = fontis_proto::dfcp::Session::seal(&mut Clear, dfcp, &mut payload);
            encode_datagram(addresses, &payload, packet.size, out);
        }
        Payload::Published(published) => {
            let mut payload = Vec::new();
            published.encode(&[], &mut payload);
            encode_datagram(addresses, &payload, packet.size, out);
        }
        // These take no part of the network.
        Payload::Rate(_) | Payload::Active(_) => {}
        Payload::Datagram(number) => {
            encode_datagram(addresses, &number.to_be_bytes(), packet.size, out);
        }
    }
}

const UDP: u8 = 17;

/// An IPv4 and a UDP header without a checksum (RFC 768 allows none), and what there is of the
/// payload.
fn encode_datagram(addresses: Addresses, payload: &[u8], size: u32, out: &mut Vec<u8>) {
    let begin = out.len();
    let total = size.clamp(28, 0xffff) as u16;
    out.put_slice(&[0x45, 0]);
    out.put_u16(total);
    out.put_slice(&[0, 0, 0x40, 0, 64, UDP, 0, 0]);
    out.put_u32(addresses.source.0);
    out.put_u32(addresses.destination.0);
    let words = out[begin..].chunks_exact(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    let check = !((folded >> 16) as u16 + folded as u16);
    out[begin + 10..begin + 12].copy_from_slice(&check.to_be_bytes());
    out.put_u16(addresses.source.1);
    out.put_u16(addresses.destination.1);
    out.put_u16(total - 20);
    out.put_u16(0);
    let room = usize::from(total) - 28;
    out.put_slice(&payload[..payload.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_state_their_length_at_both_ends_and_lie_on_words() {
        let mut capture = Capture::new([1], 1);
        assert!(capture.listens(1) && !capture.listens(0) && !capture.listens(7));
        let packet = Packet {
            id: Default::default(),
            src: HostId(0),
            dst: HostId(1),
            flow: Default::default(),
            size: 33,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class: 0,
            payload: Payload::Datagram(7),
        };
        capture.take(Time::from_nanos(5), &packet);
        // The second is one too many.
        capture.take(Time::from_nanos(6), &packet);
        let (mut at, mut kinds) = (0, Vec::new());
        let bytes = capture.as_bytes();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert!(length.is_multiple_of(4) && word(at + length - 4) as usize == length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [SECTION, INTERFACE, ENHANCED_PACKET]);
        assert_eq!(capture.packets(), 1);
    }
}
