//! Datagrams without a transport.

use fontis_base::{Duration, FlowId, HostId, Node, Packet, PacketId, Port, Time};

use crate::app::source::Source;
use crate::host::payload::Payload;

/// A host that sends datagrams without a transport, or counts those that arrive.
#[derive(Clone, Debug)]
pub struct DatagramHost {
    id: HostId,
    peer: HostId,
    flow: FlowId,
    class: u8,
    source: Option<Source>,
    sent: u64,
    received: u64,
    received_bytes: u64,
    first: Option<Time>,
    last: Option<Time>,
}

/// Bytes of IP and UDP headers.
const HEADERS: u32 = 28;
/// Pieces are sent whole; none is larger than a datagram can be.
const LARGEST: u64 = 65_507;

impl DatagramHost {
    /// A host that sends what its source gives, a datagram a piece.
    pub fn sender(id: HostId, peer: HostId, flow: FlowId, source: Source) -> Self {
        Self { source: Some(source), ..Self::receiver(id, peer, flow) }
    }

    /// A host that counts.
    pub fn receiver(id: HostId, peer: HostId, flow: FlowId) -> Self {
        Self {
            id,
            peer,
            flow,
            class: 0,
            source: None,
            sent: 0,
            received: 0,
            received_bytes: 0,
            first: None,
            last: None,
        }
    }

    /// The same host, whose packets are of another traffic class.
    pub fn with_class(self, class: u8) -> Self {
        Self { class, ..self }
    }

    /// Datagrams sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Datagrams received.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of payload received.
    pub const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// How long after the first the last datagram arrived.
    pub fn span(&self) -> Option<Duration> {
        Some(self.last?.since(self.first?))
    }

    /// When the first and the last datagram arrived.
    pub const fn arrivals(&self) -> (Option<Time>, Option<Time>) {
        (self.first, self.last)
    }
}

impl Node<Payload> for DatagramHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        if packet.corrupt || !matches!(packet.payload, Payload::Datagram(_)) {
            return;
        }
        self.received += 1;
        self.received_bytes += u64::from(packet.size.saturating_sub(HEADERS));
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        let piece = self.source.as_mut()?.next(now)?;
        self.sent += 1;
        let packet = Packet {
            id: PacketId(u64::from(self.id.0) << 40 | self.sent),
            src: self.id,
            dst: self.peer,
            flow: self.flow,
            size: piece.bytes.min(LARGEST) as u32 + HEADERS,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class: self.class,
            payload: Payload::Datagram(self.sent),
        };
        Some((0, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        Some((self.source.as_ref()?.due()?, "source"))
    }
}
