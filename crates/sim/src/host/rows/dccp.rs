//! The row of DCCP.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Duration, Packet, Rate, Stream};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::dccp::{Carrier, Ccid, DccpConfig, PROTOCOL, QueueDrop};
use fontis_proto::rate::tfrc::{FeedbackCount, InitialRate, SlowStart, TfrcConfig, TfrcRules};
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::PacketHeader;
use serde_json::json;

use crate::app::Application;
use crate::app::source::Pattern;
use crate::host::dccp::DccpHost;
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::rows::capture::encode_ip;
use crate::host::rows::fld;
use crate::host::rows::reorder::reorder;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, QlogFlow, QlogPacket, SharedConfigs, Transport,
    TransportRow,
};
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag, Size, Text};
use crate::settings::reader::Reader;

/// DCCP as a scenario configures it.
#[derive(Clone, Debug)]
pub struct Dccp {
    /// Both ends' configuration.
    pub config: DccpConfig,
    /// From the start of the connection to that of the application.
    pub lead: Duration,
}

/// The row of DCCP.
pub static ROW: TransportRow = TransportRow {
    name: "DCCP",
    unit: "packets",
    protocols: || vec!["dccp"],
    tables: &[TableRow {
        name: "dccp",
        meaning: "DCCP (RFC 4340). Data are datagrams, which are not sent again; `bulk` and `object` \
                  send what congestion control allows.",
        keys: KEYS,
        place: Place::Transport,
    }],
    read,
    header,
    encode,
    qlog: Some(|| Box::new(DccpQlog)),
};

const KEYS: &[Key] = &[
    key(
        "dccp",
        "ccid",
        names(&["2", "3", "4", "4-n", "4-n100"]),
        "3",
        "congestion control: a window (RFC 4341), a rate (RFC 4342), a rate for small packets (RFC 5622), or that with the slow start of Sarwar's proposals",
    ),
    key(
        "dccp",
        "congestion",
        names(&["newreno", "fld", "fld-linux", "fld-thesis", "fld-ns2"]),
        "newreno",
        "CCID 2: the algorithm of its window",
    ),
    key(
        "dccp",
        "rules",
        names(&["rfc5348", "rfc3448"]),
        "rfc5348",
        "the standard that a rate follows",
    ),
    key("dccp", "faster_restart", Flag, "false", "whether a rate quadruples after a pause"),
    key(
        "dccp",
        "initial",
        names(&["window", "packet", "ten"]),
        "window",
        "the rate after the first report: the initial window of RFC 3390, one packet, or the ten of RFC 6928, a round trip",
    ),
    key(
        "dccp",
        "quick_start",
        Form::Rate,
        "",
        "CCIDs 3 and 4: the rate at the IP layer that every router of the path approves of in the handshake (Quick-Start, RFC 5634); not asked for if not set",
    ),
    key(
        "dccp",
        "feedback",
        Text,
        "auto",
        "reports in a round trip: a number, dynamic (by the round trip), or auto (dynamic for 4-n and 4-n100, else 1)",
    ),
    key("dccp", "reference", Form::Duration, "100 ms", "dynamic: the round trip of one report"),
    key("dccp", "queue", Count, "5", "packets that may wait between application and network"),
    key(
        "dccp",
        "drop",
        names(&["newest", "oldest"]),
        "newest",
        "the packet that a full queue drops",
    ),
    key(
        "dccp",
        "reorder",
        names(&["none", "hold", "full"]),
        "none",
        "CCIDs 3 and 4: the buffer that puts packets in order below their receiver: it holds what follows a gap, or is kept full",
    ),
    key("dccp", "reorder_delay", Form::Duration, "100 ms", "the delay that is allowed to it"),
    key(
        "dccp",
        "reorder_packets",
        Count,
        "0",
        "packets that the buffer holds; 0 is those that arrive in its delay",
    ),
    key("dccp", "packet", Size, "1400 B", "bytes of data in a packet, at most"),
    key(
        "dccp",
        "mtu",
        Count,
        "0",
        "the greatest packet that path MTU discovery tries; 0 turns it off",
    ),
    key("dccp", "header", Count, "36", "CCID 4: bytes of headers that a packet is charged for"),
    key("dccp", "ack_ratio", Count, "2", "CCID 2: packets that one acknowledgement covers"),
    key(
        "dccp",
        "window",
        Count,
        "0",
        "the Sequence Window in packets; 0 is five times the packets in a round trip",
    ),
    key("dccp", "ecn", Flag, "true", "whether its packets may be marked"),
    key(
        "dccp",
        "tells_rtt",
        Flag,
        "true",
        "whether data packets tell the round-trip time (RFC 6323)",
    ),
    key(
        "dccp",
        "lead",
        Form::Duration,
        "0 s",
        "from the start of the connection to that of the application",
    ),
];

