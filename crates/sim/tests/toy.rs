//! A transport that is added from outside, run through scenario, recording, capture, qlog and
//! trace.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use fontis_base::{Duration, Node, Packet, PacketId, Port, Time};
use fontis_sim::experiment::run::Watch;
use fontis_sim::host::identity::EndpointIdentity;
use fontis_sim::host::payload::{OtherPayload, Payload};
use fontis_sim::host::rows::TRANSPORTS;
use fontis_sim::host::rows::capture::encode_datagram;
use fontis_sim::host::table::{
    AnyHost, FlowContext, Hosts, QlogFlow, QlogPacket, SharedConfigs, Transport, TransportRow,
};
use fontis_sim::host::{Counters, Host, Milestones};
use fontis_sim::scenario::{Files, Language, Scenario};
use fontis_sim::settings::catalogue::{Key, Place, TableRow, key};
use fontis_sim::settings::form::Form;
use fontis_trace::read::read;
use fontis_trace::{Detail, Kind, PacketHeader};

/// A ping that is answered by a pong, one after the other.
#[derive(Clone, Debug, PartialEq)]
struct Ping {
    number: u64,
    is_answer: bool,
}

impl OtherPayload for Ping {
    fn clone_box(&self) -> Box<dyn OtherPayload> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_same(&self, other: &dyn OtherPayload) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

/// A stop-and-wait transport: the sender pings, the receiver answers, a lost ping is sent again.
#[derive(Debug)]
struct StopAndWait {
    timeout: Duration,
}

static ROW: TransportRow = TransportRow {
    name: "toy",
    unit: "pings",
    protocols: || vec!["stop-and-wait"],
    tables: &[TableRow {
        name: "toy",
        meaning: "A transport of this test.",
        keys: KEYS,
        place: Place::Transport,
    }],
    read: |read, _| Ok(Arc::new(StopAndWait { timeout: read.duration("toy.timeout") })),
    header: |payload| {
        let Ping { number, is_answer } = *ping(payload)?;
        let kind = if is_answer { Kind::Ack } else { Kind::Data };
        Some(PacketHeader { kind, seq: Some(number), len: 1, bits: 64, ..PacketHeader::default() })
    },
    encode: |packet, addresses, out| {
        if let Some(ping) = ping(&packet.payload) {
            encode_datagram(addresses, &ping.number.to_be_bytes(), packet.size, out);
        }
    },
    qlog: Some(|| Box::new(PingLog)),
};

const KEYS: &[Key] = &[key("toy", "timeout", Form::Duration, "1 s", "until a ping is sent again")];

fn ping(payload: &Payload) -> Option<&Ping> {
    let Payload::Other(other) = payload else { return None };
    other.as_any().downcast_ref()
}

#[derive(Debug)]
struct PingLog;

impl QlogFlow for PingLog {
    fn sent(&mut self, _packet: &Packet<Payload>, _number: u64, _received: u64) -> QlogPacket {
        QlogPacket::default()
    }

    fn received(&mut self, _packet: &Packet<Payload>, _number: u64) -> QlogPacket {
        QlogPacket::default()
    }
}

impl Transport for StopAndWait {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        let host = |identity, pings_at| {
            AnyHost::boxed(Pinger {
                identity,
                timeout: self.timeout,
                pings_at,
                ..Pinger::default()
            })
        };
        Hosts {
            sender: host(flow.sender, Some(flow.start)),
            receivers: flow.receivers.iter().map(|receiver| host(*receiver, None)).collect(),
            log: None,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Default)]
struct Pinger {
    identity: EndpointIdentity,
    timeout: Duration,
    /// When the next ping leaves; `None` for the end that answers.
    pings_at: Option<Time>,
    number: u64,
    sent: u64,
    received: u64,
    answer: Option<u64>,
    first: Option<Time>,
}

impl Pinger {
    fn packet(&mut self, number: u64, is_answer: bool) -> (Port, Packet<Payload>) {
        self.sent += 1;
        let EndpointIdentity { number: own, local, peer, flow, class } = self.identity;
        let packet = Packet {
            id: PacketId(u64::from(own) << 40 | self.sent),
            src: local,
            dst: peer,
            flow,
            size: 100,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class,
            payload: Payload::Other(Box::new(Ping { number, is_answer })),
        };
        (0, packet)
    }
}

impl Node<Payload> for Pinger {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Some(Ping { number, is_answer }) = ping(&packet.payload) else { return };
        match is_answer {
            true if *number == self.number => {
                self.number += 1;
                self.pings_at = Some(now);
            }
            true => {}
            false => {
                self.received += u64::from(*number == self.received);
                self.first.get_or_insert(now);
                self.answer = Some(*number);
            }
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if let Some(number) = self.answer.take() {
            return Some(self.packet(number, true));
        }
        self.pings_at.filter(|at| *at <= now)?;
        self.pings_at = Some(now + self.timeout);
        Some(self.packet(self.number, false))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        Some((self.pings_at?, "ping"))
    }
}

impl Host for Pinger {
    fn counters(&self) -> Counters {
        Counters { sent: self.sent, received: self.received, ..Counters::default() }
    }

