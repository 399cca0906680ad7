//! Hosts of DFCP.

mod carry;
mod part;

use core::any::Any;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Node, Packet, PacketId, Port, Stream, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    ChannelId, CloseReason, ConnectionId, DfcpConfig, DfcpConnection, DfcpEvent, DfcpPacket,
    DfcpStats, ObjectShape, SendOptions, Session, TraceEvent, qlog_event,
};
use fontis_proto::qlog::QlogEvent;
use fontis_trace::Clear;

use crate::host::identity::EndpointIdentity;
use crate::host::object::PatternObject;
use crate::host::payload::Payload;
use crate::host::way::Way;
use crate::host::{Counters, Host, Milestones, PathMetrics};

pub use carry::Carry;
pub use part::{FetchedPart, ServedPart};

/// The use that a host makes of its connection.
pub enum Role {
    /// Fetches one object and closes.
    Fetch(Fetch),
    /// Answers a request for an object.
    Serve(Serve),
    /// Carries streams and messages of an application.
    Carry(Box<Carry>),
}

/// A client that fetches one object.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    /// Bytes to ask for.
    pub size: u64,
    /// When the connection was ready.
    pub connected_at: Option<Time>,
    /// When the first packet with symbols arrived.
    pub first_data_at: Option<Time>,
    /// When all of it had been received and compared.
    pub completed_at: Option<Time>,
    /// Bytes that differed from what they should be.
    pub wrong_bytes: u64,
    /// Blocks received.
    pub blocks: u32,
    /// Bytes in them.
    pub bytes: u64,
    /// When each block was complete.
    pub block_times: Vec<Time>,
    /// How the connection ended.
    pub closed: Option<CloseReason>,
    /// The object, if others send parts of it over connections of their own.
    pub part: Option<FetchedPart>,
}

impl Fetch {
    /// Takes what concerns a part; closes once everything has come, from whomever.
    fn look(&mut self, now: Time, connection: &mut DfcpConnection, event: Option<&DfcpEvent>) {
        let Some(part) = self.part.as_mut().filter(|_| self.completed_at.is_none()) else { return };
        let (bytes, completed_at) = part.on_event(now, connection, event);
        if let Some(bytes) = bytes {
            self.blocks += 1;
            self.bytes += u64::from(bytes);
            self.block_times.push(now);
        }
        self.completed_at = completed_at;
        if completed_at.is_some() {
            connection.close(now, 0, "");
        }
    }
}

/// A server of pattern objects.
#[derive(Clone, Debug, Default)]
pub struct Serve {
    shape: Option<ObjectShape>,
    /// The size to send without being asked: with a code that carries no bytes no request can
    /// travel.
    pub unasked: Option<u64>,
    /// Bytes in a block, if not what the size of the object suggests.
    pub block_size: Option<u32>,
    /// The part in an object that others send, too.
    pub part: Option<ServedPart>,
    /// Requests answered.
    pub requests: u32,
    /// How the connection ended.
    pub closed: Option<CloseReason>,
}

impl Serve {
    /// A server for a connection with `code`: if no request can travel, it sends `size` bytes
    /// unasked.
    pub fn new(code: Option<Code>, size: u64) -> Self {
        let unasked = code.is_some_and(|code| !code.carries_bytes()).then_some(size);
        Self { unasked, ..Self::default() }
    }

    fn answer(&mut self, now: Time, connection: &mut DfcpConnection, size: u64, symbol_size: u16) {
        self.requests += 1;
        let mut shape = ObjectShape::partition(size, symbol_size, connection.code());
        if let Some(block_size) = self.block_size {
            shape.block_size = block_size;
        }
        self.shape = Some(shape);
        connection.send_object(now, shape, Bytes::new(), SendOptions::default());
    }
}

/// A host with one DFCP connection and an application on it.
pub struct DfcpHost {
    identity: EndpointIdentity,
    config: DfcpConfig,
    connection: Option<DfcpConnection>,
    stats: DfcpStats,
    role: Role,
    object: PatternObject,
    /// Whether every packet passes through the wire format and back.
    wire: bool,
    start: Time,
    /// The ends of the paths, by their numbers; of an initiator the first is open, and the others
    /// follow.
    ways: Vec<Way>,
    ids: Stream,
    packets: u64,
    out: VecDeque<(Port, Packet<Payload>)>,
    fetch_channel: Option<(ChannelId, ObjectShape)>,
    /// The connection's own events since they were last taken.
    trace: Vec<TraceEvent>,
}

