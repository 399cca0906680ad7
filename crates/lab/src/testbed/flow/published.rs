use bytes::Bytes;
use fontis_proto::published::{Body, Coding, Control, PublishedPacket};
use fontis_sim::host::Host;
use fontis_sim::host::payload::Payload;
use fontis_sim::host::published::PublishedHost;
use fontis_sim::host::rows::published::Published;

use crate::testbed::error::TestbedError;
use crate::testbed::flow::simulated::{self, Codec};
use crate::testbed::flow::stage::{Flow, Place, Stage};

/// The DFCP of 2015 in UDP datagrams: its header and all that follows, as it is published. A
/// datagram is eight bytes longer than a packet of the protocol directly on IP.
///
/// Bytes that are only counted are sent as zeros; the first four tell how much of the block is the
/// message's, which a decoded block would tell.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let transport = place.spec.transport.as_any().downcast_ref::<Published>();
    let Published { config, by_controller, .. } = transport.expect("the table says so");
    let refused = if *by_controller || !matches!(config.control, Control::Told) {
        Some("published.rate must be greedy or a rate: nobody tells another one here")
    } else if config.coding == Coding::Real && !config.decode {
        // How much of a block is message is known once it is decoded.
        Some("real bytes must be decoded: set published.decode = true, or coding = \"counting\"")
    } else {
        None
    };
    if let Some(reason) = refused {
        let problem = format!("{}: on the testbed {reason}", place.spec.name);
        return Err(TestbedError::Unsupported(problem));
    }
    let is_counting = config.coding == Coding::Counting;
    simulated::start(stage, place, Datagrams { is_counting })
}

/// Packets as datagrams.
#[derive(Clone, Copy)]
struct Datagrams {
    is_counting: bool,
}

impl Codec for Datagrams {
    fn encode(self, payload: &Payload, out: &mut Vec<u8>) {
        encode(payload, out);
    }

    fn decode(self, bytes: &[u8]) -> Option<Payload> {
        decode(bytes, self.is_counting).map(|packet| Payload::Published(Box::new(packet)))
    }

    fn fault(self, host: &dyn Host) -> Option<&'static str> {
        let host = host.as_any().downcast_ref::<PublishedHost>()?;
        (!host.is_intact()).then_some("other bytes arrived than were sent")
    }
}

/// Bytes that tell how much of a counted block is message.
const MESSAGE: usize = 4;

fn encode(payload: &Payload, out: &mut Vec<u8>) {
    let Payload::Published(packet) = payload else { return };
    match &packet.body {
        Body::Symbols(symbols) if symbols.bytes.is_empty() => {
            let mut counted = PublishedPacket::clone(packet);
            if let Body::Symbols(symbols) = &mut counted.body {
                let mut bytes = vec![0; symbols.len as usize];
                let message = symbols.message.to_be_bytes();
                bytes.iter_mut().zip(message).for_each(|(to, from)| *to = from);
                symbols.bytes = Bytes::from(bytes);
            }
            counted.encode(&[], out);
        }
        _ => packet.encode(&[], out),
    }
}

fn decode(bytes: &[u8], is_counting: bool) -> Option<PublishedPacket> {
    let mut packet = PublishedPacket::decode(&[], bytes).ok()?;
    if let Body::Symbols(symbols) = &mut packet.body
        && is_counting
    {
        let message = symbols.bytes.first_chunk::<MESSAGE>()?;
        symbols.message = u32::from_be_bytes(*message);
        symbols.bytes = Bytes::new();
    }
    Some(packet)
}

#[cfg(test)]
mod tests {
    use fontis_proto::published::{PublishedHeader, PublishedSymbols};

    use super::*;

    #[test]
    fn counted_and_real_bytes_pass_through_a_datagram() {
        for (bytes, is_counting) in [(Bytes::new(), true), (Bytes::from_static(b"symbol"), false)] {
            let message = if is_counting { 63_000 } else { 0 };
            let symbols = PublishedSymbols { len: 6, bytes, message };
            let header = PublishedHeader { block: 7, ..PublishedHeader::default() };
            let packet = PublishedPacket { header, body: Body::Symbols(symbols) };
            let mut datagram = Vec::new();
            encode(&Payload::Published(Box::new(packet.clone())), &mut datagram);
            assert_eq!(datagram.len() as u32 + 20, packet.size());
            assert_eq!(decode(&datagram, is_counting), Some(packet));
        }
        assert_eq!(decode(b"no packet", true), None);
    }
}
