//! Hosts of DCCP.

use core::any::Any;

use fontis_base::{Ecn, Node, Packet, PacketId, Port, Rate, Time};
use fontis_proto::dccp::{
    Carrier, Ccid, DccpConfig, DccpConnection, DccpData, DccpEvent, DccpPacket, DccpPath, DccpStats,
};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::fragments::Fragments;
use crate::host::identity::EndpointIdentity;
use crate::host::mean::TimeMean;
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones, PathMetrics};

/// Bytes of an IPv4 header.
const IP_HEADER: u32 = 20;
/// The mark of data that no message owns.
const NO_MESSAGE: u64 = u64::MAX;

/// A host with one connection of DCCP, and an application on it.
pub struct DccpHost {
    identity: EndpointIdentity,
    config: DccpConfig,
    /// Its first sequence number.
    first: u64,
    /// Whether every packet passes through its bytes and back.
    wire: bool,
    /// When it connects; [`Time::MAX`] if the peer does.
    start: Time,
    app: Option<App>,
    connection: Option<Box<DccpConnection>>,
    outbox: Outbox,
    fragments: Fragments,
    packets: u64,
    /// The mean of the loss event rate, from the first report on.
    loss: TimeMean,
    milestones: Milestones,
}

/// Bytes of a source that writes as fast as the connection takes them, and the end of it.
#[derive(Clone, Copy, Debug, Default)]
struct Outbox {
    /// Whether the application writes a stream of bytes, and not datagrams of its own.
    is_stream: bool,
    bytes: u64,
    is_finished: bool,
}

impl DccpHost {
    /// A host of a flow. It connects at `connects_at`, or waits for a connection; `app` uses the
    /// connection. `first` is its first sequence number.
    pub fn new(
        identity: EndpointIdentity,
        config: DccpConfig,
        first: u64,
        app: Option<App>,
        connects_at: Option<Time>,
    ) -> Self {
        Self {
            identity,
            config,
            first,
            wire: false,
            start: connects_at.unwrap_or(Time::MAX),
            app,
            connection: None,
            outbox: Outbox::default(),
            fragments: Fragments::default(),
            packets: 0,
            loss: TimeMean::default(),
            milestones: Milestones::default(),
        }
    }

    /// The same host, each of whose packets passes through its bytes and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// The same host, whose application writes a stream of bytes if `is_stream` says so.
    pub fn with_stream(mut self, is_stream: bool) -> Self {
        self.outbox.is_stream = is_stream;
        self
    }

    /// The connection's counters.
    pub fn stats(&self) -> DccpStats {
        self.connection.as_ref().map(|connection| connection.stats()).unwrap_or_default()
    }

    /// The state of its path.
    pub fn path(&self) -> DccpPath {
        self.connection.as_ref().map(|connection| connection.path()).unwrap_or_default()
    }

    fn due(&self) -> Option<Time> {
        self.connection.as_ref()?;
        self.app.as_ref().map(App::due).filter(|due| *due < Time::MAX)
    }

    fn act(&mut self, now: Time) {
        let Self { connection: Some(connection), app: Some(app), outbox, config, .. } = self else {
            return;
        };
        let mut socket = DccpSocket { connection, outbox, packet: config.packet_size };
        if !app.act(now, &mut socket) {
            self.app = None;
        }
    }

    /// Gives the connection as much of a stream as it takes.
    fn feed(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while self.outbox.bytes > 0 && connection.is_connected() && connection.room() > 0 {
            let most = connection.most_data().unwrap_or(u32::MAX);
            let most = self.config.packet_size.min(most).max(1);
            let len = self.outbox.bytes.min(u64::from(most)) as u32;
            if connection.send(DccpData::Counted { len, mark: NO_MESSAGE }) != Ok(true) {
                break;
            }
            self.outbox.bytes -= u64::from(len);
        }
        if self.outbox.is_finished && self.outbox.bytes == 0 {
            connection.close();
        }
    }

    fn note(&mut self, now: Time) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(data) = connection.receive() {
            self.milestones.first_data.get_or_insert(now);
            self.milestones.last_data = Some(now);
            let DccpData::Counted { mark, .. } = data else { continue };
            if mark == NO_MESSAGE {
                continue;
            }
            let (message, fragment, fragments) = fragment_of(mark);
            if self.fragments.completes(message, fragment, fragments)
                && let Some(app) = &mut self.app
            {
                app.on_message(now, message);
            }
        }
        while let Some(event) = connection.event() {
            match event {
                DccpEvent::Connected => self.milestones.connected = Some(now),
                DccpEvent::Closed => {
                    self.milestones.closed = Some(now);
                    self.milestones.completed.get_or_insert(now);
                }
                DccpEvent::Aborted(_) => {
                    self.milestones.closed = Some(now);
                    self.milestones.aborted = true;
                }
            }
        }
    }

    fn packet(&mut self, inner: DccpPacket) -> Packet<Payload> {
        self.packets += 1;
        let EndpointIdentity { number, local, peer, flow, class } = self.identity;
        let is_data = inner.body.carries_data();
        Packet {
            id: PacketId(u64::from(number) << 40 | self.packets),
            src: local,
            dst: peer,
            flow,
            size: (inner.header_len() + inner.data.len()) as u32 + IP_HEADER,
            segments: 1,
            ecn: if is_data && self.config.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class,
            payload: Payload::Dccp(Box::new(if self.wire { pass_wire(inner) } else { inner })),
        }
    }
}

