use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fontis_base::{Duration, FlowId, Time};
use fontis_net::Delivery;
use mio::{Events, Interest, Poll, Token, Waker};

use super::client::Clients;
use super::path::{Direction, Path};
use super::{RelayConfig, RelayError, RelayMonitor, RelayStats, Stopper, system};
use crate::lateness::LatenessRecorder;
use fontis::udp::{Alarm, Batch, Clock, Socket, ecn};

/// Tokens of clients are flows, which are 32 bits wide; these lie above.
const LISTENER: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
const STOP: Token = Token(usize::MAX - 2);

/// The interval of publishing changed statistics.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// A relay between clients and one server.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    clock: Clock,
    poll: Poll,
    alarm: Alarm,
    stopper: Stopper,
    monitor: RelayMonitor,
    listener: Socket,
    local_addr: SocketAddr,
    clients: Clients,
    path: Path,
    batch: Batch,
    /// Sockets that may hold more than was read.
    ready: Vec<Token>,
    stats: RelayStats,
    lateness: LatenessRecorder,
    /// The time of the next publication of changed statistics.
    publish_at: Option<Time>,
    forget_at: Time,
}

impl Relay {
    /// Takes the address to listen on; time starts here.
    pub fn bind(config: RelayConfig) -> Result<Self, RelayError> {
        let failed = |source| RelayError::Listen { address: config.listen, source };
        let mut listener = Socket::bind(config.listen).map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        let poll = Poll::new().map_err(system("create a poll"))?;
        let register = system("watch the listening socket");
        poll.registry()
            .register(listener.source(), LISTENER, Interest::READABLE)
            .map_err(register)?;
        let waker = Waker::new(poll.registry(), STOP).map_err(system("create a waker"))?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(system("create a timer"))?;
        Ok(Self {
            clock: Clock::start(),
            alarm,
            stopper: Stopper { stop: Arc::new(AtomicBool::new(false)), waker: Arc::new(waker) },
            monitor: RelayMonitor::default(),
            listener,
            local_addr,
            clients: Clients::new(config.max_clients),
            path: Path::new(&config),
            batch: Batch::new(),
            ready: Vec::new(),
            stats: RelayStats::default(),
            lateness: LatenessRecorder::new(),
            publish_at: None,
            forget_at: Time::ZERO + config.idle,
            poll,
            config,
        })
    }

    /// The address for clients.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The handle that stops the relay.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The handle that reads the relay's statistics.
    pub fn monitor(&self) -> RelayMonitor {
        self.monitor.clone()
    }

    /// Relays until it is stopped, or the system fails.
    pub fn run(&mut self) -> Result<(), RelayError> {
        let mut events = Events::with_capacity(256);
        while !self.stopper.stop.load(Ordering::Acquire) {
            self.wait(&mut events)?;
            self.receive();
            self.deliver();
            self.keep_house();
        }
        self.publish();
        Ok(())
    }

    /// Sleeps until something arrives or is due.
    fn wait(&mut self, events: &mut Events) -> Result<(), RelayError> {
        let now = self.clock.now();
        let forget_at = (self.clients.len() > 0).then_some(self.forget_at);
        let next = [self.path.next_delivery(), self.publish_at, forget_at];
        let next = next.into_iter().flatten().min();
        let next = if self.ready.is_empty() { next } else { Some(now) };
        let timeout = self.alarm.set(now, next).map_err(system("set a timer"))?;
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(system("wait for datagrams")(error));
            }
            _ => {}
        }
        for event in events.iter() {
            let token = event.token();
            if token != ALARM && token != STOP && !self.ready.contains(&token) {
                self.ready.push(token);
            }
        }
        Ok(())
    }

    /// Reads one batch from each socket that has something, so that a busy one does not hold up the
    /// others.
    fn receive(&mut self) {
        let mut ready = core::mem::take(&mut self.ready);
        ready.retain(|token| match *token {
            LISTENER => self.receive_from_clients(),
            Token(flow) => self.receive_from_server(FlowId(flow as u32)),
        });
        self.ready = ready;
    }

    /// Moves a batch from the clients onto the link to the server; says whether there may be more.
    fn receive_from_clients(&mut self) -> bool {
        let more = self.listener.receive(&mut self.batch);
        let arrival = self.clock.arrivals();
        for (meta, bytes) in self.batch.datagrams() {
            let at = arrival(meta.timestamp);
            let local_ip = self.local_addr.ip().is_unspecified().then_some(meta.dst_ip).flatten();
            let (to, registry) = (self.config.to, self.poll.registry());
            match self.clients.flow_of(at, meta.addr, local_ip, to, registry) {
                Ok(Some(flow)) => self.path.enter(Direction::Up, at, flow, ecn(meta), bytes),
                // No room, or no more sockets to be had from the system.
                Ok(None) | Err(_) => self.stats.refused += 1,
            }
        }
        more
    }

    /// Moves a batch from the server onto the link to the clients; says whether there may be more.
    fn receive_from_server(&mut self, flow: FlowId) -> bool {
        let Some(client) = self.clients.get(flow) else { return false };
        let more = client.upstream.receive(&mut self.batch);
        let arrival = self.clock.arrivals();
        let to = self.config.to;
        for (meta, bytes) in self.batch.datagrams() {
            let from = meta.addr;
            if from.port() != to.port() || from.ip().to_canonical() != to.ip().to_canonical() {
                self.stats.strangers += 1;
                continue;
            }
            let at = arrival(meta.timestamp);
            client.seen = client.seen.max(at);
            self.path.enter(Direction::Down, at, flow, ecn(meta), bytes);
        }
        more
    }

    /// Sends everything that is due.
    fn deliver(&mut self) {
        let now = self.clock.now();
        while let Some(Delivery { at, packet }) = self.path.deliver(Direction::Up, now) {
            let to = self.config.to;
            let client = self.clients.get(packet.flow);
            let sent = client.map(|c| c.upstream.send(to, None, packet.ecn, &packet.payload, None));
            self.note(at, sent);
        }
        while let Some(Delivery { at, packet }) = self.path.deliver(Direction::Down, now) {
            let (listener, payload) = (&self.listener, &packet.payload);
            let client = self.clients.get(packet.flow);
            let sent =
                client.map(|c| listener.send(c.address, c.local_ip, packet.ecn, payload, None));
            self.note(at, sent);
        }
    }

    /// Counts a datagram that was due at `due` and that the system has taken, refused, or had no
    /// one to send to.
    fn note(&mut self, due: Time, sent: Option<io::Result<()>>) {
        if !matches!(sent, Some(Ok(()))) {
            self.stats.unsent += 1;
        }
        self.lateness.record(self.clock.now().since(due));
    }

    fn keep_house(&mut self) {
        let now = self.clock.now();
        if now >= self.forget_at {
            self.clients.forget_idle(now, self.config.idle, self.poll.registry());
            self.forget_at = now + (self.config.idle / 8).max(Duration::from_millis(1));
        }
        match self.publish_at {
            Some(at) if at <= now => self.publish(),
            Some(_) => {}
            None => self.publish_at = Some(now + PUBLISH_EVERY),
        }
    }

    fn publish(&mut self) {
        self.publish_at = None;
        self.monitor.publish(RelayStats {
            up: self.path.link(Direction::Up).stats(),
            down: self.path.link(Direction::Down).stats(),
            oversize: self.path.oversize,
            clients: self.clients.len() as u64,
            clients_total: self.clients.total(),
            lateness: self.lateness.summary(),
            ..self.stats
        });
    }
}
