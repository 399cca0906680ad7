//! Hosts of the DFCP of 2015.

use core::any::Any;

use bytes::Bytes;
use fontis_base::{Address, Ecn, Node, Packet, PacketId, Port, Rate, Time};
use fontis_proto::published::{
    Coding, Control, PublishedConfig, PublishedEndpoint, PublishedEvent, PublishedStats,
};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones};

/// A host with one connection of the DFCP of 2015, and an application on it.
pub struct PublishedHost {
    identity: EndpointIdentity,
    control_class: u8,
    config: PublishedConfig,
    /// Whether every packet passes through its bytes and back.
    wire: bool,
    /// The controller of its rate, if it does not set its rate itself.
    controller: Option<Address>,
    /// The report that the controller is still to get.
    report: Option<bool>,
    seed: [u32; 3],
    app: Option<App>,
    /// When it connects; [`Time::MAX`] if the peer does.
    start: Time,
    endpoint: Option<Box<PublishedEndpoint>>,
    packets: u64,
    written: u64,
    /// Bytes that the application has written and that have not been made yet, and whether it has
    /// no more.
    unmade: (u64, bool),
    read: u64,
    is_intact: bool,
    milestones: Milestones,
    stats: PublishedStats,
    over: bool,
}

impl PublishedHost {
    /// A host of a flow. It connects at `connects_at`, or waits for a connection; `app` uses the
    /// connection.
    pub fn new(
        identity: EndpointIdentity,
        config: PublishedConfig,
        seed: [u32; 3],
        app: Option<App>,
        connects_at: Option<Time>,
    ) -> Self {
        Self {
            identity,
            control_class: 0,
            config,
            wire: false,
            controller: None,
            report: None,
            seed,
            app,
            start: connects_at.unwrap_or(Time::MAX),
            endpoint: None,
            packets: 0,
            written: 0,
            unmade: (0, false),
            read: 0,
            is_intact: true,
            milestones: Milestones::default(),
            stats: PublishedStats::default(),
            over: false,
        }
    }

    /// The same host, whose packets without data are of another traffic class.
    pub fn with_control_class(self, control_class: u8) -> Self {
        Self { control_class, ..self }
    }

    /// The same host, each of whose packets passes through its bytes and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// The same host, whose rate a controller decides; it sends no data before it is told one.
    pub fn with_controller(self, controller: Address) -> Self {
        let controller = Some(controller);
        Self { controller, config: PublishedConfig { rate: Rate::ZERO, ..self.config }, ..self }
    }

    /// The connection's counters; the last ones if it is gone.
    pub fn stats(&self) -> PublishedStats {
        self.endpoint.as_ref().map_or(self.stats, |endpoint| endpoint.stats())
    }

    /// Packets sent.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether every byte that arrived was the one that was sent; true if bytes are only counted.
    pub const fn is_intact(&self) -> bool {
        self.is_intact
    }

    fn due(&self) -> Option<Time> {
        self.app.as_ref().map(App::due).filter(|due| *due < Time::MAX)
    }

    fn act(&mut self, now: Time) {
        let Self { endpoint: Some(endpoint), app: Some(app), config, unmade, .. } = self else {
            return;
        };
        let mut socket = PublishedSocket { endpoint, coding: config.coding, unmade };
        if !app.act(now, &mut socket) {
            self.app = None;
        }
        self.make();
    }

    /// Makes the bytes that a window takes and some more. An application may have written more than
    /// any memory has.
    fn make(&mut self) {
        let Self { endpoint: Some(endpoint), config, written, unmade, .. } = self else { return };
        let (left, is_last) = unmade;
        let block = u64::from(config.block);
        let ahead = (u64::from(config.window) + 2).saturating_mul(block);
        while *left > 0 && *written - endpoint.stats().acknowledged < ahead {
            let end = *written + block.min(*left);
            endpoint.write_data((*written..end).map(byte).collect::<Bytes>());
            *left -= end - *written;
            *written = end;
        }
        if *is_last && *left == 0 {
            endpoint.finish();
        }
    }

    fn note(&mut self, now: Time) {
        self.make();
        let Some(endpoint) = &mut self.endpoint else { return };
        while let Some(bytes) = endpoint.read() {
            self.is_intact &= bytes.iter().zip(self.read..).all(|(got, at)| *got == byte(at));
            self.read += bytes.len() as u64;
        }
        while let Some(event) = endpoint.event() {
            match event {
                PublishedEvent::Connected => self.milestones.connected = Some(now),
                PublishedEvent::PeerFinished => {
                    self.milestones.completed = Some(now);
                    endpoint.finish();
                }
                PublishedEvent::Closed => self.milestones.closed = Some(now),
                PublishedEvent::Aborted => {
                    self.milestones.closed = Some(now);
                    self.milestones.aborted = true;
                }
            }
        }
        if endpoint.is_closed() {
            self.stats = endpoint.stats();
            self.endpoint = None;
            self.over = true;
            if self.controller.is_some() {
                self.report = Some(false);
            }
        }
    }

