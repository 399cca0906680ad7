//! Hosts of TCP.

use std::sync::Arc;

use fontis_base::{Duration, Ecn, FlowId, HostId, Packet, PacketId, Stream, Time, prefetch};
use fontis_proto::tcp::wire::{Addresses, decode_headers, encode_headers};
use fontis_proto::tcp::{Config, Endpoint, Event, Leaving, ReceiverStats, SenderStats, Transmit};

use crate::app::source::Source;
use crate::app::source::exponential;
use crate::host::payload::Payload;

/// A host with one TCP connection and an application on it. What every packet touches is one line
/// of the processor's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct TcpHost {
    id: HostId,
    peer: HostId,
    flow: FlowId,
    class: u8,
    /// Whether every segment passes through the wire format and back.
    wire: bool,
    over: bool,
    endpoint: Option<Box<Endpoint>>,
    /// What it does with its connection; half of all hosts take what comes, and so do those that
    /// have sent all they had to.
    role: Option<Box<Role>>,
    packets: u64,
    arrived: u64,
    /// When the last packet with data arrived; [`Time::MAX`] if none has.
    last_data: Time,
    rare: Box<Rare>,
}

/// What a host is seldom asked for.
#[derive(Clone, Debug)]
struct Rare {
    config: Arc<Config>,
    isn: u32,
    moments: Moments,
    /// The counters of a connection that is gone.
    last_stats: Option<Box<(SenderStats, ReceiverStats)>>,
}

/// What a host does with its connection.
#[derive(Clone, Debug)]
enum Role {
    /// Connects and sends what a source gives.
    Send(Sending),
    /// Connects, asks, and asks again after each answer.
    Ask(Asking),
    /// Waits for a connection and answers each request.
    Answer(Answering),
}

#[derive(Clone, Debug)]
struct Sending {
    start: Time,
    source: Source,
}

#[derive(Clone, Debug)]
struct Asking {
    start: Time,
    requests: Requests,
    asked: u64,
    next: Option<Time>,
    stream: Stream,
}

