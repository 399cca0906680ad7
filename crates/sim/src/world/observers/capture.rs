//! Captures of simulated packets in pcapng.

use bytes::BufMut;
use fontis_base::{Address, FlowId, Packet, Time};
use fontis_proto::tcp::wire::Addresses;

use crate::host::payload::Payload;
use crate::host::table::TransportRow;

/// The sender of a flow whose packets are captured.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Its node.
    pub node: usize,
    /// Its address.
    pub address: Address,
    /// The flow's transport.
    pub transport: &'static TransportRow,
}

/// Packets as pcapng, for Wireshark: those that flows' senders send and receive, as raw IPv4 with
/// nanosecond times. Of TCP only the headers are kept; original lengths say how long packets were.
#[derive(Clone, Debug)]
pub struct Capture {
    out: Vec<u8>,
    packets: u64,
    /// When the last one was seen.
    last: Time,
    most: u64,
    /// The senders of flows that are listened to.
    senders: Vec<Sender>,
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
    /// A capture of the first `most` packets of these flows' senders.
    pub fn new(senders: Vec<Sender>, most: u64) -> Self {
        let mut capture = Self { out: Vec::new(), packets: 0, last: Time::ZERO, most, senders };
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

    /// Whether a packet of a flow is kept at a node.
    pub(crate) fn listens(&self, node: u32, flow: FlowId) -> bool {
        self.senders.get(flow.0 as usize).is_some_and(|sender| sender.node == node as usize)
    }

    /// Keeps a packet that a node sends or receives at `now`.
    pub(crate) fn take(&mut self, now: Time, packet: &Packet<Payload>) {
        if self.is_full() {
            return;
        }
        let mut bytes = Vec::with_capacity(80);
        let Some(sender) = self.senders.get(packet.flow.0 as usize) else { return };
        if matches!(packet.payload, Payload::Rate(_) | Payload::Active(_)) {
            // The messages of a controller take no part in the network.
            return;
        }
        (sender.transport.encode)(packet, addresses(packet, sender.address), &mut bytes);
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

/// Addresses that stand for a packet's hosts and flow: 10.0.0.0/8 by interface, 239.0.0.0/8 by
/// group (RFC 2365); the sender of a flow's data has port 5001, its receivers one that is the
/// flow's.
fn addresses(packet: &Packet<Payload>, sender: Address) -> Addresses {
    let port = 10_000 + (packet.flow.0 % 50_000) as u16;
    let of = |address: Address| {
        let network = if address.is_group() { 0xef00_0000 } else { 0x0a00_0000 };
        let port = if address == sender { 5001 } else { port };
        (network | (address.0 & 0x00ff_ffff), port)
    };
    Addresses { source: of(packet.src), destination: of(packet.dst) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::payload::Datagram;
    use crate::host::rows::datagrams;

    #[test]
    fn blocks_state_their_length_at_both_ends_and_lie_on_words() {
        let sender = Sender { node: 1, address: Address(0), transport: &datagrams::ROW };
        let mut capture = Capture::new(vec![sender], 1);
        let flow = FlowId::default();
        assert!(capture.listens(1, flow) && !capture.listens(0, flow));
        assert!(!capture.listens(1, FlowId(1)));
        let packet = Packet {
            id: Default::default(),
            src: Address(0),
            dst: Address(1),
            flow: Default::default(),
            size: 33,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class: 0,
            payload: Payload::Datagram(Datagram { number: 7, ..Datagram::default() }),
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
