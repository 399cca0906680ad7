//! The row of SCTP.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Packet, Stream};
use fontis_proto::congestion::{CongestionKind, Coupling};
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{
    AckPolicy, BufferSplit, CmtConfig, CodingConfig, LossRecovery, Multipath, PROTOCOL, RepairWait,
    RepairedLoss, RetransmitPolicy, SctpChunk, SctpCode, SctpConfig, SctpSecret, SctpTimers,
    StreamTurns,
};
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::PacketHeader;
use serde_json::json;

use crate::app::Application;
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::rows::capture::encode_ip;
use crate::host::rows::fld;
use crate::host::rows::reorder::reorder;
use crate::host::sctp::{SctpHost, SctpUse};
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, QlogFlow, QlogPacket, SharedConfigs, Transport,
    TransportRow,
};
use crate::host::way::ways;
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag, Size};
use crate::settings::reader::Reader;

/// SCTP as a scenario configures it.
#[derive(Clone, Debug)]
pub struct Sctp {
    /// Both ends' configuration.
    pub config: SctpConfig,
    /// How applications use it.
    pub usage: SctpUse,
}

/// The row of SCTP.
pub static ROW: TransportRow = TransportRow {
    name: "SCTP",
    unit: "chunks",
    protocols: || vec!["sctp"],
    tables: &[TableRow {
        name: "sctp",
        meaning: "SCTP (RFC 9260). `bulk`, `object` and `requests` are one stream of messages that \
                  fill a packet; a flow with `paths` has them in reserve, or uses all at once (CMT).",
        keys: KEYS,
        place: Place::Transport,
    }],
    read,
    header,
    encode,
    qlog: Some(|| Box::new(SctpQlog)),
};

