//! Hosts of TCP.

use core::any::Any;
use std::sync::Arc;

use fontis_base::{
    Address, Duration, Ecn, FlowId, Node, Packet, PacketId, Port, Prefetch, Rate, Time, prefetch,
};
use fontis_proto::tcp::wire::{Addresses, decode_headers, encode_headers};
use fontis_proto::tcp::{
    Departure, ReceiverStats, SenderStats, TcpConfig, TcpEndpoint, TcpEvent, Transmit,
};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones, PathMetrics};

/// A host with one TCP connection and an application on it. The state that every packet touches is
/// one line of the processor's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct TcpHost {
    local: Address,
    peer: Address,
    flow: FlowId,
    class: u8,
    /// Whether every segment passes through the wire format and back.
    wire: bool,
    over: bool,
    endpoint: Option<Box<TcpEndpoint>>,
    /// Half of all hosts take whatever arrives and have no application, and so do those whose
    /// application has ended.
    app: Option<Box<App>>,
    /// The identifier of the last packet sent: the host's number and a count.
    last_id: u64,
    arrived: u64,
    /// When the last packet with data that were missing arrived; [`Time::MAX`] if none has.
    last_data: Time,
    cold: Box<ColdState>,
}

/// State that few packets touch.
#[derive(Clone, Debug)]
struct ColdState {
    config: Arc<TcpConfig>,
    isn: u32,
    /// When it connects; [`Time::MAX`] if the peer does.
    connects_at: Time,
    milestones: Milestones,
    /// The counters of a connection that is gone.
    last_stats: Option<Box<(SenderStats, ReceiverStats)>>,
}

/// The bits of a packet's identifier that count.
const COUNT: u64 = (1 << 40) - 1;

impl Prefetch for TcpHost {
    /// How many pointers are followed: to the connection, its sender, what that points to.
    type Part = u8;

    fn prefetch(&self, part: u8) {
        match (part, &self.endpoint) {
            (0, _) => prefetch(self),
            (_, Some(endpoint)) => endpoint.prefetch(part - 1),
            _ => {}
        }
    }
}

impl TcpHost {
    /// A host of a flow. It connects at `connects_at`, or waits for a connection; `app` uses the
    /// connection.
    pub fn new(
        identity: EndpointIdentity,
        config: impl Into<Arc<TcpConfig>>,
        isn: u32,
        app: Option<App>,
        connects_at: Option<Time>,
    ) -> Self {
        let EndpointIdentity { number, local, peer, flow, class } = identity;
        Self {
            local,
            peer,
            flow,
            class,
            wire: false,
            over: false,
            endpoint: None,
            app: app.map(Box::new),
            last_id: u64::from(number) << 40,
            arrived: 0,
            last_data: Time::MAX,
            cold: Box::new(ColdState {
                config: config.into(),
                isn,
                connects_at: connects_at.unwrap_or(Time::MAX),
                milestones: Milestones::default(),
                last_stats: None,
            }),
        }
    }

    /// The same host, each of whose segments passes through the wire format and back if `wire` says
    /// so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// The counters of the connection's sending half; the last ones if it is gone.
    pub fn sender_stats(&self) -> SenderStats {
        match &self.endpoint {
            Some(endpoint) => endpoint.sender_stats(),
            None => self.cold.last_stats.as_ref().map_or_else(SenderStats::default, |last| last.0),
        }
    }

    /// The counters of its receiving half.
    pub fn receiver_stats(&self) -> ReceiverStats {
        match &self.endpoint {
            Some(endpoint) => endpoint.receiver_stats(),
            None => {
                self.cold.last_stats.as_ref().map_or_else(ReceiverStats::default, |last| last.1)
            }
        }
    }

    /// Packets sent.
    pub const fn packets(&self) -> u64 {
        self.last_id & COUNT
    }

    /// Packets that arrived, useful or not.
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether the connection has come and gone.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// When the application next acts by itself; [`Time::MAX`] if never.
    #[inline]
    fn due(&self) -> Time {
        self.app.as_ref().map_or(Time::MAX, |app| app.due())
    }

    /// Lets the application act.
    fn act(&mut self, now: Time) {
        let (Some(endpoint), Some(app)) = (&mut self.endpoint, &mut self.app) else { return };
        if !app.act(now, &mut TcpSocket { endpoint }) {
            self.app = None;
        }
    }