impl DfcpHost {
    /// A host at rest; a client begins at `start`. Who connects opens a path over each of `ways`.
    pub fn new(
        identity: EndpointIdentity,
        config: DfcpConfig,
        role: Role,
        object: PatternObject,
        wire: bool,
        start: Time,
        ways: impl IntoIterator<Item = Way>,
    ) -> Self {
        let first = Way { local: identity.local, peer: identity.peer, port: 0 };
        Self {
            ways: core::iter::once(first).chain(ways).collect(),
            ids: Stream::new(object.seed, &format!("host {}", identity.number)),
            identity,
            config,
            connection: None,
            stats: DfcpStats::default(),
            role,
            object,
            wire,
            start,
            packets: 0,
            out: VecDeque::new(),
            fetch_channel: None,
            trace: Vec::new(),
        }
    }

    /// What the host does, and what came of it.
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// The connection's counters; the last ones if it is gone.
    pub fn stats(&self) -> DfcpStats {
        self.connection.as_ref().map_or(self.stats, DfcpConnection::stats)
    }

    /// Whether the connection has come and gone.
    pub fn is_finished(&self) -> bool {
        match &self.role {
            Role::Fetch(fetch) => fetch.closed.is_some(),
            Role::Serve(serve) => serve.closed.is_some(),
            Role::Carry(carry) => carry.milestones.closed.is_some(),
        }
    }

    /// When it connects, if it does and has not yet.
    fn connects_at(&self) -> Option<Time> {
        let at = match &self.role {
            Role::Fetch(_) => Some(self.start),
            Role::Serve(_) => None,
            Role::Carry(carry) => carry.connects_at,
        };
        at.filter(|_| self.connection.is_none() && !self.is_finished())
    }

    fn new_id(&mut self) -> ConnectionId {
        ConnectionId(self.ids.next_u64().to_be_bytes())
    }

    fn pass_wire(packet: DfcpPacket) -> Option<DfcpPacket> {
        let mut bytes = Vec::new();
        Clear.seal(&packet, &mut bytes).ok()?;
        Clear.open(BytesMut::from(&bytes[..])).ok()
    }

    fn connect(&mut self, now: Time) {
        let request = match &mut self.role {
            // A code that only counts carries no request: the server knows the size.
            Role::Fetch(fetch)
                if self.config.params.codes().next().is_some_and(Code::carries_bytes) =>
            {
                Some(Bytes::copy_from_slice(&fetch.size.to_be_bytes()))
            }
            Role::Fetch(_) | Role::Serve(_) => None,
            Role::Carry(carry) => {
                carry.milestones.first_sent = Some(now);
                None
            }
        };
        let id = self.new_id();
        self.connection = Some(DfcpConnection::connect(now, self.config.clone(), id, request));
    }

    /// When it is looked next at an object that others send, too.
    fn looks_at(&self) -> Option<Time> {
        match &self.role {
            Role::Fetch(fetch) => fetch.part.as_ref()?.look_at(),
            Role::Serve(serve) => serve.part.as_ref()?.look_at(),
            Role::Carry(_) => None,
        }
    }