#[derive(Clone, Debug)]
struct Answering {
    requests: Requests,
    answered: u64,
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
        role: Option<Role>,
    ) -> Self {
        Self {
            id,
            peer,
            flow,
            class: 0,
            wire: false,
            over: false,
            endpoint: None,
            role: role.map(Box::new),
            packets: 0,
            arrived: 0,
            last_data: Time::MAX,
            rare: Box::new(Rare { config, isn, moments: Moments::default(), last_stats: None }),
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
        Self::new(id, peer, flow, config.into(), isn, Some(Role::Send(Sending { start, source })))
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
        let asking = Asking { start, requests, asked: 0, next: None, stream };
        Self::new(id, peer, flow, config.into(), isn, Some(Role::Ask(asking)))
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
        let role = requests.map(|requests| Role::Answer(Answering { requests, answered: 0 }));
        Self::new(id, peer, flow, config.into(), isn, role)
    }

    /// The same host, whose packets are of another traffic class.
    pub fn with_class(self, class: u8) -> Self {
        Self { class, ..self }
    }

    /// The same host, each of whose segments passes through the wire format and back if `wire` says
    /// so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// When things happened.
    pub fn moments(&self) -> Moments {
        let last_data = Some(self.last_data).filter(|at| *at < Time::MAX);
        Moments { last_data, ..self.rare.moments }
    }

    /// The counters of the connection's sending half; the last ones if it is gone.
    pub fn sender_stats(&self) -> SenderStats {
        match &self.endpoint {
            Some(endpoint) => endpoint.sender_stats(),
            None => self.rare.last_stats.as_ref().map_or_else(SenderStats::default, |last| last.0),
        }
    }

    /// The counters of its receiving half.
    pub fn receiver_stats(&self) -> ReceiverStats {
        match &self.endpoint {
            Some(endpoint) => endpoint.receiver_stats(),
            None => {
                self.rare.last_stats.as_ref().map_or_else(ReceiverStats::default, |last| last.1)
            }
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

    /// Brings what lies so many steps from here into the processor's cache: the host, the
    /// connection, its sender, what that holds.
    pub(crate) fn bring_near(&self, steps: u8) {
        if steps == 0 {
            return prefetch(self);
        }
        if let Some(endpoint) = &self.endpoint {
            match steps {
                1 => prefetch(&**endpoint),
                2 => endpoint.bring_near(false),
                _ => endpoint.bring_near(true),
            }
        }
    }

    /// When the application next has something to do; [`Time::MAX`] if nothing.
    #[inline]
    fn due(&self) -> Time {
        self.role.as_ref().and_then(|role| role.due()).unwrap_or(Time::MAX)
    }

    /// Lets the application do what it has to at `now`.
    fn act(&mut self, now: Time) {
        let Some(endpoint) = &mut self.endpoint else { return };
        let Some(role) = &mut self.role else { return };
        match &mut **role {
            Role::Send(sending) => {
                while let Some(piece) = sending.source.next(now) {
                    endpoint.write(piece.bytes);
                    if piece.last {
                        endpoint.finish();
                    }
                }
                if sending.source.due().is_none() {
                    self.role = None;
                }
            }
            Role::Ask(asking) => {
                let Asking { requests, asked, next, stream, .. } = asking;
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
            Role::Answer(Answering { requests, answered }) => {
                let got = endpoint.receiver_stats().received;
                while got >= (*answered + 1) * requests.request.max(1) {
                    *answered += 1;
                    endpoint.write(requests.response);
                }
            }
        }
    }

    fn start(&mut self, now: Time) {
        if self.connects_at().is_some_and(|start| now >= start) {
            let Rare { config, isn, moments, .. } = &mut *self.rare;
            self.endpoint = Some(Box::new(Endpoint::connect(now, config.clone(), *isn)));
            moments.first_sent = Some(now);
        }
    }

    /// Notes what has happened to the connection, which nothing mostly has.
    #[inline]
    fn note_events(&mut self, now: Time) {
        if self.endpoint.as_ref().is_some_and(|endpoint| endpoint.has_events()) {
            self.note_all_events(now);
        }
    }

    #[cold]
    fn note_all_events(&mut self, now: Time) {
        let Some(endpoint) = &mut self.endpoint else { return };
        let Rare { moments, last_stats, .. } = &mut *self.rare;
        while let Some(event) = endpoint.event() {
            match event {
                Event::Connected => moments.connected = Some(now),
                Event::PeerFinished => {
                    moments.completed = Some(now);
                    endpoint.finish();
                }
                Event::Delivered => {}
                Event::Closed => moments.closed = Some(now),
                Event::Aborted => {
                    moments.closed = Some(now);
                    moments.aborted = true;
                }
            }
        }
        if endpoint.is_closed() {
            let stats = (endpoint.sender_stats(), endpoint.receiver_stats());
            *last_stats = Some(Box::new(stats));
            self.endpoint = None;
            self.over = true;
        }
    }

    /// Takes a packet that arrives.
    pub(crate) fn handle(&mut self, now: Time, packet: Packet<Payload>) {
        self.arrived += 1;
        let Payload::Tcp(segment) = &packet.payload else { return };
        if packet.corrupt || self.over {
            return;
        }
        let marked = packet.ecn == Ecn::Ce;
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle(now, segment, marked);
        } else if self.connects_at().is_none() {
            let endpoint = Endpoint::accept(now, self.rare.config.clone(), self.rare.isn, segment);
            self.endpoint = endpoint.map(Box::new);
        } else {
            return;
        }
        if segment.len > 0 {
            if self.last_data == Time::MAX {
                self.rare.moments.first_data = Some(now);
            }
            self.last_data = now;
        }
        self.note_events(now);
        match self.role.as_deref() {
            None => {}
            // It does what it does by time alone.
            Some(Role::Send(_)) if self.due() > now => {}
            _ => self.act(now),
        }
    }

    /// The next segment that leaves at `now`; [`Outgoing::packet`] is what carries it.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> Option<Outgoing<'_>> {
        if self.endpoint.is_none() && !self.over {
            self.start(now);
        }
        if self.due() <= now {
            self.act(now);
        }
        let leaving = self.endpoint.as_mut()?.leave(now);
        let Some(leaving) = leaving else {
            self.note_events(now);
            return None;
        };
        self.packets += 1;
        if self.packets == 1 {
            self.rare.moments.first_sent.get_or_insert(now);
        }
        let id = PacketId(u64::from(self.id.0) << 40 | self.packets);
        let Self { id: src, peer: dst, flow, class, .. } = *self;
        let endpoint = self.endpoint.as_deref_mut()?;
        Some(Outgoing { endpoint, leaving, id, src, dst, flow, class })
    }

    /// Whether each packet passes through the wire format and back.
    pub(crate) const fn passes_wire(&self) -> bool {
        self.wire
    }

    /// When it connects, if it does.
    fn connects_at(&self) -> Option<Time> {
        self.role.as_ref().and_then(|role| role.start())
    }

    /// When it next has something to do if nothing arrives; [`Time::MAX`] if nothing.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match &self.endpoint {
            _ if self.over => Time::MAX,
            Some(endpoint) => endpoint.deadline().min(self.due()),
            None => self.connects_at().unwrap_or(Time::MAX),
        }
    }
}

