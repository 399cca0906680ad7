//! Hosts of SCTP.

use core::any::Any;
use core::net::IpAddr;
use std::collections::VecDeque;

use fontis_base::{Address, Duration, Ecn, Node, Packet, PacketId, Port, Rate, Time};
use fontis_proto::sctp::{
    Reliability, SctpAssociation, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpPacket, SctpPath,
    SctpSend, SctpStats, SctpTransmit, respond_without_state,
};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::readings::{PathReadings, Releases, SRTT};
use crate::host::way::Way;
use crate::host::{Counters, Host, Milestones, PathMetrics};

/// How applications use an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpUse {
    /// Bytes of the messages that carry a stream of bytes; zero is what fills a packet.
    pub message: u32,
    /// Streams over which messages of an application are spread in turn.
    pub streams: u16,
    /// Whether messages of an application may overtake each other.
    pub is_unordered: bool,
    /// Whether messages of an application are given up at their deadlines.
    pub gives_up: bool,
    /// How often messages of an application are sent again, if that is limited.
    pub repeats: Option<u32>,
}

/// A host with one association, and an application on it.
pub struct SctpHost {
    identity: EndpointIdentity,
    config: SctpConfig,
    usage: SctpUse,
    /// Whether every packet passes through its bytes and back.
    wire: bool,
    /// When it connects; [`Time::MAX`] if the peer does.
    start: Time,
    app: Option<App>,
    association: Option<Box<SctpAssociation>>,
    outbox: Outbox,
    /// The ends of its paths.
    ways: Vec<Way>,
    /// Answers that need no association.
    answers: VecDeque<([IpAddr; 2], SctpPacket)>,
    packets: u64,
    readings: PathReadings,
    releases: Releases,
    /// Bytes sent, at the IP layer.
    bytes: u64,
    milestones: Milestones,
    is_over: bool,
}

/// What an application has written and the association has not taken.
#[derive(Clone, Debug, Default)]
struct Outbox {
    /// Whether the application's messages keep their boundaries.
    keeps_messages: bool,
    bytes: u64,
    messages: VecDeque<(SctpSend, u32)>,
    is_finished: bool,
    /// Messages so far.
    count: u64,
}

/// The protocol identifier of data that no message owns; messages have their number and one.
const NO_MESSAGE: u32 = 0;
/// Bytes of IPv4's header, and of UDP's.
const IP: u32 = 20;

/// The address of an interface as SCTP has it.
pub fn ip_of(address: Address) -> IpAddr {
    IpAddr::from(address.0.to_be_bytes())
}

impl SctpHost {
    /// A host of a flow. It connects at `connects_at`, or waits for an association; `app` uses the
    /// association. `ways` are its paths beside the first.
    pub fn new(
        identity: EndpointIdentity,
        config: SctpConfig,
        usage: SctpUse,
        app: Option<App>,
        connects_at: Option<Time>,
        ways: impl IntoIterator<Item = Way>,
    ) -> Self {
        let first = Way { local: identity.local, peer: identity.peer, port: 0 };
        let ways: Vec<Way> = core::iter::once(first).chain(ways).collect();
        let mut config = config;
        for way in &ways {
            let address = ip_of(way.local);
            if !config.addresses.contains(&address) {
                config.addresses.push(address);
            }
        }
        Self {
            identity,
            config,
            usage,
            wire: false,
            start: connects_at.unwrap_or(Time::MAX),
            app,
            association: None,
            outbox: Outbox::default(),
            ways,
            answers: VecDeque::new(),
            packets: 0,
            readings: PathReadings::default(),
            releases: Releases::default(),
            bytes: 0,
            milestones: Milestones::default(),
            is_over: false,
        }
    }

    /// The same host, each of whose packets passes through its bytes and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// The same host, whose application sends messages if `keeps` says so.
    pub fn with_messages(mut self, keeps: bool) -> Self {
        self.outbox.keeps_messages = keeps;
        self
    }

    /// The association's counters.
    pub fn stats(&self) -> SctpStats {
        self.association.as_ref().map(|association| association.stats()).unwrap_or_default()
    }

