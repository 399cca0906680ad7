//! The row of datagrams without a transport.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Packet, Stream};
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::{Kind, PacketHeader};
use serde_json::json;

use crate::app::Application;
use crate::app::source::Pattern;
use crate::host::datagram::DatagramHost;
use crate::host::payload::Payload;
use crate::host::rows::capture::{HEADERS, encode_datagram};
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, QlogFlow, QlogPacket, SharedConfigs, Transport,
    TransportRow,
};
use crate::settings::error::ScenarioError;
use crate::settings::reader::Reader;

/// Datagrams without a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams;

/// The row of datagrams.
pub static ROW: TransportRow = TransportRow {
    name: "datagrams",
    unit: "datagrams",
    protocols: || vec!["datagrams"],
    tables: &[],
    read: |_: &Reader<'_>, _: &PathFacts<'_>| -> Result<Arc<dyn Transport>, ScenarioError> {
        Ok(Arc::new(Datagrams))
    },
    header,
    encode,
    qlog: Some(|| Box::new(DatagramQlog)),
};

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Datagram(datagram) = payload else { return None };
    Some(PacketHeader {
        kind: Kind::Data,
        seq: Some(datagram.number),
        len: 1,
        bits: 64,
        ..PacketHeader::default()
    })
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Datagram(datagram) = &packet.payload else { return };
    encode_datagram(addresses, &datagram.number.to_be_bytes(), packet.size, out);
}

impl Transport for Datagrams {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        // Two draws that transports with sequence numbers use.
        stream.next_u64();
        stream.next_u64();
        let pair = flow.application.pair(flow.start, flow.receivers.len(), stream);
        let receivers = flow.receivers.iter().zip(pair.receivers);
        Hosts {
            sender: AnyHost::boxed(DatagramHost::new(flow.sender, pair.sender)),
            receivers: receivers
                .map(|(identity, app)| AnyHost::boxed(DatagramHost::new(*identity, app)))
                .collect(),
            log: pair.log,
        }
    }

    fn refuses(&self, application: &Application) -> Option<&'static str> {
        match application {
            Application::Source(Pattern::Bulk) | Application::Requests(_) => Some(
                "datagrams have no control of their own; use app constant, poisson, on-off, voice \
                 or video",
            ),
            _ => None,
        }
    }

    fn reaches_groups(&self) -> bool {
        true
    }

    fn has_end(&self, _application: &Application) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The events of packets of which a qlog says their length only.
#[derive(Debug)]
pub(super) struct DatagramQlog;

impl QlogFlow for DatagramQlog {
    fn sent(&mut self, packet: &Packet<Payload>, _number: u64, _received: u64) -> QlogPacket {
        let length = packet.size.saturating_sub(HEADERS);
        let frame = json!({ "frame_type": "datagram", "length": length });
        QlogPacket { frames: vec![frame], ..QlogPacket::default() }
    }

    fn received(&mut self, packet: &Packet<Payload>, number: u64) -> QlogPacket {
        self.sent(packet, number, 0)
    }
}