/// A segment on its way out of a host.
pub(crate) struct Outgoing<'a> {
    endpoint: &'a mut Endpoint,
    leaving: Leaving,
    id: PacketId,
    src: HostId,
    dst: HostId,
    flow: FlowId,
    class: u8,
}

impl Outgoing<'_> {
    /// The packet that carries it.
    #[inline(always)]
    pub(crate) fn packet(self, now: Time) -> Packet<Payload> {
        match self.leaving.is_syn() {
            true => self.packet_syn(now),
            false => {
                let transmit = self.endpoint.transmit(now, self.leaving);
                self.carrying(transmit)
            }
        }
    }

    #[cold]
    fn packet_syn(self, now: Time) -> Packet<Payload> {
        let transmit = self.endpoint.transmit_syn(now, self.leaving);
        self.carrying(transmit)
    }

    #[inline(always)]
    fn carrying(&self, transmit: Transmit) -> Packet<Payload> {
        let Transmit { segment, ecn_capable } = transmit;
        Packet {
            id: self.id,
            src: self.src,
            dst: self.dst,
            flow: self.flow,
            size: segment.size(),
            segments: 1,
            ecn: if ecn_capable { Ecn::Ect0 } else { Ecn::NotEct },
            corrupt: false,
            class: self.class,
            payload: Payload::Tcp(segment),
        }
    }
}

/// What the bytes of a packet say.
#[cold]
pub(crate) fn pass_wire(mut packet: Packet<Payload>) -> Packet<Payload> {
    let Payload::Tcp(segment) = &mut packet.payload else { return packet };
    let mut bytes = Vec::with_capacity(80);
    let addresses = Addresses { source: (1, 1), destination: (2, 2) };
    encode_headers(segment, packet.ecn, addresses, &mut bytes);
    match decode_headers(&bytes) {
        Ok((_, ecn, decoded)) => {
            packet.ecn = ecn;
            packet.size = bytes.len() as u32 + decoded.len;
            *segment = decoded;
        }
        // The checksum of what cannot be read would be wrong too.
        Err(_) => packet.corrupt = true,
    }
    packet
}

impl Role {
    /// When it connects, if it does.
    fn start(&self) -> Option<Time> {
        match self {
            Self::Send(sending) => Some(sending.start),
            Self::Ask(asking) => Some(asking.start),
            Self::Answer(_) => None,
        }
    }

    /// When the application next has something to do.
    fn due(&self) -> Option<Time> {
        match self {
            Self::Send(sending) => sending.source.due(),
            Self::Ask(asking) => asking.next,
            Self::Answer(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_packet_touches_of_a_host_is_a_line_of_the_cache() {
        assert_eq!(size_of::<TcpHost>(), 64);
    }
}
