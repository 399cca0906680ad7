//! Hosts of the DFCP of 2015.

use bytes::Bytes;
use fontis_base::{Ecn, FlowId, HostId, Node, Packet, PacketId, Port, Rate, Time};
use fontis_proto::published::{Coding, Config, Endpoint, Event, Stats};

use crate::app::source::Source;
use crate::host::payload::Payload;
use crate::host::tcp::Moments;

/// A host with one connection of the DFCP of 2015, and an application on it.
pub struct PublishedHost {
    id: HostId,
    peer: HostId,
    flow: FlowId,
    class: u8,
    control_class: u8,
    config: Config,
    /// Whether every packet passes through its bytes and back.
    wire: bool,
    /// Who decides its rate, if it is not itself.
    controller: Option<HostId>,
    /// What the controller is still to be told.
    report: Option<bool>,
    seed: [u32; 3],
    source: Option<Source>,
    start: Time,
    endpoint: Option<Box<Endpoint>>,
    packets: u64,
    written: u64,
    read: u64,
    is_intact: bool,
    moments: Moments,
    stats: Stats,
    over: bool,
}

impl PublishedHost {
    /// A host that connects when its source begins, and sends what it gives.
    pub fn sender(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: Config,
        source: Source,
        seed: [u32; 3],
    ) -> Self {
        let start = source.due().unwrap_or(Time::MAX);
        Self { source: Some(source), start, ..Self::receiver(id, peer, flow, config, seed) }
    }

    /// A host that waits for a connection and takes what comes.
    pub fn receiver(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: Config,
        seed: [u32; 3],
    ) -> Self {
        Self {
            id,
            peer,
            flow,
            class: 0,
            control_class: 0,
            config,
            wire: false,
            controller: None,
            report: None,
            seed,
            source: None,
            start: Time::MAX,
            endpoint: None,
            packets: 0,
            written: 0,
            read: 0,
            is_intact: true,
            moments: Moments::default(),
            stats: Stats::default(),
            over: false,
        }
    }

    /// The same host, whose packets with data are of one traffic class, and all others of another.
    pub fn with_classes(self, class: u8, control_class: u8) -> Self {
        Self { class, control_class, ..self }
    }

    /// The same host, each of whose packets passes through its bytes and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// The same host, whose rate a controller decides; it sends no data before it is told one.
    pub fn with_controller(self, controller: HostId) -> Self {
        let controller = Some(controller);
        Self { controller, config: Config { rate: Rate::ZERO, ..self.config }, ..self }
    }

    /// When things happened.
    pub const fn moments(&self) -> Moments {
        self.moments
    }

    /// The connection's counters; the last ones if it is gone.
    pub fn stats(&self) -> Stats {
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

    fn act(&mut self, now: Time) {
        let (Some(endpoint), Some(source)) = (&mut self.endpoint, &mut self.source) else { return };
        while let Some(piece) = source.next(now) {
            match self.config.coding {
                Coding::Counting => endpoint.write(piece.bytes),
                Coding::Real => {
                    let end = self.written + piece.bytes;
                    endpoint.write_data((self.written..end).map(byte).collect::<Bytes>());
                }
            }
            self.written += piece.bytes;
            if piece.last {
                endpoint.finish();
            }
        }
    }

    fn note(&mut self, now: Time) {
        let Some(endpoint) = &mut self.endpoint else { return };
        while let Some(bytes) = endpoint.read() {
            self.is_intact &= bytes.iter().zip(self.read..).all(|(got, at)| *got == byte(at));
            self.read += bytes.len() as u64;
        }
        while let Some(event) = endpoint.event() {
            match event {
                Event::Connected => self.moments.connected = Some(now),
                Event::PeerFinished => {
                    self.moments.completed = Some(now);
                    endpoint.finish();
                }
                Event::Closed => self.moments.closed = Some(now),
                Event::Aborted => {
                    self.moments.closed = Some(now);
                    self.moments.aborted = true;
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
        let uses_marks = !matches!(self.config.control, fontis_proto::published::Control::Told);
        Packet {
            id: PacketId(u64::from(self.id.0) << 40 | self.packets),
            src: self.id,
            dst: self.peer,
            flow: self.flow,
            size,
            segments: 1,
            ecn: if is_data && uses_marks { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class: if is_data { self.class } else { self.control_class },
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
            // Whoever has not connected yet will hear of its rate when it has.
            (Payload::Rate(_), None) => {}
            (Payload::Published(inner), Some(endpoint)) => {
                if matches!(inner.body, fontis_proto::published::Body::Symbols(_)) {
                    self.moments.first_data.get_or_insert(now);
                    self.moments.last_data = Some(now);
                }
                endpoint.handle(now, inner, packet.ecn == Ecn::Ce);
            }
            (Payload::Published(inner), None) if self.source.is_none() => {
                let accepted = Endpoint::accept(now, self.config.clone(), self.seed, inner);
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
            let endpoint = Endpoint::connect(now, self.config.clone(), self.seed);
            self.endpoint = Some(Box::new(endpoint));
            self.moments.first_sent = Some(now);
            if self.controller.is_some() {
                self.report = Some(true);
                return self.poll(now);
            }
        }
        if self.source.as_ref().and_then(Source::due).is_some_and(|due| due <= now) {
            self.act(now);
        }
        let Some(inner) = self.endpoint.as_mut()?.poll(now) else {
            self.note(now);
            return None;
        };
        self.moments.first_sent.get_or_insert(now);
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
        let source = self.source.as_ref().and_then(Source::due).map(|at| (at, "application"));
        [endpoint.timeout(), source].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// What a packet's bytes say. How much of a counted block is message stands in no byte.
fn pass_wire(packet: fontis_proto::published::Packet) -> fontis_proto::published::Packet {
    use fontis_proto::published::{Body, Packet};
    let mut bytes = Vec::with_capacity(1500);
    packet.encode(&[], &mut bytes);
    let mut decoded = Packet::decode(&[], &bytes).expect("our own bytes can be read");
    if let (Body::Symbols(sent), Body::Symbols(read)) = (&packet.body, &mut decoded.body) {
        read.message = sent.message;
        if sent.bytes.is_empty() {
            read.bytes = Bytes::new();
        }
    }
    decoded
}
