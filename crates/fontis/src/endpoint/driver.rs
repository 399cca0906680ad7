use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Ecn, Rate, Time};
use fontis_proto::dfcp::{
    ConnectionId, DfcpConfig, DfcpConnection as Machine, DfcpPacket, Frames, MemoryBudget,
    OpenError, ResetToken,
};
use hashbrown::HashMap;
use mio::{Poll, Token, Waker};
use tokio::sync::{mpsc as async_mpsc, oneshot};

use super::census::Census;
use super::config::EndpointConfig;
use super::deadlines::Deadlines;
use super::error::{BindError, CODE_TOO_MANY, ConnectError};
use super::handle::Handle;
use super::limits::Admission;
use super::outbox::{Outbox, Target};
use super::reset_secret::reset_secret;
use super::router::Router;
use super::shares::Shares;
use super::slot::{Protection, Slot, Waiting};
use super::sockets::{Bound, MAIN, Sockets};
use super::syn::Syn;
use super::unconfirmed::Network;
use super::way::{Way, overhead};
use crate::connection::Connection;
use crate::protection::{Header, Initiator, Opened, SYNACK, header, reset_token, sealed_for};
use crate::qlog::Qlog;
use crate::random::random;
use crate::task::compute;
use crate::udp::{Alarm, AnySocket as Socket, Batch, Clock, ecn};

const WAKER: Token = Token(0);
const ALARM: Token = Token(1);
const FIRST_SOCKET: usize = 2;

/// Packets that one connection may send before others have their turn.
const PACKETS_IN_TURN: u32 = 256;
/// Batches read before packets are sent again.
const READS_IN_TURN: u32 = 8;
/// The shortest interval of storing the symbols of an incomplete block, three times as long where
/// they are many: from 560 Mbit/s on a block takes less. What came since is lost when a receiver is
/// killed.
const CHECKPOINT_EVERY: Duration = Duration::from_millis(5);

/// A closure that the driver thread runs.
pub(super) type Command = Box<dyn FnOnce(&mut Driver, Time) + Send>;
/// The caller of `connect`.
type ConnectReply = oneshot::Sender<Result<Connection, ConnectError>>;
/// The reason that a client is told when there are too many.
const TOO_MANY: &str = "it has as many connections as it takes: try again later";

/// The source, time and ECN mark of a datagram.
#[derive(Clone, Copy)]
struct Origin {
    at: Time,
    socket: usize,
    from: SocketAddr,
    local: Option<IpAddr>,
    ecn: Ecn,
}

/// The thread that moves packets.
pub(super) struct Driver {
    #[cfg(test)]
    pub(super) signal: Option<crate::whole::net::Signal>,
    pub(super) clock: Clock,
    pub(super) poll: Poll,
    pub(super) alarm: Alarm,
    pub(super) sockets: Sockets,
    /// The address that the endpoint is bound to.
    pub(super) local: IpAddr,
    /// The interfaces that connections may use beside the one that the system chooses.
    pub(super) bound: Vec<Bound>,
    pub(super) outbox: Outbox,
    /// The datagrams of a read while it is handled, with their slots; `None` stands for one that is
    /// not opened where it is.
    opened: Vec<Option<(u64, Result<Opened, OpenError>)>>,
    pub(super) config: EndpointConfig,
    pub(super) reset_secret: [u8; 32],
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) incoming: async_mpsc::UnboundedSender<Connection>,
    pub(super) slots: HashMap<u64, Slot>,
    pub(super) next_slot: u64,
    pub(super) by_id: HashMap<ConnectionId, u64>,
    /// Peers choose these keys, so they are hashed in a way that none can foresee.
    pub(super) by_syn: std::collections::HashMap<(SocketAddr, ConnectionId), u64>,
    pub(super) admission: Admission,
    /// The connections by the tokens of their peers' resets. Peers choose these, too.
    pub(super) by_token: std::collections::HashMap<ResetToken, u64>,
    pub(super) deadlines: Deadlines,
    pub(super) stopping: bool,
    pub(super) handle: Option<Handle>,
    pub(super) touched: Vec<u64>,
    pub(super) limit: Option<Rate>,
    /// The number of connections that send, and of those that receive.
    pub(super) flows: [usize; 2],
    /// Whether there is a limit, so that they are counted.
    pub(super) is_shared: bool,
    /// Whether the limit, or what shares it, has changed.
    pub(super) shares_changed: bool,
    /// The memory of all connections.
    pub(super) budget: MemoryBudget,
    pub(super) census: Census,
    /// Connections that clients have made and confirmed.
    pub(super) accepted: u64,
}

