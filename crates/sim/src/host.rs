use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, FlowId, HostId, Node, Packet, PacketId, Port, Stream, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    ChannelId, CloseReason, Config, Connection, ConnectionId, Event, ObjectShape,
    Packet as DfcpPacket, SendOptions, Session, Stats, TraceEvent,
};

use crate::{Clear, PatternObject, Payload};

/// What a host does.
pub enum Role {
    /// Fetches one object and closes.
    Fetch(Fetch),
    /// Answers a request for an object.
    Serve(Serve),
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

    fn answer(&mut self, now: Time, connection: &mut Connection, size: u64, symbol_size: u16) {
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
pub struct Host {
    id: HostId,
    peer: HostId,
    flow: FlowId,
    class: u8,
    config: Config,
    connection: Option<Connection>,
    stats: Stats,
    role: Role,
    object: PatternObject,
    /// Whether every packet passes through the wire format and back.
    wire: bool,
    start: Time,
    ids: Stream,
    packets: u64,
    out: VecDeque<Packet<Payload>>,
    fetch_channel: Option<(ChannelId, ObjectShape)>,
    /// What the connection has told of itself, if it is to.
    trace: Vec<TraceEvent>,
}

impl Host {
    /// A host at rest; a client begins at `start`.
    #[expect(clippy::too_many_arguments, reason = "each is one fact of a host")]
    pub fn new(
        id: HostId,
        peer: HostId,
        flow: FlowId,
        config: Config,
        role: Role,
        object: PatternObject,
        wire: bool,
        start: Time,
    ) -> Self {
        Self {
            ids: Stream::new(object.seed, &format!("host {}", id.0)),
            id,
            peer,
            flow,
            class: 0,
            config,
            connection: None,
            stats: Stats::default(),
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

    /// The same host, whose packets are of another traffic class.
    pub fn with_class(self, class: u8) -> Self {
        Self { class, ..self }
    }

    /// Lets the connection, which has not begun, tell what happens in it.
    pub(crate) fn keep_trace(&mut self) {
        self.config.trace = true;
    }

    /// What the connection has told since the last time.
    pub(crate) fn take_trace(&mut self) -> Vec<TraceEvent> {
        core::mem::take(&mut self.trace)
    }

    /// When its client begins.
    pub const fn start(&self) -> Time {
        self.start
    }

    /// What the host does, and what came of it.
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// The connection's counters; the last ones if it is gone.
    pub fn stats(&self) -> Stats {
        self.connection.as_ref().map_or(self.stats, Connection::stats)
    }

    /// Whether the connection has come and gone.
    pub fn is_finished(&self) -> bool {
        match &self.role {
            Role::Fetch(fetch) => fetch.closed.is_some(),
            Role::Serve(serve) => serve.closed.is_some(),
        }
    }

    fn new_id(&mut self) -> ConnectionId {
        ConnectionId(self.ids.next_u64().to_be_bytes())
    }

    fn pass_wire(packet: DfcpPacket) -> Option<DfcpPacket> {
        let mut bytes = Vec::new();
        Clear.seal(&packet, &mut bytes).ok()?;
        Clear.open(BytesMut::from(&bytes[..])).ok()
    }

    /// Drains the connection: jobs run at once, events go to the application, packets to the
    /// network.
    fn drive(&mut self, now: Time) {
        if self.connection.is_none()
            && matches!(self.role, Role::Fetch(_))
            && now >= self.start
            && !self.is_finished()
        {
            let Role::Fetch(fetch) = &self.role else { return };
            let request = Bytes::copy_from_slice(&fetch.size.to_be_bytes());
            let early = self.config.params.codes().next().is_some_and(Code::carries_bytes);
            let id = self.new_id();
            let early = early.then_some(request);
            self.connection = Some(Connection::connect(now, self.config.clone(), id, early));
        }
        let Some(mut connection) = self.connection.take() else { return };
        loop {
            let mut idle = true;
            while let Some(out) = connection.poll(now) {
                idle = false;
                let packet = if self.wire { Self::pass_wire(out.packet) } else { Some(out.packet) };
                let Some(packet) = packet else { continue };
                self.packets += 1;
                self.out.push_back(Packet {
                    id: PacketId(u64::from(self.id.0) << 48 | self.packets),
                    src: self.id,
                    dst: self.peer,
                    flow: self.flow,
                    size: out.size,
                    segments: 1,
                    ecn: out.ecn,
                    corrupt: false,
                    class: self.class,
                    payload: Payload::Dfcp(Box::new(packet)),
                });
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

    fn on_event(&mut self, now: Time, connection: &mut Connection, event: Event) {
        match &mut self.role {
            Role::Fetch(fetch) => match event {
                Event::Connected => {
                    fetch.connected_at = Some(now);
                    // A counting code carries no bytes, so the size cannot travel in a message: the
                    // server knows it.
                }
                Event::ObjectOpened { channel, shape, .. } => {
                    self.fetch_channel = Some((channel, shape));
                    if shape.size == 0 {
                        fetch.completed_at = Some(now);
                        connection.close(now, 0, "");
                    }
                }
                Event::Block { channel, block, data } => {
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
                Event::Closed(reason) => fetch.closed = Some(reason),
                _ => {}
            },
            Role::Serve(serve) => match event {
                Event::Connected => {
                    if let Some(size) = serve.unasked {
                        serve.answer(now, connection, size, self.config.params.symbol_size());
                    }
                }
                Event::Message { data, .. } => {
                    let Ok(size) = <[u8; 8]>::try_from(&data[..]) else { return };
                    let size = u64::from_be_bytes(size);
                    serve.answer(now, connection, size, self.config.params.symbol_size());
                }
                Event::BlockWanted { channel, block } => {
                    let Some(shape) = serve.shape else { return };
                    let data = if connection.code().carries_bytes() {
                        self.object.block(block, shape.block_len(block))
                    } else {
                        Bytes::new()
                    };
                    connection.supply_block(channel, block, data);
                }
                Event::Closed(reason) => serve.closed = Some(reason),
                _ => {}
            },
        }
    }
}

impl Node<Payload> for Host {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        if packet.corrupt {
            return;
        }
        let Payload::Dfcp(dfcp) = packet.payload else { return };
        let dfcp = *dfcp;
        if self.connection.is_none() && matches!(self.role, Role::Serve(_)) && !self.is_finished() {
            let DfcpPacket::Syn { version, source, hello } = &dfcp else { return };
            let id = self.new_id();
            self.connection = Some(Connection::accept(
                now,
                self.config.clone(),
                id,
                *source,
                *version,
                hello,
                packet.size,
            ));
        } else if let Some(connection) = &mut self.connection {
            connection.handle(now, dfcp, packet.size, packet.ecn);
            let has_data = connection.stats().data_packets_received > 0;
            if let Role::Fetch(fetch) = &mut self.role
                && has_data
            {
                fetch.first_data_at.get_or_insert(now);
            }
        }
        self.drive(now);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.out.is_empty() {
            self.drive(now);
        }
        self.out.pop_front().map(|packet| (0, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        match &self.connection {
            Some(connection) => connection.timeout(),
            None if matches!(self.role, Role::Fetch(_)) && !self.is_finished() => {
                Some((self.start, "start"))
            }
            None => None,
        }
    }
}

/// How long after its start a host's connection may take before it is given up as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);