    fn start(&mut self, now: Time) {
        if now >= self.cold.connects_at {
            let ColdState { config, isn, milestones, .. } = &mut *self.cold;
            self.endpoint = Some(Box::new(TcpEndpoint::connect(now, config.clone(), *isn)));
            milestones.first_sent = Some(now);
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
        let ColdState { milestones, last_stats, .. } = &mut *self.cold;
        while let Some(event) = endpoint.event() {
            match event {
                TcpEvent::Connected => milestones.connected = Some(now),
                TcpEvent::PeerFinished => {
                    milestones.completed = Some(now);
                    endpoint.finish();
                }
                TcpEvent::Delivered => {}
                TcpEvent::Closed => milestones.closed = Some(now),
                TcpEvent::Aborted => {
                    milestones.closed = Some(now);
                    milestones.aborted = true;
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
    pub(crate) fn receive(&mut self, now: Time, packet: Packet<Payload>) {
        self.arrived += 1;
        let Payload::Tcp(segment) = &packet.payload else { return };
        if packet.corrupt || self.over {
            return;
        }
        let marked = packet.ecn == Ecn::Ce;
        let mut has_data = segment.len > 0;
        if let Some(endpoint) = &mut self.endpoint {
            has_data = has_data && !endpoint.has_all_of(segment);
            endpoint.handle(now, segment, marked);
        } else if self.cold.connects_at == Time::MAX {
            let ColdState { config, isn, .. } = &*self.cold;
            let endpoint = TcpEndpoint::accept(now, config.clone(), *isn, segment);
            self.endpoint = endpoint.map(Box::new);
        } else {
            return;
        }
        if has_data {
            if self.last_data == Time::MAX {
                self.cold.milestones.first_data = Some(now);
            }
            self.last_data = now;
        }
        self.note_events(now);
        match self.app.as_deref() {
            None => {}
            Some(app) if app.ignores_arrivals() && self.due() > now => {}
            Some(_) => self.act(now),
        }
    }

    /// The next segment that leaves at `now`; [`Outgoing::packet`] is what carries it. If there is
    /// none, [`rest`](Self::rest) ends the turn.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> Option<Outgoing<'_>> {
        if self.endpoint.is_none() && !self.over {
            self.start(now);
        }
        if self.due() <= now {
            self.act(now);
        }
        let departure = self.endpoint.as_deref_mut()?.leave(now)?;
        self.last_id += 1;
        if self.last_id & COUNT == 1 {
            self.cold.milestones.first_sent.get_or_insert(now);
        }
        let id = PacketId(self.last_id);
        let Self { local: src, peer: dst, flow, class, .. } = *self;
        Some(Outgoing { departure, id, src, dst, flow, class })
    }

    /// Nothing leaves: notes what has happened to the connection, and gives the time of the next
    /// work as [`deadline`](Self::deadline) does.
    #[inline]
    pub(crate) fn rest(&mut self, now: Time) -> Time {
        self.note_events(now);
        self.deadline()
    }

    /// Whether each packet passes through the wire format and back.
    pub(crate) const fn passes_wire(&self) -> bool {
        self.wire
    }

    /// When it next has something to do if nothing arrives; [`Time::MAX`] if nothing.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match &self.endpoint {
            _ if self.over => Time::MAX,
            Some(endpoint) => endpoint.deadline().min(self.due()),
            None => self.cold.connects_at,
        }
    }
}

/// A segment on its way out of a host.
pub(crate) struct Outgoing<'a> {
    departure: Departure<'a>,
    id: PacketId,
    src: Address,
    dst: Address,
    flow: FlowId,
    class: u8,
}

impl Outgoing<'_> {
    /// The packet that carries it.
    #[inline(always)]
    pub(crate) fn packet(self) -> Packet<Payload> {
        let Transmit { segment, ecn_capable } = self.departure.transmit();
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

/// A connection as its application sees it.
struct TcpSocket<'a> {
    endpoint: &'a mut TcpEndpoint,
}

impl AppSocket for TcpSocket<'_> {
    fn write(&mut self, _now: Time, bytes: u64) {
        self.endpoint.write(bytes);
    }

    fn finish(&mut self, _now: Time) {
        self.endpoint.finish();
    }

    fn delivered(&self) -> u64 {
        self.endpoint.receiver_stats().received
    }

    fn send(&mut self, _now: Time, message: AppMessage) {
        self.endpoint.write(message.bytes);
    }

    fn rate(&self) -> Option<Rate> {
        let SenderStats { cwnd, srtt, .. } = self.endpoint.sender_stats();
        let srtt = srtt.filter(|srtt| *srtt > Duration::ZERO)?;
        Some(Rate::from_bytes_over(cwnd, srtt))
    }

    fn keeps_messages(&self) -> bool {
        false
    }
}

impl Node<Payload> for TcpHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        self.receive(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        let wire = self.wire;
        let Some(outgoing) = self.next(now) else {
            self.rest(now);
            return None;
        };
        let packet = outgoing.packet();
        Some((0, if wire { pass_wire(packet) } else { packet }))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        Some((self.deadline(), "connection")).filter(|(at, _)| *at < Time::MAX)
    }
}

impl Host for TcpHost {
    fn counters(&self) -> Counters {
        let (sent, got) = (self.sender_stats(), self.receiver_stats());
        Counters {
            sent: self.packets(),
            retransmitted: sent.retransmitted,
            lost: sent.lost_segments,
            window: sent.cwnd,
            in_flight: sent.in_flight,
            srtt: sent.srtt,
            received: got.received,
            ..Counters::default()
        }
    }

    fn milestones(&self) -> Milestones {
        let last_data = Some(self.last_data).filter(|at| *at < Time::MAX);
        Milestones { last_data, ..self.cold.milestones }
    }

    fn metrics(&self, _now: Time) -> Vec<(&'static str, f64)> {
        let stats = self.sender_stats();
        if stats.segments > 0 { vec![("timeouts", stats.timeouts as f64)] } else { Vec::new() }
    }

    fn path_metrics(&self) -> Option<PathMetrics> {
        let stats = self.sender_stats();
        Some(PathMetrics {
            srtt: stats.srtt,
            min_rtt: stats.min_rtt,
            window: stats.cwnd,
            in_flight: stats.in_flight,
            threshold: (stats.ssthresh < u64::MAX).then_some(stats.ssthresh),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
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
