//! The row of TCP.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Duration, Packet, Size, Stream};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::wire::{Addresses, encode_headers};
use fontis_proto::tcp::{Recovery, TcpConfig};
use fontis_trace::PacketHeader;

use crate::app::Application;
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::rows::fld;
use crate::host::rows::tcp_qlog::TcpQlog;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, SharedConfigs, Transport, TransportRow,
};
use crate::host::tcp::TcpHost;
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag};
use crate::settings::reader::Reader;

/// TCP as a scenario configures it. Most of thousands of flows share one configuration.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Both ends' configuration.
    pub config: Arc<TcpConfig>,
}

/// The row of TCP.
pub static ROW: TransportRow = TransportRow {
    name: "TCP",
    unit: "bytes",
    protocols: || CongestionKind::ALL.iter().map(|kind| kind.name()).collect(),
    tables: &[
        TableRow {
            name: "tcp",
            meaning: "TCP, whatever its congestion control, which `flow.protocol` names.",
            keys: KEYS,
            place: Place::Transport,
        },
        fld::TABLE,
    ],
    read,
    header,
    encode,
    qlog: Some(|| Box::new(TcpQlog::default())),
};

const KEYS: &[Key] = &[
    key("tcp", "mtu", Count, "1500", "bytes of a full packet"),
    key(
        "tcp",
        "recovery",
        names(&["rack-tlp", "rfc6675"]),
        "rack-tlp",
        "how losses are recognised: RFC 8985, as Linux does, or RFC 6675",
    ),
    key("tcp", "sack", Flag, "true", "selective acknowledgement"),
    key("tcp", "timestamps", Flag, "true", "timestamps, 12 bytes of every segment"),
    key("tcp", "ecn", Flag, "false", "explicit congestion notification"),
    key("tcp", "pacing", Flag, "false", "segments leave evenly spaced"),
    key(
        "tcp",
        "small_queues",
        Flag,
        "true",
        "a sender whose own link is the narrowest keeps what waits there short, as Linux does",
    ),
    key(
        "tcp",
        "nagle",
        Flag,
        "",
        "a short segment waits while another is unacknowledged; true if not set, false for voice and video, as programs for them set it",
    ),
    key("tcp", "initial_window", Count, "10", "segments sent before the first acknowledgement"),
    key(
        "tcp",
        "max_window",
        Form::Size,
        "",
        "the most bytes outstanding, as in stacks with a fixed window; no limit if not set",
    ),
    key(
        "tcp",
        "receive_buffer",
        Form::Size,
        "",
        "bytes that wait at the receiver at most, and so the window that it offers; 1 GiB if not set. On the testbed a buffer's first size, from which the kernel enlarges it; 128 KiB if not set",
    ),
    key(
        "tcp",
        "delayed_ack",
        Form::Duration,
        "40 ms",
        "how long an acknowledgement may wait; 0 acknowledges every segment",
    ),
    key(
        "tcp",
        "quick_acks",
        Count,
        "0",
        "so many segments at the beginning are acknowledged at once all the same; up to 16 in Linux",
    ),
    key(
        "tcp",
        "min_rto",
        Form::Duration,
        "200 ms",
        "the least that the timeout lies above the round-trip time",
    ),
];

fn read(read: &Reader<'_>, path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let delayed_ack = read.duration("tcp.delayed_ack");
    let congestion = path.protocol.parse();
    let congestion: CongestionKind =
        congestion.map_err(|error| bad("flow.protocol", format!("{error}")))?;
    let config = TcpConfig {
        mtu: u32::try_from(read.count("tcp.mtu")).unwrap_or(u32::MAX).clamp(88, 65_535),
        congestion,
        foreign: fld::maker(read, congestion),
        recovery: match &*read.text("tcp.recovery") {
            "rfc6675" => Recovery::Rfc6675,
            _ => Recovery::RackTlp,
        },
        sack: read.flag("tcp.sack"),
        timestamps: read.flag("tcp.timestamps"),
        ecn: read.flag("tcp.ecn") || path.protocol == "dctcp",
        pacing: read.flag("tcp.pacing"),
        line: (path.is_access_narrow && read.flag("tcp.small_queues")).then_some(path.access),
        nagle: match read.sets("tcp.nagle") {
            true => read.flag("tcp.nagle"),
            false => !matches!(path.application, Application::Messages(_)),
        },
        initial_window: u32::try_from(read.count("tcp.initial_window")).unwrap_or(u32::MAX).max(1),
        receive_buffer: read
            .get::<Size>("tcp.receive_buffer")
            .map_or(TcpConfig::default().receive_buffer, |size| size.as_bytes().max(1)),
        max_window: read.get::<Size>("tcp.max_window").map(Size::as_bytes),
        delayed_ack: (delayed_ack > Duration::ZERO).then_some(delayed_ack),
        quick_acks: u32::try_from(read.count("tcp.quick_acks")).unwrap_or(u32::MAX),
        min_rto: read.duration("tcp.min_rto"),
        ..TcpConfig::default()
    };
    Ok(Arc::new(Tcp { config: Arc::new(config) }))
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Tcp(segment) = payload else { return None };
    Some(PacketHeader::of_tcp(segment))
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Tcp(segment) = &packet.payload else { return };
    encode_headers(segment, packet.ecn, addresses, out);
}

impl Transport for Tcp {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, shared: &mut SharedConfigs) -> Hosts {
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        let isn = [stream.next_u64() as u32, stream.next_u64() as u32];
        let pair = flow.application.pair(flow.start, flow.receivers.len(), stream);
        // A foreign algorithm governs the end that sends the data.
        let plain = match &self.config.foreign {
            None => Arc::clone(&self.config),
            Some(_) => shared.of(&TcpConfig { foreign: None, ..(*self.config).clone() }),
        };
        // The end that connects has the first number.
        let sender_isn = isn[usize::from(pair.sender_connects.is_none())];
        let receiver_isn = isn[usize::from(pair.receiver_connects.is_none())];
        let host = |identity: EndpointIdentity, config: &Arc<TcpConfig>, isn, app, connects_at| {
            let host = TcpHost::new(identity, Arc::clone(config), isn, app, connects_at);
            AnyHost::Tcp(Box::new(host.with_wire(flow.wire)))
        };
        let receivers = flow.receivers.iter().zip(pair.receivers);
        Hosts {
            sender: host(flow.sender, &self.config, sender_isn, pair.sender, pair.sender_connects),
            receivers: receivers
                .map(|(identity, app)| {
                    host(*identity, &plain, receiver_isn, app, pair.receiver_connects)
                })
                .collect(),
            log: pair.log,
        }
    }

    fn efficiency(&self) -> f64 {
        let headers = if self.config.timestamps { 52.0 } else { 40.0 };
        1.0 - headers / f64::from(self.config.mtu)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