    /// Its paths.
    pub fn paths(&self) -> Vec<SctpPath> {
        self.association.iter().flat_map(|association| association.paths()).collect()
    }

    fn read_paths(&mut self, now: Time) {
        if let Some(association) = &self.association {
            self.readings.read(now, association.paths());
        }
    }

    fn due(&self) -> Option<Time> {
        self.association.as_ref()?;
        self.app.as_ref().map(App::due).filter(|due| *due < Time::MAX)
    }

    fn act(&mut self, now: Time) {
        let Self { association: Some(association), app: Some(app), outbox, usage, .. } = self
        else {
            return;
        };
        let mut socket = SctpSocket { association, outbox, usage: *usage };
        if !app.act(now, &mut socket) {
            self.app = None;
        }
    }

    /// Gives the association as much as it takes.
    fn feed(&mut self, now: Time) {
        let Some(association) = &mut self.association else { return };
        let size = match self.usage.message {
            0 => association.piece() as u64,
            size => size.into(),
        };
        while self.outbox.bytes > 0 && association.is_connected() {
            let len = self.outbox.bytes.min(size);
            let send = SctpSend { protocol: NO_MESSAGE, ..SctpSend::default() };
            if association.send(now, send, SctpData::Counted(len as u32)).is_err() {
                break;
            }
            self.outbox.bytes -= len;
        }
        while association.is_connected()
            && let Some((send, len)) = self.outbox.messages.front()
        {
            if association.send(now, *send, SctpData::Counted(*len)).is_err() {
                break;
            }
            self.outbox.messages.pop_front();
        }
        let is_empty = self.outbox.bytes == 0 && self.outbox.messages.is_empty();
        if self.outbox.is_finished && is_empty && association.is_connected() {
            association.close(now);
        }
    }

    fn note(&mut self, now: Time) {
        let Some(association) = &mut self.association else { return };
        while let Some(message) = association.receive(now) {
            self.milestones.first_data.get_or_insert(now);
            self.milestones.last_data = Some(now);
            self.releases.note(now);
            if message.protocol != NO_MESSAGE
                && let Some(app) = &mut self.app
            {
                app.on_message(now, u64::from(message.protocol) - 1);
            }
        }
        while let Some(event) = association.event() {
            match event {
                SctpEvent::Connected => {
                    self.milestones.connected.get_or_insert(now);
                }
                SctpEvent::PeerFinished => {
                    self.milestones.completed.get_or_insert(now);
                }
                SctpEvent::Closed => {
                    self.milestones.closed = Some(now);
                    self.milestones.completed.get_or_insert(now);
                    self.is_over = true;
                }
                SctpEvent::Aborted(_) => {
                    self.milestones.closed = Some(now);
                    self.milestones.aborted = true;
                    self.is_over = true;
                }
                SctpEvent::Restarted
                | SctpEvent::PathUp(_)
                | SctpEvent::PathDown(_)
                | SctpEvent::PeerReset(_)
                | SctpEvent::Reset(_)
                | SctpEvent::ResetRefused(_)
                | SctpEvent::PeerAddress(_)
                | SctpEvent::AddressChanged(_)
                | SctpEvent::AddressRefused(..) => {}
            }
        }
    }

    fn packet(
        &mut self,
        ends: [IpAddr; 2],
        ecn: bool,
        inner: SctpPacket,
    ) -> (Port, Packet<Payload>) {
        self.packets += 1;
        let EndpointIdentity { number, flow, class, .. } = self.identity;
        let way = |way: &&Way| [ip_of(way.local), ip_of(way.peer)] == ends;
        let Way { local, peer, port } = *self.ways.iter().find(way).unwrap_or(&self.ways[0]);
        let size = inner.size() as u32 + self.config.overhead.max(IP);
        self.bytes += u64::from(size);
        let packet = Packet {
            id: PacketId(u64::from(number) << 40 | self.packets),
            src: local,
            dst: peer,
            flow,
            size,
            segments: 1,
            ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class,
            payload: Payload::Sctp(Box::new(if self.wire { pass_wire(inner) } else { inner })),
        };
        (port, packet)
    }
}

