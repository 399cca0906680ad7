//! The row of DFCP.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Duration, Packet, Stream};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    DfcpConfig, KnownPath, ObjectShape, ParamFields, Params, Redundancy, Session,
};
use fontis_proto::rate::RateKind;
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::{Clear, PacketHeader};

use crate::app::Application;
use crate::app::source::Pattern;
use crate::host::dfcp::{Carry, DfcpHost, Fetch, FetchedPart, Role, Serve, ServedPart};
use crate::host::identity::EndpointIdentity;
use crate::host::object::PatternObject;
use crate::host::payload::Payload;
use crate::host::rows::capture::encode_datagram;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, SharedConfigs, Transport, TransportRow,
};
use crate::host::way::ways;
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag, Rate, Size, Text};
use crate::settings::reader::Reader;

/// DFCP as a scenario configures it.
#[derive(Clone, Debug)]
pub struct Dfcp {
    /// Both ends' configuration.
    pub config: DfcpConfig,
    /// Bytes in a block of an object.
    pub block: u32,
    /// The name of an object that several flows send together.
    pub common: Option<String>,
    /// Whether messages are delivered in the order of their departure.
    pub ordered: bool,
}

/// The row of DFCP.
pub static ROW: TransportRow = TransportRow {
    name: "DFCP",
    unit: "symbols",
    protocols: || vec!["dfcp"],
    tables: &[TableRow {
        name: "dfcp",
        meaning: "DFCP. Symbols of objects are counted, not encoded; streams and messages carry real \
                  bytes.",
        keys: KEYS,
        place: Place::Transport,
    }],
    read,
    header,
    encode,
    // Its hosts give the events that real transfers give.
    qlog: None,
};

const KEYS: &[Key] = &[
    key(
        "dfcp",
        "rate",
        Text,
        "auto",
        "auto, friendly (as CUBIC), fld (as FLD_TCP), greedy (the access link's rate), or a rate",
    ),
    key(
        "dfcp",
        "redundancy",
        names(&["measured", "until-acknowledged"]),
        "measured",
        "the number of symbols sent: as many as the loss asks for, or until the block is acknowledged",
    ),
    key(
        "dfcp",
        "mtu",
        Count,
        "1500",
        "bytes of a full packet that paths carry, as path MTU discovery finds out",
    ),
    key(
        "dfcp",
        "coupled",
        Flag,
        "true",
        "paths that share a bottleneck take one flow's share of it together",
    ),
    key(
        "dfcp",
        "known",
        Rate,
        "0 bit/s",
        "a rate that the path carried before, as a token tells: half of it is begun with; 0: nothing",
    ),
    key("dfcp", "window", Count, "1000", "blocks sent and not acknowledged at most"),
    key("dfcp", "block", Size, "63536 B", "bytes in a block of an object"),
    key("dfcp", "ordered", Flag, "false", "messages are delivered in the order of their departure"),
    key(
        "dfcp",
        "order_within",
        Form::Duration,
        "0 s",
        "ordered messages wait at most so long for those before them; 0 is as long as it takes",
    ),
    key(
        "dfcp",
        "common",
        Text,
        "",
        "a name: flows of app object and of one size that have it send one object together, each blocks that no other sends, as many as it can",
    ),
];

