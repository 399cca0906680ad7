//! The row of casts.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{Duration, Packet, Probability, Rate, Stream, Time};
use fontis_proto::cast::{CarouselConfig, CastConfig, CastLaw, CastRate};
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::{Kind, PacketHeader};

use crate::app::Application;
use crate::app::source::Pattern;
use crate::host::cast::layout::{bulk_layout, layout};
use crate::host::cast::packet::{CastPacket, CastWord};
use crate::host::cast::sink::CastSink;
use crate::host::cast::source::{CastMode, CastSource};
use crate::host::identity::Stay;
use crate::host::payload::Payload;
use crate::host::rows::capture::encode_datagram;
use crate::host::rows::datagrams::DatagramQlog;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, SharedConfigs, Transport, TransportRow,
};
use crate::settings::catalogue::{Key, Place, TableRow, key};
use crate::settings::error::{ScenarioError, bad};
use crate::settings::form::Form::{self, Count, Flag, Text};
use crate::settings::reader::Reader;

/// A cast as a scenario configures it.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// How it is sent.
    pub mode: CastMode,
}

/// The row of casts.
pub static ROW: TransportRow = TransportRow {
    name: "cast",
    unit: "packets",
    protocols: || vec!["cast"],
    tables: &[TableRow {
        name: "cast",
        meaning: "One fountain for a group (`docs/multicast.md`), protocol `cast`: an object, or a \
                  bulk of which nobody gets the end and which has no head. Symbols are counted, \
                  not encoded. Two packets each way, repeated until they are answered, stand for \
                  the connection over which a receiver joins, and one each way for its end. The \
                  first symbol leaves when all are there that are members at the flow's start. A \
                  receiver that hears nothing waits; it does not fetch the object otherwise.",
        keys: KEYS,
        place: Place::Transport,
    }],
    read,
    header,
    encode,
    qlog: Some(|| Box::new(DatagramQlog)),
};

const KEYS: &[Key] = &[
    key(
        "cast",
        "rate",
        Text,
        "tfmcc",
        "tfmcc (RFC 4654), auto, or bytes of symbols per time as a rate. 50 flows of auto over a buffer of 0.25 BDP drop 0.028 of their packets, of CUBIC 0.020 (docs/safety.md)",
    ),
    key(
        "cast",
        "min_rate",
        Form::Rate,
        "0 bit/s",
        "tfmcc and auto: the least; a receiver that is slower slows nobody",
    ),
    key("cast", "one_way", Flag, "false", "receivers cannot answer: it is sent in rounds"),
    key(
        "cast",
        "loss",
        Form::Probability,
        "10%",
        "one_way: what a receiver may lose and have everything after one round",
    ),
    key("cast", "rounds", Count, "1", "one_way: how often all is sent; 0 is without end"),
];

/// The probability that a receiver that loses as much as was stated lacks something after a round,
/// as `fontis cast --one-way` has it.
const FAILURE: f64 = 5e-5;
/// The least rate of a cast, as `fontis cast` has it.
const LEAST: Rate = Rate::from_bps(8000);
/// Receivers of a group ask one after another: all together would fill any queue.
const ASK_APART: Duration = Duration::from_micros(100);
/// More bytes than blocks can be numbered for are never needed.
const MOST: u64 = 1 << 43;

