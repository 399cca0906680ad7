use std::sync::Arc;

use fontis_base::{Duration, Ecn, FlowId, HostId, Node, Packet, PacketId, Port, Stream, Time};
use fontis_proto::tcp::wire::{Addresses, decode_headers, encode_headers};
use fontis_proto::tcp::{Config, Endpoint, Event, ReceiverStats, SenderStats};

use crate::source::exponential;
use crate::{Packed, Payload, Source};

/// A host with one TCP connection and an application on it.
#[derive(Clone, Debug)]
pub struct TcpHost {
    id: HostId,
    peer: HostId,
    flow: FlowId,
    class: u8,
    config: Arc<Config>,
    /// Whether every segment passes through the wire format and back.
    wire: bool,
    isn: u32,
    role: Role,
    endpoint: Option<Box<Endpoint>>,
    packets: u64,
    arrived: u64,
    moments: Moments,
    /// The counters of a connection that is gone.
    last_stats: Option<Box<(SenderStats, ReceiverStats)>>,
    over: bool,
}

/// What a host does with its connection.
#[derive(Clone, Debug)]
enum Role {
    /// Connects and sends what a source gives.
    Send { start: Time, source: Source },
    /// Connects, asks, and asks again after each answer.
    Ask { start: Time, requests: Requests, asked: u64, next: Option<Time>, stream: Stream },
    /// Waits for a connection and takes what comes.
    Take,
    /// Waits for a connection and answers each request.
    Answer { requests: Requests, answered: u64 },
}

/// Requests and answers, one after the other on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Bytes of a request.
    pub request: u64,
    /// Bytes of an answer.
    pub response: u64,
    /// Mean of the exponentially distributed time between an answer and the next request.
    pub think: Duration,
    /// How many requests there are; `None` is without end.
    pub count: Option<u64>,
}

/// When things happened to a flow, seen from this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The first packet was sent.
    pub first_sent: Option<Time>,
    /// Data could be exchanged.
    pub connected: Option<Time>,
    /// The first packet with data arrived.
    pub first_data: Option<Time>,
    /// The last packet with data arrived so far.
    pub last_data: Option<Time>,
    /// All that the peer sent had arrived.
    pub completed: Option<Time>,
    /// The connection was over.
    pub closed: Option<Time>,
    /// It ended because the peer did not answer or broke it off.
    pub aborted: bool,
}

impl TcpHost {
    fn new(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: Arc<Config>,
        isn: u32,
        role: Role,
    ) -> Self {
        Self {
            id,
            peer,
            flow,
            class: 0,
            config,
            wire: false,
            isn,
            role,
            endpoint: None,
            packets: 0,
            arrived: 0,
            moments: Moments::default(),
            last_stats: None,
            over: false,
        }
    }

    /// A host that connects when its source begins, and sends what it gives.
    pub fn sender(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: impl Into<Arc<Config>>,
        source: Source,
        isn: u32,
    ) -> Self {
        let start = source.due().unwrap_or(Time::MAX);
        Self::new(id, peer, flow, config.into(), isn, Role::Send { start, source })
    }

    /// A host that connects at `start` and makes requests.
    pub fn asker(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: impl Into<Arc<Config>>,
        (start, requests, stream): (Time, Requests, Stream),
        isn: u32,
    ) -> Self {
        let role = Role::Ask { start, requests, asked: 0, next: None, stream };
        Self::new(id, peer, flow, config.into(), isn, role)
    }

    /// A host that waits for a connection; it answers requests, or takes what comes.
    pub fn receiver(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: impl Into<Arc<Config>>,
        requests: Option<Requests>,
        isn: u32,
    ) -> Self {
        let role = requests.map_or(Role::Take, |requests| Role::Answer { requests, answered: 0 });
        Self::new(id, peer, flow, config.into(), isn, role)
    }

    /// The same host, whose packets are of another traffic class.
    pub fn with_class(self, class: u8) -> Self {
        Self { class, ..self }
    }

    /// The same host, each of whose segments passes through the wire format and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// When things happened.
    pub const fn moments(&self) -> Moments {
        self.moments
    }

    /// The connection's counters; the last ones if it is gone.
    pub fn stats(&self) -> (SenderStats, ReceiverStats) {
        match &self.endpoint {
            Some(endpoint) => (endpoint.sender_stats(), endpoint.receiver_stats()),
            None => self.last_stats.as_deref().copied().unwrap_or_default(),
        }
    }