impl Driver {
    pub(super) fn bind(
        address: SocketAddr,
        config: EndpointConfig,
        commands: mpsc::Receiver<Command>,
        incoming: async_mpsc::UnboundedSender<Connection>,
    ) -> Result<(Self, Arc<Waker>, SocketAddr), BindError> {
        let socket = match &config.device {
            Some(device) => Socket::bind_to_device(address, device),
            None => Socket::bind(address),
        };
        let socket = socket.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            _ => BindError::Io { address, source },
        })?;
        let local = socket.local_addr().map_err(|source| BindError::Io { address, source })?;
        let poll = Poll::new().map_err(BindError::System)?;
        let registry = poll.registry();
        let sockets = Sockets::new(registry, socket, FIRST_SOCKET).map_err(BindError::System)?;
        let waker = Arc::new(Waker::new(registry, WAKER).map_err(BindError::System)?);
        let alarm = Alarm::new(registry, ALARM).map_err(BindError::System)?;
        let driver = Self {
            #[cfg(test)]
            signal: sockets.get(MAIN).and_then(Socket::signal),
            clock: Clock::start(),
            alarm,
            sockets,
            local: local.ip(),
            bound: Vec::new(),
            outbox: Outbox::new(),
            opened: Vec::new(),
            reset_secret: reset_secret(&config.secret, local),
            budget: MemoryBudget::new(config.memory),
            census: Census::new(config.connections),
            config,
            commands,
            incoming,
            slots: HashMap::new(),
            next_slot: 0,
            by_id: HashMap::new(),
            by_syn: std::collections::HashMap::new(),
            by_token: std::collections::HashMap::new(),
            deadlines: Deadlines::default(),
            admission: Admission::new(),
            stopping: false,
            handle: None,
            touched: Vec::new(),
            limit: None,
            flows: [0; 2],
            is_shared: false,
            shares_changed: false,
            accepted: 0,
            poll,
        };
        Ok((driver, waker, local))
    }

    /// The endpoint is gone: these connections are closed, and the thread ends with the last of
    /// all.
    pub(super) fn stop(&mut self, now: Time, closes: impl Fn(&Slot) -> bool) {
        self.stopping = true;
        for (id, slot) in self.slots.iter_mut().filter(|(_, slot)| closes(slot)) {
            slot.machine.close(slot.latest.max(now), 0, "");
            self.touched.push(*id);
        }
    }

    /// Runs `act` on a connection.
    pub(super) fn with(&mut self, id: u64, now: Time, act: impl FnOnce(&mut Slot, Time)) {
        if let Some(slot) = self.slots.get_mut(&id) {
            let now = slot.latest.max(now);
            act(slot, now);
            self.touched.push(id);
        }
    }

    pub(super) fn connect(
        &mut self,
        now: Time,
        handle: Handle,
        remote: SocketAddr,
        key: [u8; 32],
        early: Option<Bytes>,
        (reply, doubts): (ConnectReply, oneshot::Sender<()>),
    ) {
        let id = self.new_id();
        let token = self.config.tokens.as_ref().and_then(|store| store.take(&key, remote.ip()));
        let config = DfcpConfig { token: token.map(Bytes::from), ..self.transport(remote, id) };
        let machine = Machine::connect(now, config, id, early);
        let session = Initiator::new(*self.config.secret, key, self.config.psk.as_deref().copied())
            .with_key_log(self.config.key_log.clone());
        let (router, inboxes) = Router::new();
        let slot_id = self.next_slot;
        let connection = Connection::new(handle, slot_id, remote, key, false, inboxes);
        let slot = Slot {
            machine,
            router,
            protection: Protection::Initiator(Box::new(session)),
            ways: vec![Some(Way::new(MAIN, remote, None))],
            opens_paths: true,
            waiting: Some(Waiting::Connect(Box::new(move |result| {
                let _ = reply.send(result.map(|()| connection));
            }))),
            latest: now,
            syn: None,
            mark: None,
            is_doubted: false,
            doubts: Some(doubts),
            unconfirmed_until: None,
            scheduled: None,
            reset_token: None,
            flows: [false; 2],
            network: None,
            ends_on_refusal: false,
            qlog: self.qlog(id, "client"),
            counted: true,
            forged: 0,
            early: Vec::new(),
            peer: key,
            token: None,
            token_kept: None,
            token_given: None,
            carries: false,
            shares: Shares::default(),
            writers: Vec::new(),
        };
        self.insert(id, slot);
    }

    pub(super) fn new_id(&self) -> ConnectionId {
        ConnectionId(random())
    }

    pub(super) fn transport(&self, remote: SocketAddr, id: ConnectionId) -> DfcpConfig {
        let overhead = overhead(remote);
        let transport = self.config.transport.clone();
        let token = reset_token(&self.reset_secret, id);
        DfcpConfig {
            overhead,
            params: transport.params.clone().with_reset_token(token),
            checkpoint: Some(CHECKPOINT_EVERY),
            trace: self.config.qlog.is_some(),
            budget: Some(self.budget.clone()),
            holds_messages: true,
            left_out: Some(u64::from_ne_bytes(random())),
            ..transport
        }
    }

    pub(super) fn qlog(&self, id: ConnectionId, role: &str) -> Option<Qlog> {
        Qlog::create(self.config.qlog.as_deref()?, id, role, self.clock.now()).ok()
    }

    /// Reads the waiting datagrams; returns true if there may be more.
    pub(super) fn receive(&mut self, batch: &mut Batch) -> bool {
        let mut any = false;
        for socket in 0..self.sockets.len() {
            any |= self.receive_from(socket, batch);
        }
        any
    }

    fn receive_from(&mut self, socket: usize, batch: &mut Batch) -> bool {
        for _ in 0..READS_IN_TURN {
            let Some(open) = self.sockets.get(socket) else { return false };
            let more = open.receive(batch);
            let arrival = self.clock.arrivals();
            batch.handle(|meta, bytes| {
                let (at, local) = (arrival(meta.timestamp), meta.dst_ip);
                let origin = Origin { at, socket, from: meta.addr, local, ecn: ecn(meta) };
                self.read(origin, meta.len, meta.stride, bytes)
            });
            if !more {
                return false;
            }
        }
        true
    }

    /// Handles what one read has brought in the first `length` of `bytes`: datagrams of `stride`
    /// bytes, of which the last may be shorter. Returns all of `bytes`.
    fn read(&mut self, origin: Origin, length: usize, stride: usize, mut bytes: BytesMut) -> Bytes {
        let (length, stride) = (length.min(bytes.len()), stride.max(1));
        let mut opened = std::mem::take(&mut self.opened);
        let mut frames = Frames::new();
        let mut last = None;
        opened.extend(bytes[..length].chunks_mut(stride).map(|one| self.open(&mut last, one)));
        let bytes = bytes.freeze();
        for (start, opened) in (0..length).step_by(stride).zip(opened.drain(..)) {
            let size = stride.min(length - start);
            match opened {
                Some((slot, Ok(opened))) => {
                    match opened.decode(&bytes, start, &mut frames) {
                        Ok(()) => self.packet(origin, slot, opened.path(), size, |slot, size| {
                            slot.handle_frames(origin.at, opened, &frames, size, origin.ecn);
                        }),
                        Err(_) => self.forged(slot),
                    }
                    frames.clear();
                }
                Some((slot, Err(_))) => self.forged(slot),
                None => self.datagram(origin, &bytes[start..start + size]),
            }
        }
        self.opened = opened;
        bytes
    }

    /// Opens a datagram where it is if it follows the handshake and its connection has the keys;
    /// else it stays as it is. `last` is the connection of the one before, which mostly is the
    /// same.
    fn open(
        &mut self,
        last: &mut Option<(ConnectionId, u64)>,
        datagram: &mut [u8],
    ) -> Option<(u64, Result<Opened, OpenError>)> {
        let id = sealed_for(datagram)?;
        let slot = match *last {
            Some((same, slot)) if same == id => slot,
            _ => *self.by_id.get(&id)?,
        };
        *last = Some((id, slot));
        match self.slots.get_mut(&slot)?.protection.open_in_place(datagram) {
            Err(OpenError::NoKeys) => None,
            opened => Some((slot, opened)),
        }
    }

    fn datagram(&mut self, origin: Origin, bytes: &[u8]) {
        let Origin { at, socket, from, local, .. } = origin;
        let Some(header) = header(bytes) else { return self.foreigner(at, from, local, bytes) };
        match header {
            Header::Syn { cookie, version, source } => {
                let syn = Syn { socket, from, local, cookie, version, source };
                self.syn(at, &syn, &bytes[syn.at()..]);
            }
            Header::For(id) => match self.by_id.get(&id).copied() {
                Some(slot) => self.for_slot(origin, slot, bytes),
                None => self.stranger(at, from, local, id, bytes.len()),
            },
            Header::VersionNegotiation { destination, versions } => {
                self.hand(
                    at,
                    destination,
                    DfcpPacket::VersionNegotiation { destination, versions },
                );
            }
            Header::Reset { destination, token } => {
                // A reset names the identifier that this side had sent to, so it is found by the
                // token.
                if let Some(slot) = self.by_token.get(&token).copied() {
                    self.with(slot, at, |slot, now| {
                        slot.machine.handle(
                            now,
                            DfcpPacket::Reset { destination, token },
                            0,
                            Ecn::NotEct,
                        );
                    });
                }
            }
            Header::Cookie { destination, cookie } => {
                if let Some(id) = self.by_id.get(&destination).copied() {
                    self.prove(id, &cookie);
                }
            }
            Header::UnknownKey { destination } => {
                if let Some(slot) = self.by_id.get(&destination).copied() {
                    self.with(slot, at, |slot, _| {
                        // Anybody could have sent it.
                        slot.doubt();
                    });
                }
            }
        }
    }

    fn hand(&mut self, at: Time, id: ConnectionId, packet: DfcpPacket) {
        if let Some(slot) = self.by_id.get(&id).copied() {
            self.with(slot, at, |slot, now| slot.machine.handle(now, packet, 0, Ecn::NotEct));
        }
    }

    /// A datagram of a connection that is not opened in place: a SYNACK, or one that came before
    /// the keys.
    fn for_slot(&mut self, origin: Origin, id: u64, bytes: &[u8]) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        match slot.protection.open(bytes.into()) {
            Ok(packet) => {
                let path = match &packet {
                    DfcpPacket::Sealed { path, .. } => *path,
                    _ => 0,
                };
                return self.packet(origin, id, path, bytes.len(), |slot, size| {
                    slot.handle(origin.at, packet, size, origin.ecn);
                });
            }
            Err(_) if slot.waiting.is_some() && bytes.first() == Some(&SYNACK) => {
                // A SYNACK that does not open: another pre-shared key, or somebody's lie.
                slot.forged += 1;
                slot.doubt();
            }
            Err(_) => {
                slot.forged += u64::from(!slot.keep_early(origin.at, origin.ecn, bytes));
            }
        }
        self.touch(id);
    }

    /// Handles a packet in a datagram of `size` bytes; `handle` takes its size at the IP layer.
    fn packet(
        &mut self,
        origin: Origin,
        id: u64,
        path: u8,
        size: usize,
        handle: impl FnOnce(&mut Slot, u32),
    ) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let Origin { at, socket, from, local, .. } = origin;
        let overhead = overhead(from);
        let elsewhere = slot.way(path).is_none_or(|way| way.remote != from);
        let before = elsewhere.then(|| slot.machine.stats().packets_received);
        handle(slot, size as u32 + overhead);
        // A packet that came before is no news of where the peer is: anybody can repeat it.
        if before.is_some_and(|before| slot.machine.stats().packets_received > before) {
            slot.follow(at, path, Way::new(socket, from, local));
        }
        if !slot.early.is_empty() {
            slot.take_early(overhead);
        }
        self.touch(id);
    }

    fn forged(&mut self, id: u64) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.forged += 1;
        }
    }

    fn touch(&mut self, id: u64) {
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// Runs the due work of connections; returns the time of the next.
    pub(super) fn drive(&mut self, now: Time) -> Option<Time> {
        self.outbox.retry(&self.sockets);
        let mut due = std::mem::take(&mut self.touched);
        self.count_flows(&due);
        self.share(now);
        due.append(&mut self.touched);
        due.extend(self.deadlines.due(now));
        due.sort_unstable();
        due.dedup();
        for id in &due {
            self.drive_slot(now, *id);
            self.schedule(*id);
        }
        self.count_flows(&due);
        self.outbox.flush(&self.sockets);
        if self.outbox.is_blocked() {
            // The socket's next writable event wakes the thread; until then only what arrives
            // matters.
            return Some(now + Duration::from_millis(1));
        }
        self.deadlines.first()
    }

    fn drive_slot(&mut self, now: Time, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let now = slot.latest.max(now);
        slot.latest = now;
        if slot.unconfirmed_until.is_some_and(|until| until <= now) {
            self.forget(id);
            return;
        }
        let mut packets = 0;
        loop {
            let mut idle = true;
            let mut again = false;
            while packets < PACKETS_IN_TURN && !self.outbox.is_blocked() {
                let next =
                    if again { slot.machine.poll_again(now) } else { slot.machine.poll(now) };
                let Some(outgoing) = next else { break };
                again = true;
                idle = false;
                packets += 1;
                let protection = &mut slot.protection;
                let write = |out: &mut Vec<u8>| protection.seal(&outgoing.packet, out).is_ok();
                let way = slot.ways.get(usize::from(outgoing.path)).and_then(Option::as_ref);
                let Some(way) = way else { continue };
                let (to, from) = match &way.candidate {
                    Some(candidate) if outgoing.probe => (candidate.address, candidate.local_ip),
                    _ => (way.remote, way.local_ip),
                };
                let target = Target { socket: way.socket, to, from };
                self.outbox.push(&self.sockets, target, outgoing.ecn, outgoing.alone, write);
            }
            while let Some(job) = slot.machine.job() {
                idle = false;
                let Some(handle) = self.handle.clone() else { continue };
                compute(move || {
                    let done = job.run();
                    handle.call(id, move |slot, now| slot.machine.job_done(now, done));
                });
            }
            idle &= !slot.route_events(now);
            if idle || packets >= PACKETS_IN_TURN {
                break;
            }
        }
        if let Some(known) = slot.news_for_token(now) {
            let tokens = &self.admission.tokens;
            slot.machine.give_token(now, tokens.make(now, slot.remote().ip(), &slot.peer, known));
            self.touched.push(id);
        }
        if let Some((token, store)) = slot.token_to_keep(now).zip(self.config.tokens.as_ref()) {
            // Without it the next connection only takes longer.
            let _ = store.put(&slot.peer, slot.remote().ip(), &token);
        }
        if !slot.counted && slot.machine.is_established() {
            slot.counted = true;
            slot.unconfirmed_until = None;
            self.admission.leave(id);
            if let Some(mark) = slot.mark.take() {
                self.admission.replays.remember(mark);
            }
            self.accepted += 1;
            let network = Network::from(slot.remote().ip());
            if self.census.enter(network) {
                slot.network = Some(network);
            } else {
                slot.machine.close(now, CODE_TOO_MANY, TOO_MANY);
                self.touched.push(id);
            }
        }
        slot.wake_writers();
        slot.write_trace();
        let opens_paths = slot.opens_paths && !self.bound.is_empty();
        if slot.machine.is_closed() {
            self.remove(id);
        } else if packets >= PACKETS_IN_TURN {
            self.touched.push(id);
        }
        if opens_paths {
            self.open_paths(id);
        }
    }
}