/// The mark of a fragment of a message.
const fn mark_of(message: u64, fragment: u16, fragments: u16) -> u64 {
    message << 32 | (fragment as u64) << 16 | fragments as u64
}

const fn fragment_of(mark: u64) -> (u64, u16, u16) {
    (mark >> 32, (mark >> 16) as u16, mark as u16)
}

/// What a packet's bytes say. The mark of counted data is in no byte.
fn pass_wire(packet: DccpPacket) -> DccpPacket {
    let carrier = Carrier::Ip { source: 1, destination: 2 };
    let mut bytes = Vec::with_capacity(1500);
    packet.encode(carrier, &mut bytes);
    let mut decoded = DccpPacket::decode(carrier, &bytes).expect("our own bytes can be read");
    decoded.data = packet.data;
    decoded
}

impl Node<Payload> for DccpHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Payload::Dccp(inner) = packet.payload else { return };
        if packet.corrupt {
            return;
        }
        match &mut self.connection {
            Some(connection) => connection.handle(now, &inner, packet.ecn == Ecn::Ce),
            None if self.start == Time::MAX => {
                let config = self.config.clone();
                let accepted = DccpConnection::accept(now, config, self.first, &inner);
                self.connection = accepted.map(Box::new);
            }
            None => return,
        }
        let path = self.path();
        if path.rtt.is_some() {
            self.loss.note(now, path.loss_event_rate);
        }
        self.note(now);
        if self.app.as_ref().is_some_and(|app| !app.ignores_arrivals()) {
            self.act(now);
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.connection.is_none() {
            if now < self.start {
                return None;
            }
            let client = DccpConnection::connect(now, self.config.clone(), self.first);
            self.connection = Some(Box::new(client));
            self.milestones.first_sent = Some(now);
        }
        if self.due().is_some_and(|due| due <= now) {
            self.act(now);
        }
        self.feed();
        let Some(inner) = self.connection.as_mut()?.poll(now) else {
            self.note(now);
            return None;
        };
        self.milestones.first_sent.get_or_insert(now);
        Some((0, self.packet(inner)))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        let Some(connection) = &self.connection else {
            return (self.start < Time::MAX).then_some((self.start, "start"));
        };
        let app = self.due().map(|at| (at, "application"));
        let has_room = connection.is_connected() && connection.room() > 0;
        let stream = (self.outbox.bytes > 0 && has_room).then_some((Time::ZERO, "stream"));
        [connection.timeout(), app, stream].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// A connection as its application sees it.
struct DccpSocket<'a> {
    connection: &'a mut DccpConnection,
    outbox: &'a mut Outbox,
    /// Bytes in a packet.
    packet: u32,
}

impl AppSocket for DccpSocket<'_> {
    fn write(&mut self, _now: Time, bytes: u64) {
        self.outbox.bytes = self.outbox.bytes.saturating_add(bytes);
    }

    fn finish(&mut self, _now: Time) {
        self.outbox.is_finished = true;
    }

    fn delivered(&self) -> u64 {
        self.connection.stats().bytes_received
    }

    fn send(&mut self, now: Time, message: AppMessage) {
        if self.outbox.is_stream {
            return self.write(now, message.bytes);
        }
        // A packet that the queue cannot hold is lost here, between application and transport.
        let most = self.connection.most_data().unwrap_or(u32::MAX);
        let size = u64::from(self.packet.min(most).max(1));
        let fragments = message.bytes.div_ceil(size).clamp(1, u64::from(u16::MAX)) as u16;
        let mut left = message.bytes;
        for fragment in 0..fragments {
            let len = left.min(size);
            left -= len;
            let mark = match message.number {
                Some(number) => mark_of(number, fragment, fragments),
                None => NO_MESSAGE,
            };
            let _ = self.connection.send(DccpData::Counted { len: len as u32, mark });
        }
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.connection.path().rate).filter(|rate| *rate > Rate::ZERO)
    }

    fn keeps_messages(&self) -> bool {
        true
    }
}

impl Host for DccpHost {
    fn counters(&self) -> Counters {
        let (stats, path) = (self.stats(), self.path());
        let size = u64::from(self.config.packet_size);
        Counters {
            sent: self.packets,
            lost: path.lost,
            window: path.window * size,
            in_flight: path.in_flight * size,
            srtt: path.rtt,
            received: stats.bytes_received,
            symbols: stats.data_received,
            ..Counters::default()
        }
    }

    fn milestones(&self) -> Milestones {
        self.milestones
    }

    fn metrics(&self, now: Time) -> Vec<(&'static str, f64)> {
        // Windows have no such rate, and an end that sends no data learns none.
        let has_rate = self.config.ccid != Ccid::Two && self.stats().data_sent > 0;
        let mean = self.loss.mean(now).filter(|_| has_rate);
        mean.map(|mean| ("loss_event_rate", mean)).into_iter().collect()
    }

    fn path_metrics(&self) -> Option<PathMetrics> {
        let path = self.path();
        let size = u64::from(self.config.packet_size);
        Some(PathMetrics {
            srtt: path.rtt,
            window: path.window * size,
            in_flight: path.in_flight * size,
            ..PathMetrics::default()
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