fn read(read: &Reader<'_>, path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let text = read.text("cast.rate");
    let least = read.get("cast.min_rate").unwrap_or(Rate::ZERO);
    let fixed = text.parse::<Rate>().ok().filter(|rate| *rate >= LEAST && *rate < Rate::MAX);
    let adaptive = |law| CastRate::Adaptive { law, least, most: Rate::MAX };
    let rate = match (&*text, fixed) {
        ("tfmcc", _) => adaptive(CastLaw::Tfmcc),
        ("auto", _) => adaptive(CastLaw::Auto),
        (_, Some(rate)) => CastRate::Fixed(rate),
        _ => {
            let message = format!("{text:?} must be tfmcc, auto, or a rate of 8 kbit/s at least");
            return Err(bad("cast.rate", message));
        }
    };
    if let Application::Source(Pattern::Object { size }) = path.application {
        layout(*size).map_err(|error| bad("flow.size", error.to_string()))?;
    }
    let mode = match (read.flag("cast.one_way"), rate) {
        (false, rate) => CastMode::Answered(CastConfig::new(rate)),
        (true, CastRate::Fixed(rate)) => {
            let rounds = u32::try_from(read.count("cast.rounds")).unwrap_or(u32::MAX);
            let loss = read.get("cast.loss").map_or(0.0, Probability::get);
            if loss > 0.95 {
                return Err(bad("cast.loss", format!("{loss} must be 0.95 at most")));
            }
            let rounds = (rounds > 0).then_some(rounds);
            CastMode::OneWay(CarouselConfig { rate, loss, failure: FAILURE, rounds })
        }
        (true, CastRate::Adaptive { .. }) => {
            let message = "a sender without answers needs a rate, as in \"20 Mbit/s\"".to_owned();
            return Err(bad("cast.rate", message));
        }
    };
    Ok(Arc::new(Cast { mode }))
}

fn header(payload: &Payload) -> Option<PacketHeader> {
    let Payload::Cast(packet) = payload else { return None };
    let of = |kind, seq| PacketHeader { kind, seq, len: 1, bits: 64, ..PacketHeader::default() };
    Some(match &**packet {
        CastPacket::Group(number, CastWord::Symbol(_)) => of(Kind::Data, Some(*number)),
        CastPacket::Group(number, _) => of(Kind::Control, Some(*number)),
        CastPacket::Report(_, report) => of(Kind::Ack, Some(u64::from(report.sequence))),
        _ => PacketHeader::of(Kind::Handshake),
    })
}

fn encode(packet: &Packet<Payload>, addresses: Addresses, out: &mut Vec<u8>) {
    let Payload::Cast(inner) = &packet.payload else { return };
    encode_datagram(addresses, &inner.encode(), packet.size, out);
}

impl Transport for Cast {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let layout = match flow.application.length() {
            Some(size) => layout(size),
            None => bulk_layout(flow.more_than_fits.min(MOST)),
        };
        let layout = layout.expect("so many bytes have blocks with numbers");
        let is_one_way = matches!(self.mode, CastMode::OneWay(_));
        let spread = ASK_APART.mul_ratio(flow.receivers.len() as u64 - 1, 1).as_nanos() + 1;
        let sinks = flow.receivers.iter().enumerate().map(|(member, identity)| {
            let mut stream = Stream::new(flow.seed, &format!("{}/receiver {member}", flow.name));
            let stay = flow.stays.get(member).copied();
            let stay = stay.unwrap_or(Stay { from: Time::ZERO, to: None });
            let wait = Duration::from_nanos(stream.below(if is_one_way { 1 } else { spread }));
            let stay = Stay { from: stay.from.max(flow.start) + wait, ..stay };
            CastSink::new(*identity, layout, member as u32, stay, is_one_way, stream)
        });
        let receivers = sinks.map(|sink| AnyHost::boxed(sink.with_wire(flow.wire))).collect();
        // Who comes later is not waited for.
        let at_start = flow.stays.iter().filter(|stay| stay.from <= flow.start).count();
        let source = CastSource::new(flow.sender, layout, self.mode, flow.start, at_start.max(1));
        Hosts { sender: AnyHost::boxed(source.with_wire(flow.wire)), receivers, log: None }
    }

    fn refuses(&self, application: &Application) -> Option<&'static str> {
        match application {
            Application::Source(Pattern::Object { .. } | Pattern::Bulk) => None,
            _ => Some("a cast carries an object or a bulk; use app object"),
        }
    }

    fn reaches_groups(&self) -> bool {
        true
    }

    fn efficiency(&self) -> f64 {
        // A symbol and its packet.
        1192.0 / 1265.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