const KEYS: &[Key] = &[
    key(
        "sctp",
        "congestion",
        names(&[
            "newreno",
            "cubic",
            "compound",
            "vegas",
            "dctcp",
            "fld",
            "fld-linux",
            "fld-thesis",
            "fld-ns2",
        ]),
        "newreno",
        "the congestion control of each path. 50 associations of newreno over a buffer of 0.25 BDP drop 0.021 of their packets, of CUBIC 0.020 (docs/safety.md)",
    ),
    key("sctp", "mtu", Count, "1500", "bytes of a full packet"),
    key(
        "sctp",
        "most_mtu",
        Count,
        "0",
        "bytes up to which each path is searched for larger packets (RFC 8899), of which links carry any; 0 turns it off",
    ),
    key("sctp", "receive_buffer", Size, "65536 B", "bytes that the receiver can hold"),
    key("sctp", "send_buffer", Size, "1 MiB", "bytes of messages that the sender can hold"),
    key(
        "sctp",
        "multipath",
        names(&["failover", "concurrent"]),
        "failover",
        "whether one path carries data, or all at once (CMT)",
    ),
    key(
        "sctp",
        "scheduler",
        names(SchedulerKind::NAMES),
        "round-robin",
        "CMT: the choice of path for new data",
    ),
    key(
        "sctp",
        "retransmit",
        names(&["same", "soonest", "loss-rate", "window", "threshold"]),
        "threshold",
        "CMT: the path for data that are sent again (RTX-SAME, -ASAP, -LOSSRATE, -CWND, -SSTHRESH)",
    ),
    key(
        "sctp",
        "split",
        names(&["none", "receiver", "sender", "both"]),
        "none",
        "CMT: the buffers that paths share in equal parts",
    ),
    key(
        "sctp",
        "coupling",
        names(Coupling::NAMES),
        "none",
        "CMT with newreno: windows grow so that all paths of a bottleneck together take one flow's share (lia, RFC 6356), and move to the paths that lose least (olia)",
    ),
    key("sctp", "sfr", Flag, "true", "CMT: reports count path by path (split fast retransmit)"),
    key("sctp", "cuc", Flag, "true", "CMT: a path's window grows by what it delivers itself"),
    key(
        "sctp",
        "believes_old_sacks",
        Flag,
        "false",
        "CMT: a SACK that a later one has overtaken counts as new, as in stacks whose SACKs have no numbers",
    ),
    key(
        "sctp",
        "acks",
        names(&["delayed", "immediate", "dac"]),
        "delayed",
        "a SACK for every second packet and at gaps, for every packet, or for every second packet even at gaps (CMT's delayed SACK)",
    ),
    key("sctp", "ack_delay", Form::Duration, "200 ms", "the longest wait of a SACK"),
    key(
        "sctp",
        "asks_acks",
        Flag,
        "false",
        "data after which nothing can follow ask for a SACK at once (RFC 7053)",
    ),
    key(
        "sctp",
        "reorder",
        names(&["none", "hold", "full"]),
        "none",
        "the buffer that puts data in order before SACKs tell of gaps: it holds what follows a gap, or is kept full",
    ),
    key("sctp", "reorder_delay", Form::Duration, "50 ms", "the delay that is allowed to it"),
    key("sctp", "nr_sack", Flag, "false", "SACKs say that nothing will be dropped again"),
    key(
        "sctp",
        "stamps",
        Flag,
        "false",
        "packets bear stamps, which tell each path's delay, and SACKs numbers",
    ),
    key(
        "sctp",
        "recovery",
        names(&["reports", "rack-tlp"]),
        "reports",
        "how losses are recognised: by reports (RFC 9260), or by time with a window for reordering and probes of the tail, on each path by itself (RFC 8985)",
    ),
    key("sctp", "missing_reports", Count, "3", "reports after which a chunk is sent again"),
    key(
        "sctp",
        "fast_again",
        Flag,
        "true",
        "reports may have a chunk sent again more than once; RFC 9260 leaves that to the timer",
    ),
    key("sctp", "burst", Count, "4", "packets that may follow a SACK at once; 0 is no limit"),
    key("sctp", "min_rto", Form::Duration, "1 s", "the least timeout"),
    key("sctp", "initial_rto", Form::Duration, "1 s", "the first timeout"),
    key("sctp", "heartbeat", Form::Duration, "30 s", "between heartbeats on an idle path"),
    key(
        "sctp",
        "potential_failures",
        Count,
        "0",
        "timeouts in a row that a path may have and still carry data (RFC 7829)",
    ),
    key("sctp", "interleaving", Flag, "true", "messages of several streams may interleave"),
    key(
        "sctp",
        "turns",
        names(&["rotation", "shortest"]),
        "rotation",
        "which stream is next where messages interleave: each in turn, or that of which the fewest bytes were sent since it was at rest",
    ),
    key("sctp", "ecn", Flag, "true", "whether its packets may be marked"),
    key(
        "sctp",
        "only_marks",
        Flag,
        "false",
        "marks alone reduce windows, where both ends have `ecn`: loss is taken for the path's own. Where a queue drops and does not mark, timeouts alone reduce them: 20 associations over CoDel and 20 ms drop 0.750 of their packets, of CUBIC 0.010 (docs/safety.md)",
    ),
    key(
        "sctp",
        "code",
        Form::Text,
        "none",
        "an erasure code inside (eCMT): `block:n,k`, `conv:n,k,m`, `tetrys:n,k,most` or `raptorq:n,k`, such as `block:10,9`: after k chunks n − k repairs, each over the k, over the last m, or over those that are not acknowledged, so many at most, or over the k with RaptorQ (RFC 6330); `tetrys:adaptive,most` and `raptorq:adaptive,most` as many as the measured loss asks for. 20 associations with `tetrys:10,9,43` over CoDel and 20 ms drop 0.071 of their packets, of CUBIC 0.010; 50 with `tetrys:adaptive,128` over a FIFO of 0.25 BDP drop 0.139, of CUBIC 0.020; ten over two paths leave two CUBIC flows a quarter of their parts (docs/safety.md)",
    ),
    key(
        "sctp",
        "repair_wait",
        names(&["none", "published", "outcome"]),
        "outcome",
        "with a code: how long a chunk that is missing waits for its repair before it is sent again (aRTX): not, by the thesis's times, or until what left after the repair is acknowledged",
    ),
    key(
        "sctp",
        "repairs",
        names(&["inside", "outside"]),
        "inside",
        "with a code: whether repairs take their part of the congestion window, or leave beside it, as in the thesis",
    ),
    key(
        "sctp",
        "repaired_loss",
        names(&["hidden", "beyond"]),
        "beyond",
        "with a code: whether losses that were repaired tell the sender nothing, as in the thesis, or of congestion as far as they go beyond the loss that is proved to be chance. With `hidden` one association leaves two CUBIC flows half of their parts, and 20 over CoDel and 20 ms drop 0.077 of their packets, of CUBIC 0.010 (docs/safety.md)",
    ),
    key(
        "sctp",
        "tail_repairs",
        Flag,
        "false",
        "with a code: when nothing follows the last chunks, they have repairs at once, as many as a whole group at a fixed rate",
    ),
    key("sctp", "udp", Flag, "false", "over UDP (RFC 6951): eight bytes more in each packet"),
    key("sctp", "streams", Count, "1", "streams over which messages are spread in turn"),
    key("sctp", "unordered", Flag, "false", "messages may overtake each other"),
    key("sctp", "message", Size, "0 B", "bytes of a message of a byte stream; 0 fills a packet"),
    key("sctp", "gives_up", Flag, "false", "messages are given up at their deadlines (RFC 3758)"),
    key("sctp", "repeats", Count, "", "how often a message is sent again at most"),
];