    fn packet(&mut self, size: u32, is_data: bool, payload: Payload) -> Packet<Payload> {
        self.packets += 1;
        let uses_marks = !matches!(self.config.control, Control::Told);
        Packet {
            id: PacketId(u64::from(self.identity.number) << 40 | self.packets),
            src: self.identity.local,
            dst: self.identity.peer,
            flow: self.identity.flow,
            size,
            segments: 1,
            ecn: if is_data && uses_marks { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class: if is_data { self.identity.class } else { self.control_class },
            payload,
        }
    }
}

/// The bytes of a message, where there are any.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Node<Payload> for PublishedHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        if packet.corrupt || self.over {
            return;
        }
        match (&packet.payload, &mut self.endpoint) {
            (Payload::Rate(rate), Some(endpoint)) => endpoint.set_rate(now, *rate),
            // A host that has not connected yet will be told its rate when it has.
            (Payload::Rate(_), None) => {}
            (Payload::Published(inner), Some(endpoint)) => {
                if matches!(inner.body, fontis_proto::published::Body::Symbols(_)) {
                    self.milestones.first_data.get_or_insert(now);
                    self.milestones.last_data = Some(now);
                }
                endpoint.handle(now, inner, packet.ecn == Ecn::Ce);
            }
            (Payload::Published(inner), None) if self.start == Time::MAX => {
                let accepted =
                    PublishedEndpoint::accept(now, self.config.clone(), self.seed, inner);
                self.endpoint = accepted.map(Box::new);
            }
            _ => return,
        }
        self.note(now);
        self.act(now);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if let (Some(active), Some(controller)) = (self.report.take(), self.controller) {
            let mut packet = self.packet(0, false, Payload::Active(active));
            packet.dst = controller;
            return Some((1, packet));
        }
        if self.endpoint.is_none() {
            if self.over || now < self.start {
                return None;
            }
            let endpoint = PublishedEndpoint::connect(now, self.config.clone(), self.seed);
            self.endpoint = Some(Box::new(endpoint));
            self.milestones.first_sent = Some(now);
            if self.controller.is_some() {
                self.report = Some(true);
                return self.poll(now);
            }
        }
        if self.due().is_some_and(|due| due <= now) {
            self.act(now);
        }
        let Some(inner) = self.endpoint.as_mut()?.poll(now) else {
            self.note(now);
            return None;
        };
        self.milestones.first_sent.get_or_insert(now);
        let is_data = matches!(inner.body, fontis_proto::published::Body::Symbols(_));
        let size = inner.size();
        let inner = if self.wire { pass_wire(inner) } else { inner };
        Some((0, self.packet(size, is_data, Payload::Published(Box::new(inner)))))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        if self.report.is_some() {
            return Some((Time::ZERO, "report"));
        }
        if self.over {
            return None;
        }
        let Some(endpoint) = &self.endpoint else {
            return (self.start < Time::MAX).then_some((self.start, "start"));
        };
        let app = self.due().map(|at| (at, "application"));
        [endpoint.timeout(), app].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// A connection as its application sees it.
struct PublishedSocket<'a> {
    endpoint: &'a mut PublishedEndpoint,
    coding: Coding,
    unmade: &'a mut (u64, bool),
}

impl AppSocket for PublishedSocket<'_> {
    fn write(&mut self, _now: Time, bytes: u64) {
        match self.coding {
            Coding::Counting => self.endpoint.write(bytes),
            Coding::Real => self.unmade.0 = self.unmade.0.saturating_add(bytes),
        }
    }

    fn finish(&mut self, _now: Time) {
        match self.coding {
            Coding::Counting => self.endpoint.finish(),
            Coding::Real => self.unmade.1 = true,
        }
    }

    fn delivered(&self) -> u64 {
        self.endpoint.stats().delivered
    }

    fn send(&mut self, now: Time, message: AppMessage) {
        self.write(now, message.bytes);
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.endpoint.rate()).filter(|rate| *rate > Rate::ZERO)
    }

    fn keeps_messages(&self) -> bool {
        false
    }
}

impl Host for PublishedHost {
    fn counters(&self) -> Counters {
        let stats = self.stats();
        Counters {
            sent: self.packets,
            retransmitted: stats.repairs_sent,
            in_flight: stats.in_flight,
            received: stats.delivered,
            wasted: stats.bytes_wasted,
            symbols: stats.bytes_received,
            ..Counters::default()
        }
    }

    fn milestones(&self) -> Milestones {
        self.milestones
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// What a packet's bytes say. How much of a counted block is message stands in no byte.
fn pass_wire(
    packet: fontis_proto::published::PublishedPacket,
) -> fontis_proto::published::PublishedPacket {
    use fontis_proto::published::{Body, PublishedPacket};
    let mut bytes = Vec::with_capacity(1500);
    packet.encode(&[], &mut bytes);
    let mut decoded = PublishedPacket::decode(&[], &bytes).expect("our own bytes can be read");
    if let (Body::Symbols(sent), Body::Symbols(read)) = (&packet.body, &mut decoded.body) {
        read.message = sent.message;
        if sent.bytes.is_empty() {
            read.bytes = Bytes::new();
        }
    }
    decoded
}
