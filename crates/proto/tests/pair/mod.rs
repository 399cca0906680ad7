//! Two connections and a path between them, in virtual time.

use std::collections::BinaryHeap;

use fontis_base::{Duration, Ecn, Probability, Rate, Serializer, Stream, Time};
use fontis_proto::dfcp::{ConnectionId, DfcpConfig, DfcpConnection, DfcpEvent, DfcpPacket};

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}

struct Flight {
    at: Time,
    sequence: u64,
    to: Side,
    packet: DfcpPacket,
    size: u32,
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}
impl Eq for Flight {}
impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// What was put on the path.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: Side,
    pub packet: DfcpPacket,
    pub size: u32,
}

/// Decides what is lost: given the packet's place among all sent, and the packet.
pub type Loss = Box<dyn FnMut(u64, &Sent) -> bool>;

/// Alters a packet that a side sends: a peer may say what it likes.
pub type Alter = Box<dyn FnMut(Side, &mut DfcpPacket)>;

/// Another path than the first.
pub struct Way {
    pub one_way: Duration,
    /// What it carries from the client and from the server, with queues that never overflow.
    pub links: [Serializer; 2],
    /// Whether it carries anything at present.
    pub is_up: bool,
    /// The share of packets lost, by chance.
    pub loss: f64,
    pub random: Stream,
    pub known: bool,
}

impl Way {
    pub fn new(one_way: Duration, rate: Rate, loss: f64, seed: u64) -> Self {
        let random = Stream::new(seed, "way");
        let links = [Serializer::new(rate), Serializer::new(rate)];
        Self { one_way, links, is_up: true, loss, random, known: false }
    }
}

/// Two connections and the paths between them.
pub struct Pair {
    pub now: Time,
    pub client: DfcpConnection,
    pub server: Option<DfcpConnection>,
    pub events: Vec<(Side, DfcpEvent)>,
    pub sent: Vec<Sent>,
    pub loss: Loss,
    pub alter: Alter,
    pub one_way: Duration,
    /// The paths after the first.
    pub ways: Vec<Way>,
    /// What the path carries from the client and from the server, with queues that never overflow;
    /// as much as is sent if none.
    pub bottleneck: Option<[Serializer; 2]>,
    /// How often timers of the hosts end; zero is whenever they are to. What arrives wakes a host
    /// at once.
    pub tick: Duration,
    /// Whether packets after the first are asked for by `poll_again`.
    pub again: bool,
    server_config: DfcpConfig,
    flights: BinaryHeap<Flight>,
    sequence: u64,
}

