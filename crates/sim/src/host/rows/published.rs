//! The row of the DFCP of 2015.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Duration, Packet, Rate, Stream};
use fontis_proto::published::{Coding, Control, LastPacket, Need, Plan, PublishedConfig, Sending};
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::PacketHeader;

use crate::app::Application;
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::published::PublishedHost;
use crate::host::rows::capture::encode_datagram;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, QlogFlow, QlogPacket, SharedConfigs, Transport,
    TransportRow,
};
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag, Number, Probability, Size, Text};
use crate::settings::reader::Reader;

/// The DFCP of 2015 as a scenario configures it.
#[derive(Clone, Debug)]
pub struct Published {
    /// Both ends' configuration.
    pub config: PublishedConfig,
    /// Whether the network's controller sets its rate.
    pub by_controller: bool,
    /// The traffic class of packets without data.
    pub control_class: u8,
}

/// The row of the DFCP of 2015.
pub static ROW: TransportRow = TransportRow {
    name: "DFCP of 2015",
    unit: "symbols",
    protocols: || vec!["dfcp-published"],
    tables: &[
        TableRow {
            name: "published",
            meaning: "The DFCP of 2015, protocol `dfcp-published`. Its texts leave open what D-nn \
                      decide.",
            keys: KEYS,
            place: Place::Transport,
        },
        TableRow {
            name: "sdn",
            meaning: "The controller that tells flows of `dfcp-published` their rates.",
            keys: SDN,
            place: Place::Single,
        },
    ],
    read,
    header,
    encode,
    qlog: Some(|| Box::new(PublishedQlog)),
};

const KEYS: &[Key] = &[
    key(
        "published",
        "rate",
        Text,
        "greedy",
        "greedy (the access link's rate), a rate, oracle (max-min fair, at once), sdn (a controller's, see there), or marks (experimental: slows down for marked packets)",
    ),
    key("published", "redundancy", Number, "0.05", "ε, as a share of the block"),
    key("published", "window", Count, "1000", "W, blocks sent and not acknowledged at most"),
    key("published", "block", Size, "63536 B", "k, bytes of a block"),
    key("published", "payload", Size, "1452 B", "encoded bytes in a full packet"),
    key(
        "published",
        "sending",
        names(&["two-phase", "round-robin", "until-acknowledged"]),
        "two-phase",
        "which packets are sent when (D-13)",
    ),
    key(
        "published",
        "plan",
        names(&["measured", "fixed"]),
        "measured",
        "two-phase: whether the first pass over a block is as long as the loss asks for, or (1+ε)k bytes",
    ),
    key(
        "published",
        "need",
        names(&["redundancy", "code"]),
        "redundancy",
        "what a block needs: (1+ε)k bytes, or what the code needs",
    ),
    key(
        "published",
        "last_packet",
        names(&["short", "full"]),
        "short",
        "how the first pass over a block ends (D-14)",
    ),
    key(
        "published",
        "coding",
        names(&["counting", "real"]),
        "counting",
        "whether bytes are only counted, or encoded and decoded",
    ),
    key("published", "decode", Flag, "true", "whether receivers decode, where bytes are encoded"),
    key("published", "acknowledge", Flag, "true", "whether receivers acknowledge blocks"),
    key(
        "published",
        "control_class",
        Count,
        "0",
        "the traffic class of handshakes and acknowledgements (D-03)",
    ),
    key("published", "gain", Number, "0.5", "marks: how strongly a sender slows down"),
];

const SDN: &[Key] = &[
    key("sdn", "response", Form::Duration, "50 ms", "from a change to the sender's adaptation"),
    key("sdn", "poll", Form::Duration, "100 ms", "how often the controller looks"),
    key("sdn", "error", Probability, "0", "how wrong its rates are"),
    key(
        "sdn",
        "error_model",
        names(&["over", "uniform"]),
        "over",
        "whether rates are always too high by the error, or uniform around the right one (D-37)",
    ),
];