    /// Drains the connection: jobs run at once, events go to the application, packets to the
    /// network.
    fn drive(&mut self, now: Time) {
        if self.connects_at().is_some_and(|at| now >= at) {
            self.connect(now);
        }
        let Some(mut connection) = self.connection.take() else { return };
        if let Role::Carry(carry) = &mut self.role
            && carry.milestones.connected.is_some()
        {
            carry.act_if_due(now, &mut connection);
        }
        if self.looks_at().is_some_and(|at| at <= now) {
            match &mut self.role {
                Role::Fetch(fetch) => fetch.look(now, &mut connection, None),
                Role::Serve(Serve { part: Some(part), .. }) => {
                    part.on_event(now, &mut connection, None);
                }
                _ => {}
            }
        }
        loop {
            let mut idle = true;
            while let Some(out) = connection.poll(now) {
                idle = false;
                let packet = if self.wire { Self::pass_wire(out.packet) } else { Some(out.packet) };
                let way = self.ways.get(usize::from(out.path));
                let Some((packet, way)) = packet.zip(way) else { continue };
                self.packets += 1;
                let packet = Packet {
                    id: PacketId(u64::from(self.identity.number) << 40 | self.packets),
                    src: way.local,
                    dst: way.peer,
                    flow: self.identity.flow,
                    size: out.size,
                    segments: 1,
                    ecn: out.ecn,
                    corrupt: false,
                    class: self.identity.class,
                    payload: Payload::Dfcp(Box::new(packet)),
                };
                self.out.push_back((way.port, packet));
            }
            while let Some(job) = connection.job() {
                idle = false;
                connection.job_done(now, job.run());
            }
            while let Some(event) = connection.event() {
                idle = false;
                self.on_event(now, &mut connection, event);
            }
            if idle {
                break;
            }
        }
        self.trace.extend(core::iter::from_fn(|| connection.trace()));
        if connection.is_closed() {
            self.stats = connection.stats();
        } else {
            self.connection = Some(connection);
        }
    }

    fn token(&mut self) -> [u8; 8] {
        self.ids.next_u64().to_be_bytes()
    }

    fn on_event(&mut self, now: Time, connection: &mut DfcpConnection, event: DfcpEvent) {
        if event == DfcpEvent::Connected {
            for _ in 1..self.ways.len() {
                let token = self.token();
                connection.open_path(self.config.overhead, false, token);
            }
        }
        match &mut self.role {
            Role::Serve(Serve { part: Some(part), closed, .. }) => {
                part.on_event(now, connection, Some(&event));
                if let DfcpEvent::Closed(reason) = event {
                    *closed = Some(reason);
                }
            }
            Role::Fetch(fetch) => match event {
                DfcpEvent::Connected => {
                    fetch.connected_at = Some(now);
                    fetch.look(now, connection, None);
                    // A counting code carries no bytes, so the size cannot travel in a message: the
                    // server knows it.
                }
                event @ (DfcpEvent::ObjectOpened { .. } | DfcpEvent::Block { .. })
                    if fetch.part.is_some() =>
                {
                    fetch.look(now, connection, Some(&event));
                }
                DfcpEvent::ObjectOpened { channel, shape, .. } => {
                    self.fetch_channel = Some((channel, shape));
                    if shape.size == 0 {
                        fetch.completed_at = Some(now);
                        connection.close(now, 0, "");
                    }
                }
                DfcpEvent::Block { channel, block, data } => {
                    let Some((_, shape)) = self.fetch_channel.filter(|(open, _)| *open == channel)
                    else {
                        return;
                    };
                    if connection.code().carries_bytes() {
                        let expected = self.object.block(block, shape.block_len(block));
                        fetch.wrong_bytes += expected.len().abs_diff(data.len()) as u64;
                        fetch.wrong_bytes +=
                            expected.iter().zip(&data).filter(|(a, b)| a != b).count() as u64;
                    }
                    fetch.blocks += 1;
                    fetch.bytes += u64::from(shape.block_len(block));
                    fetch.block_times.push(now);
                    connection.release_block(now, channel, block);
                    if Some(fetch.blocks) == shape.blocks() {
                        fetch.completed_at = Some(now);
                        connection.close(now, 0, "");
                    }
                }
                DfcpEvent::Closed(reason) => fetch.closed = Some(reason),
                _ => {}
            },
            Role::Serve(serve) => match event {
                DfcpEvent::Connected => {
                    if let Some(size) = serve.unasked {
                        serve.answer(now, connection, size, self.config.params.symbol_size());
                    }
                }
                DfcpEvent::Message { data, .. } => {
                    let Ok(size) = <[u8; 8]>::try_from(&data[..]) else { return };
                    let size = u64::from_be_bytes(size);
                    serve.answer(now, connection, size, self.config.params.symbol_size());
                }
                DfcpEvent::BlockWanted { channel, block } => {
                    let Some(shape) = serve.shape else { return };
                    let data = if connection.code().carries_bytes() {
                        self.object.block(block, shape.block_len(block))
                    } else {
                        Bytes::new()
                    };
                    connection.supply_block(channel, block, data);
                }
                DfcpEvent::Closed(reason) => serve.closed = Some(reason),
                _ => {}
            },
            Role::Carry(carry) => carry.on_event(now, connection, event),
        }
    }
}