impl Pair {
    /// A client that has just begun to connect over a path of the given one-way delay.
    pub fn new(
        client: DfcpConfig,
        server: DfcpConfig,
        one_way: Duration,
        early: Option<&'static [u8]>,
    ) -> Self {
        let early = early.map(bytes::Bytes::from_static);
        Self {
            now: Time::ZERO,
            client: DfcpConnection::connect(Time::ZERO, client, ConnectionId([1; 8]), early),
            server: None,
            events: Vec::new(),
            sent: Vec::new(),
            loss: Box::new(|_, _| false),
            alter: Box::new(|_, _| {}),
            one_way,
            ways: Vec::new(),
            bottleneck: None,
            tick: Duration::ZERO,
            again: false,
            server_config: server,
            flights: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// A connected pair.
    pub fn connected() -> Self {
        let mut pair = Self::new(
            DfcpConfig::default(),
            DfcpConfig::default(),
            Duration::from_millis(10),
            None,
        );
        pair.run_for(Duration::from_millis(100));
        assert!(pair.client.is_established() && pair.server().is_established());
        pair.events.clear();
        pair
    }

    pub fn server(&mut self) -> &mut DfcpConnection {
        self.server.as_mut().expect("the server has seen a SYN")
    }

    fn drain(&mut self, side: Side) {
        loop {
            let now = self.now;
            let connection = match side {
                Side::Client => Some(&mut self.client),
                Side::Server => self.server.as_mut(),
            };
            let Some(connection) = connection else { return };
            let mut out = Vec::new();
            let mut next = connection.poll(now);
            while let Some(outgoing) = next {
                out.push(outgoing);
                next = if self.again { connection.poll_again(now) } else { connection.poll(now) };
            }
            let mut idle = out.is_empty();
            while let Some(job) = connection.job() {
                idle = false;
                connection.job_done(now, job.run());
            }
            while let Some(event) = connection.event() {
                idle = false;
                self.events.push((side, event));
            }
            for mut outgoing in out {
                (self.alter)(side, &mut outgoing.packet);
                let sent =
                    Sent { at: now, from: side, packet: outgoing.packet, size: outgoing.size };
                let lost = (self.loss)(self.sent.len() as u64, &sent);
                self.sent.push(sent.clone());
                if lost {
                    continue;
                }
                let to = if side == Side::Client { Side::Server } else { Side::Client };
                if let Some(way) = usize::from(outgoing.path).checked_sub(1) {
                    let way = &mut self.ways[way];
                    let link = &mut way.links[usize::from(side == Side::Server)];
                    let left = link.send(self.now, u64::from(sent.size));
                    if way.is_up && !way.random.chance(Probability::new(way.loss)) {
                        let at = left + way.one_way;
                        self.inject(to, at, sent.packet, sent.size);
                    }
                    continue;
                }
                let left = match &mut self.bottleneck {
                    Some(ways) => {
                        ways[usize::from(side == Side::Server)].send(self.now, u64::from(sent.size))
                    }
                    None => self.now,
                };
                self.inject(to, left + self.one_way, sent.packet, sent.size);
            }
            if idle {
                return;
            }
        }
    }

    /// Puts a packet on the path that arrives at `at`.
    pub fn inject(&mut self, to: Side, at: Time, packet: DfcpPacket, size: u32) {
        self.sequence += 1;
        self.flights.push(Flight { at, sequence: self.sequence, to, packet, size });
    }

    fn arrive(&mut self, flight: Flight) {
        match flight.to {
            Side::Client => self.client.handle(self.now, flight.packet, flight.size, Ecn::NotEct),
            Side::Server => match (&mut self.server, &flight.packet) {
                (Some(server), packet) => {
                    if let DfcpPacket::Sealed { path, .. } = packet
                        && let Some(way) = usize::from(*path).checked_sub(1)
                        && !core::mem::replace(&mut self.ways[way].known, true)
                    {
                        server.handle(self.now, flight.packet, flight.size, Ecn::NotEct);
                        server.challenge(way as u8 + 1, 28, [way as u8 + 100; 8]);
                        return;
                    }
                    server.handle(self.now, flight.packet, flight.size, Ecn::NotEct);
                }
                (None, DfcpPacket::Syn { version, source, hello }) => {
                    let id = ConnectionId([2; 8]);
                    let config = self.server_config.clone();
                    let server = DfcpConnection::accept(
                        self.now,
                        config,
                        id,
                        *source,
                        *version,
                        hello,
                        flight.size,
                    );
                    self.server = Some(server);
                }
                (None, _) => {}
            },
        }
    }

    /// Lets virtual time pass.
    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        let mut awake = [Side::Client, Side::Server].to_vec();
        loop {
            for side in awake.drain(..) {
                self.drain(side);
            }
            let woken = [
                (Side::Client, self.client.timeout()),
                (Side::Server, self.server.as_ref().and_then(DfcpConnection::timeout)),
            ]
            .map(|(side, timeout)| (side, timeout.map(|(at, _)| self.woken(at))));
            let arrival = self.flights.peek().map(|flight| flight.at);
            let Some(at) = woken.iter().filter_map(|(_, at)| *at).chain(arrival).min() else {
                self.now = until;
                return;
            };
            if at > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(at);
            let now = self.now;
            let is_woken = |at: Option<Time>| at.is_some_and(|at| at <= now);
            awake.extend(woken.iter().filter(|(_, at)| is_woken(*at)).map(|(side, _)| *side));
            while self.flights.peek().is_some_and(|flight| flight.at <= self.now) {
                let Some(flight) = self.flights.pop() else { break };
                if !awake.contains(&flight.to) {
                    awake.push(flight.to);
                }
                self.arrive(flight);
            }
        }
    }

    /// When a host wakes that asked for this time.
    fn woken(&self, at: Time) -> Time {
        Time::from_nanos(at.as_nanos().next_multiple_of(self.tick.as_nanos().max(1)))
    }

    /// Events of one side.
    pub fn events_of(&self, side: Side) -> Vec<&DfcpEvent> {
        self.events.iter().filter(|(of, _)| *of == side).map(|(_, event)| event).collect()
    }
}