fn read(read: &Reader<'_>, path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let small = |key| u32::try_from(read.count(key)).unwrap_or(u32::MAX);
    let packet = u32::try_from(read.size("dccp.packet")).unwrap_or(u32::MAX);
    if !(1..=65_000).contains(&packet) {
        return Err(bad("dccp.packet", format!("{packet} bytes must be 1 to 65000")));
    }
    // The application's datagrams, if it has any, are the size that congestion control begins with.
    let usual = piece(path.application).unwrap_or(packet).clamp(1, packet);
    let (ccid, slow_start) = match &*read.text("dccp.ccid") {
        "2" => (Ccid::Two, SlowStart::Standard),
        "4" => (Ccid::Four, SlowStart::Standard),
        "4-n" => (Ccid::Four, SlowStart::Equivalent),
        "4-n100" => (Ccid::Four, SlowStart::Nominal),
        _ => (Ccid::Three, SlowStart::Standard),
    };
    let dynamic = FeedbackCount::Dynamic { reference: read.duration("dccp.reference") };
    let text = read.text("dccp.feedback");
    let feedback = match &*text {
        "dynamic" => dynamic,
        "auto" if slow_start != SlowStart::Standard => dynamic,
        "auto" => FeedbackCount::Fixed(1),
        text => match text.parse() {
            Ok(count @ 1..=1000) => FeedbackCount::Fixed(count),
            _ => {
                let message = format!("{text:?} must be auto, dynamic, or a number from 1 to 1000");
                return Err(bad("dccp.feedback", message));
            }
        },
    };
    let window = match read.count("dccp.window") {
        0 => 5 * path.access.bytes_in(path.rtt) / u64::from(usual),
        count => count,
    };
    let algorithm = read.text("dccp.congestion").parse().unwrap_or(CongestionKind::NewReno);
    let config = DccpConfig {
        ccid,
        window: algorithm,
        foreign: fld::maker(read, algorithm),
        tfrc: TfrcConfig {
            rules: match &*read.text("dccp.rules") {
                "rfc3448" => TfrcRules::Rfc3448,
                _ => TfrcRules::Rfc5348,
            },
            slow_start,
            faster_restart: read.flag("dccp.faster_restart"),
            initial: match &*read.text("dccp.initial") {
                "packet" => InitialRate::Packet,
                "ten" => InitialRate::Ten,
                _ => InitialRate::Window,
            },
            approved: read
                .get("dccp.quick_start")
                .map_or(0.0, |rate: Rate| rate.as_bps() as f64 / 8.0),
            feedback,
            header: small("dccp.header"),
            ..TfrcConfig::default()
        },
        queue: usize::try_from(read.count("dccp.queue")).unwrap_or(usize::MAX).max(1),
        queue_drop: match &*read.text("dccp.drop") {
            "oldest" => QueueDrop::Oldest,
            _ => QueueDrop::Newest,
        },
        reorder: reorder(read, "dccp.reorder", "dccp.reorder_delay"),
        reorder_packets: usize::try_from(read.count("dccp.reorder_packets"))
            .ok()
            .filter(|packets| *packets > 0),
        packet_size: usual,
        most_packet: u32::try_from(read.count("dccp.mtu")).unwrap_or(u32::MAX).min(65_535),
        headers_below: 20,
        sequence_window: window.clamp(100, 1 << 40),
        ack_ratio: u16::try_from(read.count("dccp.ack_ratio")).unwrap_or(u16::MAX).max(1),
        ecn: read.flag("dccp.ecn"),
        tells_rtt: read.flag("dccp.tells_rtt"),
        ..DccpConfig::default()
    };
    Ok(Arc::new(Dccp { config, lead: read.duration("dccp.lead") }))
}

/// The size of an application's datagrams, if it has one.
fn piece(application: &Application) -> Option<u32> {
    use crate::app::message::{Messages, Model};
    let pattern = match application {
        Application::Source(pattern) => pattern,
        Application::Messages(Messages { model: Model::Pieces(pattern), .. }) => pattern,
        _ => return None,
    };
    match pattern {
        Pattern::ConstantRate { piece, .. }
        | Pattern::Poisson { piece, .. }
        | Pattern::OnOff { piece, .. } => Some(*piece),
        Pattern::Bulk | Pattern::Object { .. } | Pattern::Spread { .. } => None,
    }
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Dccp(packet) = payload else { return None };
    Some(PacketHeader::of_dccp(packet))
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Dccp(inner) = &packet.payload else { return };
    encode_ip(addresses, PROTOCOL, packet.size, out);
    let (source, destination) = (addresses.source.0, addresses.destination.0);
    inner.encode(Carrier::Ip { source, destination }, out);
}

impl Transport for Dccp {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        let firsts = [stream.next_u64(), stream.next_u64()];
        let start = flow.start + self.lead;
        let pair = flow.application.pair(start, flow.receivers.len(), stream);
        let is_stream =
            matches!(flow.application, Application::Source(Pattern::Bulk | Pattern::Object { .. }));
        let host = |identity: EndpointIdentity, first, app, connects_at| {
            DccpHost::new(identity, self.config.clone(), first, app, connects_at)
                .with_wire(flow.wire)
                .with_stream(is_stream)
        };
        let receivers = flow.receivers.iter().zip(pair.receivers);
        Hosts {
            sender: AnyHost::boxed(host(flow.sender, firsts[0], pair.sender, Some(flow.start))),
            receivers: receivers
                .map(|(identity, app)| AnyHost::boxed(host(*identity, firsts[1], app, None)))
                .collect(),
            log: pair.log,
        }
    }

    fn refuses(&self, application: &Application) -> Option<&'static str> {
        let reason = "dccp does not send lost data again, so requests would wait for ever; use \
                      another protocol for app requests";
        application.needs_answers().then_some(reason)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct DccpQlog;

impl QlogFlow for DccpQlog {
    fn sent(&mut self, packet: &Packet<Payload>, _number: u64, _received: u64) -> QlogPacket {
        let Payload::Dccp(inner) = &packet.payload else { return QlogPacket::default() };
        let mut frames = Vec::new();
        if inner.body.carries_data() {
            frames.push(json!({ "frame_type": "datagram", "length": inner.data.len() }));
        }
        if let Some(ack) = inner.ack() {
            frames.push(json!({ "frame_type": "ack", "acked_ranges": [[ack.get()]] }));
        }
        QlogPacket { is_handshake: inner.body.number() < 2, lost: Vec::new(), frames }
    }

    fn received(&mut self, packet: &Packet<Payload>, number: u64) -> QlogPacket {
        self.sent(packet, number, 0)
    }
}