/// How data use several paths at once, with this congestion control.
fn read_cmt(read: &Reader<'_>, congestion: CongestionKind) -> Result<CmtConfig, ScenarioError> {
    let scheduler: Result<SchedulerKind, _> = read.text("sctp.scheduler").parse();
    let scheduler = scheduler.map_err(|error| bad("sctp.scheduler", error.to_string()))?;
    let coupling: Result<Coupling, _> = read.text("sctp.coupling").parse();
    let cmt = CmtConfig {
        scheduler,
        split_fast_retransmit: read.flag("sctp.sfr"),
        own_cumulative: read.flag("sctp.cuc"),
        retransmit: match &*read.text("sctp.retransmit") {
            "same" => RetransmitPolicy::Same,
            "soonest" => RetransmitPolicy::Soonest,
            "loss-rate" => RetransmitPolicy::LossRate,
            "window" => RetransmitPolicy::Window,
            _ => RetransmitPolicy::Threshold,
        },
        buffers: match &*read.text("sctp.split") {
            "receiver" => BufferSplit::Receiver,
            "sender" => BufferSplit::Sender,
            "both" => BufferSplit::Both,
            _ => BufferSplit::None,
        },
        coupling: coupling.map_err(|error| bad("sctp.coupling", error.to_string()))?,
        believes_old_sacks: read.flag("sctp.believes_old_sacks"),
    };
    if cmt.coupling != Coupling::None && congestion != CongestionKind::NewReno {
        let text = format!("\"{}\" has no windows that can be coupled, newreno has", congestion);
        return Err(bad("sctp.coupling", text));
    }
    Ok(cmt)
}

fn read(read: &Reader<'_>, _path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let small = |key| u32::try_from(read.count(key)).unwrap_or(u32::MAX);
    let size = |key| u32::try_from(read.size(key)).unwrap_or(u32::MAX);
    let mtu = small("sctp.mtu");
    if !(200..=65_535).contains(&mtu) {
        return Err(bad("sctp.mtu", format!("{mtu} bytes must be 200 to 65535")));
    }
    let congestion: Result<CongestionKind, _> = read.text("sctp.congestion").parse();
    let congestion = congestion.map_err(|error| bad("sctp.congestion", error.to_string()))?;
    let cmt = read_cmt(read, congestion)?;
    let acks = read.text("sctp.acks");
    let code = match &*read.text("sctp.code") {
        "none" => None,
        text => {
            let code: Result<SctpCode, _> = text.parse();
            Some(code.map_err(|error| bad("sctp.code", error.to_string()))?)
        }
    };
    let coding = code.map(|code| CodingConfig {
        code,
        wait: match &*read.text("sctp.repair_wait") {
            "none" => RepairWait::None,
            "published" => RepairWait::Published,
            _ => RepairWait::Outcome,
        },
        loss: match &*read.text("sctp.repaired_loss") {
            "hidden" => RepairedLoss::Hidden,
            _ => RepairedLoss::Beyond,
        },
        is_inside: &*read.text("sctp.repairs") == "inside",
        covers_tail: read.flag("sctp.tail_repairs"),
    });
    let overhead = if read.flag("sctp.udp") { 28 } else { 20 };
    let receive_buffer = size("sctp.receive_buffer");
    if receive_buffer < 2 * mtu {
        let message = format!("{receive_buffer} bytes must hold two packets of {mtu}");
        return Err(bad("sctp.receive_buffer", message));
    }
    let usage = SctpUse {
        message: size("sctp.message"),
        streams: u16::try_from(read.count("sctp.streams")).unwrap_or(u16::MAX).max(1),
        is_unordered: read.flag("sctp.unordered"),
        gives_up: read.flag("sctp.gives_up"),
        repeats: read.sets("sctp.repeats").then(|| small("sctp.repeats")),
    };
    let config = SctpConfig {
        mtu,
        most_mtu: small("sctp.most_mtu").min(65_535),
        overhead,
        congestion,
        foreign: fld::maker(read, congestion),
        receive_buffer,
        send_buffer: size("sctp.send_buffer").max(mtu),
        streams: usage.streams,
        multipath: match &*read.text("sctp.multipath") {
            "concurrent" => Multipath::Concurrent(cmt),
            _ => Multipath::Failover,
        },
        acks: AckPolicy {
            every: if acks == "immediate" { 1 } else { 2 },
            delay: read.duration("sctp.ack_delay"),
            waits_at_gaps: acks == "dac",
        },
        asks_acks: read.flag("sctp.asks_acks"),
        reorder: reorder(read, "sctp.reorder", "sctp.reorder_delay"),
        // A SACK then answers all that a filled gap sets free.
        batches: read.text("sctp.reorder") != "none",
        nr_sack: read.flag("sctp.nr_sack"),
        // A flow is one stream, and begins as in ns-2.
        resets: false,
        early_data: false,
        stamps: read.flag("sctp.stamps"),
        recovery: match &*read.text("sctp.recovery") {
            "rack-tlp" => LossRecovery::RackTlp,
            _ => LossRecovery::Reports,
        },
        missing_reports: small("sctp.missing_reports"),
        fast_again: read.flag("sctp.fast_again"),
        max_burst: Some(small("sctp.burst")).filter(|burst| *burst > 0),
        interleaving: read.flag("sctp.interleaving"),
        turns: match &*read.text("sctp.turns") {
            "shortest" => StreamTurns::Shortest,
            _ => StreamTurns::Rotation,
        },
        ecn: read.flag("sctp.ecn"),
        only_marks: read.flag("sctp.only_marks"),
        coding,
        timers: SctpTimers {
            least: read.duration("sctp.min_rto"),
            initial: read.duration("sctp.initial_rto"),
            heartbeat: read.duration("sctp.heartbeat"),
            potential_failures: small("sctp.potential_failures"),
            ..SctpTimers::default()
        },
        // Each host has a secret of its own.
        ..SctpConfig::new(secret(0, 0))
    };
    Ok(Arc::new(Sctp { config, usage }))
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Sctp(packet) = payload else { return None };
    Some(PacketHeader::of_sctp(packet))
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Sctp(inner) = &packet.payload else { return };
    encode_ip(addresses, PROTOCOL, packet.size, out);
    inner.encode(out);
}