impl Node<Payload> for DfcpHost {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        if packet.corrupt {
            return;
        }
        let Payload::Dfcp(dfcp) = packet.payload else { return };
        let dfcp = *dfcp;
        let waits = match &self.role {
            Role::Fetch(_) => false,
            Role::Serve(_) => true,
            Role::Carry(carry) => carry.connects_at.is_none(),
        };
        if self.connection.is_none() && waits && !self.is_finished() {
            let DfcpPacket::Syn { version, source, hello } = &dfcp else { return };
            let id = self.new_id();
            self.connection = Some(DfcpConnection::accept(
                now,
                self.config.clone(),
                id,
                *source,
                *version,
                hello,
                packet.size,
            ));
        } else if let Some(mut connection) = self.connection.take() {
            let path = match &dfcp {
                DfcpPacket::Sealed { path, .. } => *path,
                _ => 0,
            };
            let is_new = usize::from(path) >= connection.path_count();
            connection.handle(now, dfcp, packet.size, packet.ecn);
            if is_new && usize::from(path) < connection.path_count() {
                let token = self.token();
                connection.challenge(path, self.config.overhead, token);
            }
            let has_data = connection.stats().data_packets_received > 0;
            match &mut self.role {
                Role::Fetch(fetch) if has_data => _ = fetch.first_data_at.get_or_insert(now),
                Role::Carry(carry) if has_data => {
                    carry.milestones.first_data.get_or_insert(now);
                }
                _ => {}
            }
            self.connection = Some(connection);
        }
        self.drive(now);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.out.is_empty() {
            self.drive(now);
        }
        self.out.pop_front()
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        let Some(connection) = &self.connection else {
            return self.connects_at().map(|at| (at, "start"));
        };
        let app = match &self.role {
            Role::Carry(carry) if carry.milestones.connected.is_some() => carry.due(),
            Role::Fetch(_) | Role::Serve(_) => self.looks_at().map(|at| (at, "look")),
            _ => None,
        };
        [connection.timeout(), app].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

impl Host for DfcpHost {
    fn counters(&self) -> Counters {
        let stats = self.stats();
        let received = match &self.role {
            Role::Fetch(fetch) => fetch.bytes,
            Role::Serve(_) => 0,
            Role::Carry(carry) => carry.delivered + carry.message_bytes,
        };
        Counters {
            sent: stats.packets_sent,
            retransmitted: stats.repair_symbols_sent,
            lost: stats.packets_lost,
            window: 0,
            in_flight: stats.in_flight,
            srtt: (stats.srtt > Duration::ZERO).then_some(stats.srtt),
            received,
            wasted: stats.symbols_wasted,
            symbols: stats.symbols_received,
        }
    }

    fn milestones(&self) -> Milestones {
        match &self.role {
            Role::Fetch(fetch) => Milestones {
                first_sent: Some(self.start),
                connected: fetch.connected_at,
                first_data: fetch.first_data_at,
                last_data: fetch.completed_at.or(fetch.block_times.last().copied()),
                completed: fetch.completed_at,
                ..Milestones::default()
            },
            Role::Serve(_) => Milestones::default(),
            Role::Carry(carry) => carry.milestones,
        }
    }

    fn is_done(&self) -> bool {
        self.is_finished()
    }

    fn path_metrics(&self) -> Option<PathMetrics> {
        // The connection's own events have them.
        None
    }

    fn keep_events(&mut self) {
        self.config.trace = true;
    }

    fn take_events(&mut self) -> Vec<(Time, QlogEvent)> {
        let events = core::mem::take(&mut self.trace);
        events.iter().map(|event| (event.time, qlog_event(event))).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