fn read(read: &Reader<'_>, path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let text = read.text("dfcp.rate");
    let rate = match &*text {
        // The host is as fast as its link: more would only wait there.
        "greedy" => RateKind::Fixed(path.access),
        text => text.parse().map_err(|_| {
            bad("dfcp.rate", format!("{text:?} must be auto, friendly, fld, greedy or a rate"))
        })?,
    };
    let block = u32::try_from(read.size("dfcp.block")).unwrap_or(u32::MAX).max(1);
    let window = read.count("dfcp.window").max(1).saturating_mul(u64::from(block));
    let until = read.text("dfcp.redundancy") == "until-acknowledged";
    let fields = ParamFields::default();
    let known = read.get("dfcp.known").filter(|rate| *rate != fontis_base::Rate::ZERO);
    let params = Params::new(ParamFields {
        window: u32::try_from(window).unwrap_or(u32::MAX),
        max_block: fields.max_block.max(block),
        ..fields
    });
    let params = params.map_err(|error| bad("dfcp.block", error.to_string()))?;
    let config = DfcpConfig {
        rate,
        params: params.with_code(Code::Counting),
        redundancy: if until { Redundancy::UntilAcknowledged } else { Redundancy::Measured },
        max_packet_size: u32::try_from(read.count("dfcp.mtu")).unwrap_or(u32::MAX),
        coupled: read.flag("dfcp.coupled"),
        known: known.map(|rate| KnownPath { rate: Some(rate), rtt: None }),
        order_within: Some(read.duration("dfcp.order_within"))
            .filter(|within| *within > Duration::ZERO),
        ..DfcpConfig::default()
    };
    let ordered = read.flag("dfcp.ordered");
    let common = Some(read.text("dfcp.common").to_string()).filter(|name| !name.is_empty());
    Ok(Arc::new(Dfcp { config, block, common, ordered }))
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Dfcp(packet) = payload else { return None };
    Some(PacketHeader::of_dfcp(packet))
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Dfcp(dfcp) = &packet.payload else { return };
    let mut payload = Vec::new();
    // Resets are never made here; an empty datagram would stand for one.
    let _ = Clear.seal(dfcp, &mut payload);
    encode_datagram(addresses, &payload, packet.size, out);
}

impl Transport for Dfcp {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, shared: &mut SharedConfigs) -> Hosts {
        let size = match flow.application {
            Application::Source(Pattern::Object { size }) => *size,
            Application::Source(Pattern::Bulk) => flow.more_than_fits,
            _ => return self.carrying(flow),
        };
        let object = PatternObject { seed: flow.seed ^ u64::from(flow.number) };
        let mut serve = Serve::new(self.config.params.codes().next(), size);
        serve.block_size = Some(self.block);
        let mut fetch = Fetch { size, ..Fetch::default() };
        if let Some(name) = self.common.as_ref().filter(|_| flow.application.length().is_some()) {
            let symbol_size = self.config.params.symbol_size();
            let shape = ObjectShape::partition(size, symbol_size, Code::Counting);
            let shape = ObjectShape { block_size: self.block, ..shape };
            let object = shared.objects.of(name, shape);
            serve.part = Some(ServedPart::new(object.clone(), flow.number));
            fetch.part = Some(FetchedPart::new(object, flow.number));
        }
        let fetch = Role::Fetch(fetch);
        let host = |identity, role, ways| {
            let config = self.config.clone();
            AnyHost::boxed(DfcpHost::new(
                identity, config, role, object, flow.wire, flow.start, ways,
            ))
        };
        let [ours, theirs] = ways(flow.paths);
        Hosts {
            sender: host(flow.sender, Role::Serve(serve), ours),
            receivers: flow
                .receivers
                .first()
                .map(|identity| host(*identity, fetch, theirs))
                .into_iter()
                .collect(),
            log: None,
        }
    }

    fn has_paths(&self) -> bool {
        true
    }

    fn efficiency(&self) -> f64 {
        // The shares of its packets' sizes differ little from this.
        0.95
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Dfcp {
    /// The hosts of a flow of streams or messages, which carry real bytes.
    fn carrying(&self, flow: &FlowContext<'_>) -> Hosts {
        let params = self.config.params.clone().with_code(Code::RaptorQ);
        let params = params.with_longest_idle_timeout();
        let config = DfcpConfig { params, ..self.config.clone() };
        let mut stream = Stream::new(flow.seed, &format!("{}/application", flow.name));
        // Two draws that transports with sequence numbers use: an application does the same over
        // each.
        stream.next_u64();
        stream.next_u64();
        let pair = flow.application.pair(flow.start, flow.receivers.len(), stream);
        let object = PatternObject { seed: flow.seed ^ u64::from(flow.number) };
        let host = |identity: EndpointIdentity, app, connects_at, ways| {
            let role = Role::Carry(Box::new(Carry::new(app, connects_at, self.ordered)));
            let config = config.clone();
            AnyHost::boxed(DfcpHost::new(
                identity, config, role, object, flow.wire, flow.start, ways,
            ))
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
}