/// The secret of an end in a simulation, where nobody forges.
fn secret(seed: u64, number: u32) -> SctpSecret {
    SctpSecret::new(move |bytes| {
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = Stream::new(seed ^ u64::from(number) << 32, &name);
        let mut code = [0; 16];
        stream.fill(&mut code);
        code
    })
}

impl Transport for Sctp {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        // Two draws that transports with sequence numbers use: an application does the same over
        // each.
        stream.next_u64();
        stream.next_u64();
        let pair = flow.application.pair(flow.start, flow.receivers.len(), stream);
        let has_messages = matches!(flow.application, Application::Messages(_));
        let host = |identity: EndpointIdentity, app, connects_at, ways| {
            let secret = secret(flow.seed, identity.number);
            let config = SctpConfig { secret, ..self.config.clone() };
            let host = SctpHost::new(identity, config, self.usage, app, connects_at, ways);
            AnyHost::boxed(host.with_wire(flow.wire).with_messages(has_messages))
        };
        let [ours, theirs] = ways(flow.paths);
        let receivers = flow.receivers.iter().zip(pair.receivers);
        Hosts {
            sender: host(flow.sender, pair.sender, pair.sender_connects, ours),
            receivers: receivers
                .map(|(identity, app)| host(*identity, app, pair.receiver_connects, theirs.clone()))
                .collect(),
            log: pair.log,
        }
    }

    fn has_paths(&self) -> bool {
        true
    }

    fn efficiency(&self) -> f64 {
        f64::from(self.config.mtu - 48) / f64::from(self.config.mtu)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct SctpQlog;

impl QlogFlow for SctpQlog {
    fn sent(&mut self, packet: &Packet<Payload>, _number: u64, _received: u64) -> QlogPacket {
        let Payload::Sctp(inner) = &packet.payload else { return QlogPacket::default() };
        let frame = |chunk: &SctpChunk| match chunk {
            SctpChunk::Data(data) => Some(json!({
                "frame_type": "stream", "stream_id": data.stream, "length": data.data.len(),
            })),
            SctpChunk::Sack(sack) => {
                Some(json!({ "frame_type": "ack", "acked_ranges": [[sack.cumulative]] }))
            }
            SctpChunk::Heartbeat(_) => Some(json!({ "frame_type": "ping" })),
            _ => None,
        };
        let is_setup = |chunk: &SctpChunk| {
            matches!(chunk, SctpChunk::Init(_) | SctpChunk::InitAck(_) | SctpChunk::CookieEcho(_))
        };
        QlogPacket {
            is_handshake: inner.chunks.iter().any(is_setup),
            lost: Vec::new(),
            frames: inner.chunks.iter().filter_map(frame).collect(),
        }
    }

    fn received(&mut self, packet: &Packet<Payload>, number: u64) -> QlogPacket {
        self.sent(packet, number, 0)
    }
}