/// What a packet's bytes say. Counted data stay counted.
fn pass_wire(packet: SctpPacket) -> SctpPacket {
    let mut bytes = Vec::with_capacity(1500);
    packet.encode(&mut bytes);
    let mut decoded = SctpPacket::decode(&bytes.into()).expect("our own bytes can be read");
    for (chunk, before) in decoded.chunks.iter_mut().zip(packet.chunks) {
        match (chunk, before) {
            (SctpChunk::Data(chunk), SctpChunk::Data(before)) => chunk.data = before.data,
            (SctpChunk::Repair(chunk), SctpChunk::Repair(before)) => chunk.data = before.data,
            _ => {}
        }
    }
    decoded
}

impl Node<Payload> for SctpHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Payload::Sctp(inner) = packet.payload else { return };
        if packet.corrupt {
            return;
        }
        let ends = [ip_of(packet.dst), ip_of(packet.src)];
        match &mut self.association {
            Some(association) => association.handle(now, ends, &inner, packet.ecn == Ecn::Ce),
            None if self.start == Time::MAX => {
                let config = self.config.clone();
                match SctpAssociation::accept(now, config, ends, &inner) {
                    Ok(association) => self.association = Some(Box::new(association)),
                    Err(answer) => {
                        let answer = answer
                            .or_else(|| respond_without_state(now, &self.config, ends, &inner));
                        self.answers.extend(answer.map(|answer| (ends, answer)));
                    }
                }
            }
            None => return,
        }
        self.note(now);
        self.read_paths(now);
        if self.app.as_ref().is_some_and(|app| !app.ignores_arrivals()) {
            self.act(now);
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if let Some((ends, answer)) = self.answers.pop_front() {
            return Some(self.packet(ends, false, answer));
        }
        if self.association.is_none() {
            if now < self.start {
                return None;
            }
            let ends = [ip_of(self.identity.local), ip_of(self.identity.peer)];
            let client = SctpAssociation::connect(now, self.config.clone(), ends);
            self.association = Some(Box::new(client));
            self.milestones.first_sent = Some(now);
        }
        if self.due().is_some_and(|due| due <= now) {
            self.act(now);
        }
        self.feed(now);
        let Some(transmit) = self.association.as_mut()?.poll(now) else {
            self.note(now);
            return None;
        };
        let SctpTransmit { local, peer, ecn, packet, .. } = transmit;
        self.read_paths(now);
        self.milestones.first_sent.get_or_insert(now);
        Some(self.packet([local, peer], ecn, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.answers.is_empty() {
            return Some((Time::ZERO, "answer"));
        }
        let Some(association) = &self.association else {
            return (self.start < Time::MAX).then_some((self.start, "start"));
        };
        let app = self.due().map(|at| (at, "application"));
        [association.timeout(), app].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// An association as its application sees it.
struct SctpSocket<'a> {
    association: &'a SctpAssociation,
    outbox: &'a mut Outbox,
    usage: SctpUse,
}

impl AppSocket for SctpSocket<'_> {
    fn write(&mut self, _now: Time, bytes: u64) {
        self.outbox.bytes = self.outbox.bytes.saturating_add(bytes);
    }

    fn finish(&mut self, _now: Time) {
        self.outbox.is_finished = true;
    }

    fn delivered(&self) -> u64 {
        self.association.stats().bytes_received
    }

    fn send(&mut self, now: Time, message: AppMessage) {
        let SctpUse { streams, is_unordered, gives_up, repeats, .. } = self.usage;
        let number = message.number.map(|number| number.min(u64::from(u32::MAX - 1)) as u32 + 1);
        let lifetime = message.deadline.filter(|_| gives_up).map(|at| at.since(now));
        let reliability = match (repeats, lifetime) {
            (Some(repeats), _) => Reliability::Repeats(repeats),
            (None, Some(left)) => Reliability::Lifetime(left),
            (None, None) => Reliability::Full,
        };
        let send = SctpSend {
            stream: (self.outbox.count % u64::from(streams.max(1))) as u16,
            protocol: number.unwrap_or(NO_MESSAGE),
            is_unordered,
            reliability,
        };
        self.outbox.count += 1;
        let len = u32::try_from(message.bytes).unwrap_or(u32::MAX).max(1);
        self.outbox.messages.push_back((send, len));
    }

    fn rate(&self) -> Option<Rate> {
        let rate = |path: SctpPath| Some(Rate::from_bytes_over(path.window, path.srtt?));
        let sum = self.association.paths().filter_map(rate).fold(Rate::ZERO, Rate::saturating_add);
        Some(sum).filter(|sum| *sum > Rate::ZERO)
    }

    fn keeps_messages(&self) -> bool {
        self.outbox.keeps_messages
    }
}

impl Host for SctpHost {
    fn counters(&self) -> Counters {
        let (stats, paths) = (self.stats(), self.paths());
        Counters {
            sent: self.packets,
            retransmitted: stats.repeated,
            lost: stats.lost,
            window: paths.iter().map(|path| path.window).sum(),
            in_flight: paths.iter().map(|path| path.in_flight).sum(),
            srtt: longest(&paths),
            received: stats.bytes_received,
            wasted: stats.duplicates,
            symbols: stats.chunks_received + stats.duplicates,
        }
    }

    fn milestones(&self) -> Milestones {
        self.milestones
    }

    fn is_done(&self) -> bool {
        self.is_over
    }

    fn metrics(&self, now: Time) -> Vec<(&'static str, f64)> {
        let stats = self.stats();
        let mut metrics = Vec::new();
        if stats.chunks_sent > 0 {
            let begin = self.milestones.connected.unwrap_or(now);
            let span = now.since(begin).as_secs_f64().max(1e-9);
            metrics.push(("window_blocked", stats.blocked.as_secs_f64() / span));
            metrics.push(("retransmissions", stats.repeated as f64));
            metrics.push(("fast_retransmissions", stats.fast_repeated as f64));
            metrics.push(("timeouts", stats.timeouts as f64));
            let in_flight = self.readings.in_flight.mean(now);
            metrics.extend(in_flight.map(|bytes| ("flight", bytes * 1e-3)));
            let srtt = SRTT.into_iter().zip(&self.readings.srtt);
            metrics.extend(srtt.filter_map(|(name, srtt)| Some((name, srtt.mean(now)? * 1e3))));
        }
        if stats.repairs_sent > 0 {
            metrics.push(("repairs", stats.repairs_sent as f64));
        }
        if stats.repairs_received > 0 {
            metrics.push(("restored", stats.restored as f64));
        }
        if stats.chunks_received > 0 {
            let mean = stats.waited.as_secs_f64() / stats.out_of_order.max(1) as f64;
            metrics
                .push(("out_of_order", stats.out_of_order as f64 / stats.chunks_received as f64));
            metrics.push(("reorder_wait", mean * 1e3));
            metrics.push(("reorder_wait_max", stats.longest_wait.as_secs_f64() * 1e3));
            metrics.push(("held", stats.held_mean as f64 * 1e-3));
            metrics.push(("held_max", stats.held_peak as f64 * 1e-3));
            metrics.push(("duplicates", stats.duplicates as f64));
            metrics.push(("return_share", self.bytes as f64 / stats.bytes_received.max(1) as f64));
            metrics.extend(self.releases.jitter().map(|jitter| ("release_jitter", jitter)));
        }
        metrics
    }

    fn path_metrics(&self) -> Option<PathMetrics> {
        let path = *self.paths().first()?;
        Some(PathMetrics {
            srtt: path.srtt,
            min_rtt: path.min_rtt,
            window: path.window,
            in_flight: path.in_flight,
            threshold: Some(path.threshold).filter(|threshold| *threshold < u64::MAX),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The smoothed round-trip time of the path that data are on with the longest.
fn longest(paths: &[SctpPath]) -> Option<Duration> {
    paths.iter().filter(|path| path.sent > 0).filter_map(|path| path.srtt).max()
}