fn read(read: &Reader<'_>, path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let count = |key| u32::try_from(read.count(key)).unwrap_or(u32::MAX).max(1);
    let size = |key| u32::try_from(read.size(key)).unwrap_or(u32::MAX);
    let (block, payload) = (size("published.block"), size("published.payload"));
    if !(16..=63_536).contains(&block) {
        return Err(bad("published.block", format!("{block} bytes must be 16 to 63536")));
    }
    if !(1..=65_000).contains(&payload) {
        return Err(bad("published.payload", format!("{payload} bytes must be 1 to 65000")));
    }
    let redundancy: f64 = read.get("published.redundancy").unwrap_or(0.0);
    if !(0.0..=100.0).contains(&redundancy) {
        return Err(bad("published.redundancy", format!("{redundancy} must be 0 to 100")));
    }
    let text = read.text("published.rate");
    let (rate, control) = match &*text {
        "greedy" | "oracle" | "sdn" => (path.access, Control::Told),
        "marks" => {
            let gain = read.get("published.gain").unwrap_or(0.0);
            (path.access, Control::Marks { gain })
        }
        text => match text.parse() {
            Ok(rate) if rate > Rate::ZERO => (rate, Control::Told),
            _ => {
                let message =
                    format!("{text:?} must be greedy, oracle, sdn, marks, or a rate above zero");
                return Err(bad("published.rate", message));
            }
        },
    };
    let config = PublishedConfig {
        block,
        window: count("published.window"),
        redundancy,
        payload,
        sending: match &*read.text("published.sending") {
            "round-robin" => Sending::RoundRobin,
            "until-acknowledged" => Sending::UntilAcknowledged,
            _ => Sending::TwoPhase,
        },
        plan: match &*read.text("published.plan") {
            "fixed" => Plan::Fixed,
            _ => Plan::Measured,
        },
        need: match &*read.text("published.need") {
            "code" => Need::Code,
            _ => Need::Redundancy,
        },
        last_packet: match &*read.text("published.last_packet") {
            "full" => LastPacket::Full,
            _ => LastPacket::Short,
        },
        coding: match &*read.text("published.coding") {
            "real" => Coding::Real,
            _ => Coding::Counting,
        },
        decode: read.flag("published.decode"),
        acknowledge: read.flag("published.acknowledge"),
        control,
        rate,
        // D-12: in a simulation the round-trip times are known.
        time_wait: path.rtt + path.rtt + Duration::from_secs(1),
    };
    Ok(Arc::new(Published {
        config,
        by_controller: matches!(&*text, "oracle" | "sdn"),
        control_class: u8::try_from(read.count("published.control_class")).unwrap_or(u8::MAX),
    }))
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Published(packet) = payload else { return None };
    Some(PacketHeader::of_published(packet))
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Published(published) = &packet.payload else { return };
    let mut payload = Vec::new();
    published.encode(&[], &mut payload);
    encode_datagram(addresses, &payload, packet.size, out);
}

impl Transport for Published {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        // Two draws that transports with sequence numbers of 32 bits use.
        stream.next_u64();
        stream.next_u64();
        let mut seed = || [0; 3].map(|_: u32| stream.next_u64() as u32);
        let seeds = [seed(), seed()];
        let pair = flow.application.pair(flow.start, flow.receivers.len(), stream);
        let host = |identity: EndpointIdentity, seed, app, connects_at| {
            PublishedHost::new(identity, self.config.clone(), seed, app, connects_at)
                .with_control_class(self.control_class)
                .with_wire(flow.wire)
        };
        let sender = host(flow.sender, seeds[0], pair.sender, pair.sender_connects);
        let sender = match self.by_controller {
            true => sender.with_controller(flow.controller),
            false => sender,
        };
        let receivers = flow.receivers.iter().zip(pair.receivers);
        Hosts {
            sender: AnyHost::boxed(sender),
            receivers: receivers
                .map(|(identity, app)| AnyHost::boxed(host(*identity, seeds[1], app, None)))
                .collect(),
            log: pair.log,
        }
    }

    fn refuses(&self, application: &Application) -> Option<&'static str> {
        let answers = "dfcp-published carries data in one direction only; use another protocol for \
                       app requests";
        application.needs_answers().then_some(answers)
    }

    fn is_controlled(&self) -> bool {
        self.by_controller
    }

    fn efficiency(&self) -> f64 {
        let payload = f64::from(self.config.payload);
        payload / (payload + 48.0) / (1.0 + self.config.redundancy)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct PublishedQlog;

impl QlogFlow for PublishedQlog {
    fn sent(&mut self, _packet: &Packet<Payload>, _number: u64, _received: u64) -> QlogPacket {
        QlogPacket::default()
    }

    fn received(&mut self, _packet: &Packet<Payload>, _number: u64) -> QlogPacket {
        QlogPacket::default()
    }
}