    /// Packets sent.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that arrived, of use or not.
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether the connection has come and gone.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Lets the application do what it has to at `now`.
    fn act(&mut self, now: Time) {
        let Some(endpoint) = &mut self.endpoint else { return };
        match &mut self.role {
            Role::Send { source, .. } => {
                while let Some(piece) = source.next(now) {
                    endpoint.write(piece.bytes);
                    if piece.last {
                        endpoint.finish();
                    }
                }
            }
            Role::Ask { requests, asked, next, stream, .. } => {
                let got = endpoint.receiver_stats().received;
                if next.is_none() && got >= *asked * requests.response {
                    // The answer is there: think, and ask again, or end.
                    if requests.count.is_some_and(|count| *asked >= count) {
                        endpoint.finish();
                        return;
                    }
                    let think = if *asked == 0 {
                        Duration::ZERO
                    } else {
                        exponential(stream, requests.think)
                    };
                    *next = Some(now + think);
                }
                if next.is_some_and(|next| now >= next) {
                    *next = None;
                    *asked += 1;
                    endpoint.write(requests.request);
                }
            }
            Role::Take => {}
            Role::Answer { requests, answered } => {
                let got = endpoint.receiver_stats().received;
                while got >= (*answered + 1) * requests.request.max(1) {
                    *answered += 1;
                    endpoint.write(requests.response);
                }
            }
        }
    }

    fn start(&mut self, now: Time) {
        let start = match &self.role {
            Role::Send { start, .. } | Role::Ask { start, .. } => *start,
            Role::Take | Role::Answer { .. } => return,
        };
        if now >= start {
            self.endpoint = Some(Box::new(Endpoint::connect(now, self.config.clone(), self.isn)));
            self.moments.first_sent = Some(now);
        }
    }

    fn note_events(&mut self, now: Time) {
        let Some(endpoint) = &mut self.endpoint else { return };
        while let Some(event) = endpoint.event() {
            match event {
                Event::Connected => self.moments.connected = Some(now),
                Event::PeerFinished => {
                    self.moments.completed = Some(now);
                    endpoint.finish();
                }
                Event::Delivered => {}
                Event::Closed => self.moments.closed = Some(now),
                Event::Aborted => {
                    self.moments.closed = Some(now);
                    self.moments.aborted = true;
                }
            }
        }
        if endpoint.is_closed() {
            let stats = (endpoint.sender_stats(), endpoint.receiver_stats());
            self.last_stats = Some(Box::new(stats));
            self.endpoint = None;
            self.over = true;
        }
    }
}

impl Node<Payload> for TcpHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        self.arrived += 1;
        let Payload::Tcp(packed) = &packet.payload else { return };
        if packet.corrupt || self.over {
            return;
        }
        let segment = &packed.segment();
        let marked = packet.ecn == Ecn::Ce;
        match &mut self.endpoint {
            Some(endpoint) => endpoint.handle(now, segment, marked),
            None if matches!(self.role, Role::Take | Role::Answer { .. }) => {
                let endpoint = Endpoint::accept(now, self.config.clone(), self.isn, segment);
                self.endpoint = endpoint.map(Box::new);
            }
            None => return,
        }
        if segment.len > 0 {
            self.moments.first_data.get_or_insert(now);
            self.moments.last_data = Some(now);
        }
        self.note_events(now);
        self.act(now);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.endpoint.is_none() {
            if self.over {
                return None;
            }
            self.start(now);
        }
        if self.application_due().is_some_and(|due| due <= now) {
            self.act(now);
        }
        let Some(transmit) = self.endpoint.as_mut()?.poll(now) else {
            self.note_events(now);
            return None;
        };
        self.packets += 1;
        self.moments.first_sent.get_or_insert(now);
        let mut packet = Packet {
            id: PacketId(u64::from(self.id.0) << 40 | self.packets),
            src: self.id,
            dst: self.peer,
            flow: self.flow,
            size: transmit.segment.size(),
            segments: 1,
            ecn: if transmit.ecn_capable { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class: self.class,
            payload: Payload::Tcp(Packed::from(&transmit.segment)),
        };
        if self.wire {
            pass_wire(&mut packet);
        }
        Some((0, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        if self.over {
            return None;
        }
        let Some(endpoint) = &self.endpoint else {
            return match &self.role {
                Role::Send { start, .. } | Role::Ask { start, .. } => Some((*start, "start")),
                Role::Take | Role::Answer { .. } => None,
            };
        };
        let application = self.application_due().map(|at| (at, "application"));
        [endpoint.timeout(), application].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// Replaces a packet by what its bytes say.
fn pass_wire(packet: &mut Packet<Payload>) {
    let Payload::Tcp(packed) = &mut packet.payload else { return };
    let mut bytes = Vec::with_capacity(80);
    let addresses = Addresses { source: (1, 1), destination: (2, 2) };
    encode_headers(&packed.segment(), packet.ecn, addresses, &mut bytes);
    match decode_headers(&bytes) {
        Ok((_, ecn, decoded)) => {
            packet.ecn = ecn;
            packet.size = bytes.len() as u32 + decoded.len;
            *packed = Packed::from(&decoded);
        }
        // The checksum of what cannot be read would be wrong too.
        Err(_) => packet.corrupt = true,
    }
}

impl TcpHost {
    /// When the application next has something to do.
    fn application_due(&self) -> Option<Time> {
        match &self.role {
            Role::Send { source, .. } => source.due(),
            Role::Ask { next, .. } => *next,
            Role::Take | Role::Answer { .. } => None,
        }
    }
}