    fn milestones(&self) -> Milestones {
        Milestones { first_data: self.first, ..Milestones::default() }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[test]
fn a_transport_from_outside_runs_through_scenario_recording_capture_qlog_and_trace() {
    let rows = TRANSPORTS.iter().copied().chain([&ROW]).collect();
    let language = Arc::new(Language::with(rows));
    assert!(language.reference().contains("| `timeout` | a time"), "the reference lists its key");
    assert!(language.schema().contains("stop-and-wait"), "the schema lists its name");
    let text = "[scenario]\nduration = \"10 s\"\n[topology]\nrtt = \"100 ms\"\nloss = \"5%\"\n\
                [toy]\ntimeout = \"300 ms\"\n\
                [[flow]]\nname = \"one\"\nprotocol = \"stop-and-wait\"\n\
                [[flow]]\nname = \"two\"\nprotocol = \"stop-and-wait\"\ntoy = { timeout = \"3 s\" }\n";
    let runs = Scenario::parse_in(language, text, Files::default()).expect("it is right").runs();
    let run = runs.expect("a run").remove(0);
    let watch = Watch { capture: 1000, packets: Some(Detail::default()), qlog: true };
    let mut qlog = Vec::new();
    let watched = run.experiment.run_watched(watch, |view| {
        view.qlog.iter().for_each(|records| qlog.extend_from_slice(records.as_bytes()));
        false
    });
    let watched = watched.expect("nobody stops it");

    // A ping a round trip, but for those that wait for their timeout: 300 ms, or 3 s.
    let pings = |name: &str| {
        let names = watched.recording.flow.texts("name").expect("names");
        let received = watched.recording.flow.numbers("received");
        names.iter().zip(received).filter(|(of, _)| *of == name).last().expect("rows").1
    };
    let (one, two) = (pings("one"), pings("two"));
    assert!((70.0..100.0).contains(&one), "{one}");
    assert!(two < one - 10.0, "{two} after {one}");

    let trace = watched.trace.expect("it was asked for");
    assert_eq!(trace.flows.len(), 2);
    assert_eq!([&*trace.flows[0].protocol, &*trace.flows[0].unit], ["toy", "pings"]);
    assert!(trace.flows[0].counts[0].packets as f64 >= one);
    let captured = watched.capture.expect("it was asked for").as_bytes().to_vec();
    let captured = read(Cursor::new(captured), "capture", Detail::default()).expect("it is read");
    // Packets on their way at the end never came, either: one of each flow at most.
    let came = trace.total - lost_on_the_way_back(&trace);
    assert!((came - 2..=came).contains(&captured.total), "{} of {came}", captured.total);
    let logged = read(Cursor::new(qlog), "qlog", Detail::default()).expect("it is read");
    assert!(logged.flows.iter().all(|flow| flow.protocol == "toy"), "{:?}", logged.flows);
}

/// Answers that were lost never came to the sender, whose packets are captured.
fn lost_on_the_way_back(trace: &fontis_trace::Trace) -> u64 {
    trace.flows.iter().map(|flow| flow.counts[1].lost).sum()
}
