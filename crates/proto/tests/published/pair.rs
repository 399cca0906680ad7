use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Stream, Time};
use fontis_proto::published::{
    PublishedConfig, PublishedEndpoint, PublishedEvent, PublishedPacket,
};

/// Whether a packet is lost, and whether it comes from the client.
type Lose = dyn FnMut(&PublishedPacket, bool) -> bool;

/// Two endpoints and a path of fixed delay, behind a queue if there is a line.
pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) client: PublishedEndpoint,
    pub(crate) server: Option<PublishedEndpoint>,
    pub(crate) config: PublishedConfig,
    pub(crate) delay: Duration,
    /// The rate of a line from the client to the server, and how long a packet waits for it at
    /// most: what would wait longer is lost.
    pub(crate) line: Option<(Rate, Duration)>,
    line_free: Time,
    /// Says of each packet whether it is lost.
    pub(crate) lose: Box<Lose>,
    /// Whether packets pass through their bytes.
    pub(crate) wire: bool,
    on_way: VecDeque<(Time, bool, PublishedPacket)>,
    pub(crate) events: Vec<(Time, bool, PublishedEvent)>,
    /// Packets sent, by the client and by the server.
    pub(crate) sent: [Vec<(Time, PublishedPacket)>; 2],
}

pub(crate) const SEED: [u32; 3] = [12_345, 67_890, 13_579];

impl Pair {
    pub(crate) fn new(config: PublishedConfig) -> Self {
        Self {
            now: Time::ZERO,
            client: PublishedEndpoint::connect(Time::ZERO, config.clone(), SEED),
            server: None,
            config,
            delay: Duration::from_millis(10),
            line: None,
            line_free: Time::ZERO,
            lose: Box::new(|_, _| false),
            wire: false,
            on_way: VecDeque::new(),
            events: Vec::new(),
            sent: [Vec::new(), Vec::new()],
        }
    }

    /// Loses packets at random, both ways.
    pub(crate) fn losing(config: PublishedConfig, seed: u64, share: f64) -> Self {
        let mut stream = Stream::new(seed, "losses");
        Self { lose: Box::new(move |_, _| stream.unit() < share), ..Self::new(config) }
    }

    /// Runs until `end`, or until nothing is left to happen.
    pub(crate) fn run_until(&mut self, end: Duration) {
        let end = Time::ZERO + end;
        loop {
            self.drain(true);
            self.drain(false);
            let arrival = self.on_way.front().map(|(at, ..)| *at);
            let timer = |endpoint: &PublishedEndpoint| endpoint.timeout().map(|(at, _)| at);
            let timers = [timer(&self.client), self.server.as_ref().and_then(timer)];
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while self.on_way.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, from_client, packet) = self.on_way.pop_front().expect("there is one");
                self.deliver(from_client, &packet);
            }
        }
        self.now = self.now.max(end);
    }

    fn deliver(&mut self, from_client: bool, packet: &PublishedPacket) {
        let bytes = self.wire.then(|| {
            let mut bytes = Vec::new();
            packet.encode(&[], &mut bytes);
            PublishedPacket::decode(&[], &bytes).expect("our own bytes")
        });
        let packet = bytes.as_ref().unwrap_or(packet);
        if !from_client {
            return self.client.handle(self.now, packet, false);
        }
        match &mut self.server {
            Some(server) => server.handle(self.now, packet, false),
            None => {
                self.server =
                    PublishedEndpoint::accept(self.now, self.config.clone(), SEED, packet);
            }
        }
    }

    /// When a packet leaves the line; `None` if it does not fit into its queue.
    fn cross_line(&mut self, size: u32) -> Option<Time> {
        let Some((rate, longest)) = self.line else { return Some(self.now) };
        let start = self.line_free.max(self.now);
        if start.since(self.now) > longest {
            return None;
        }
        self.line_free = start + rate.time_for(u64::from(size));
        Some(self.line_free)
    }

    fn drain(&mut self, is_client: bool) {
        let now = self.now;
        while let Some(packet) = self.side(is_client).and_then(|side| side.poll(now)) {
            let lost = (self.lose)(&packet, is_client);
            self.sent[usize::from(!is_client)].push((self.now, packet.clone()));
            let left = if is_client { self.cross_line(packet.size()) } else { Some(self.now) };
            if let (Some(left), false) = (left, lost) {
                let at = left + self.delay;
                let place = self.on_way.partition_point(|(other, ..)| *other <= at);
                self.on_way.insert(place, (at, is_client, packet));
            }
        }
        while let Some(event) = self.side(is_client).and_then(PublishedEndpoint::event) {
            self.events.push((self.now, is_client, event));
        }
    }

    fn side(&mut self, is_client: bool) -> Option<&mut PublishedEndpoint> {
        if is_client { Some(&mut self.client) } else { self.server.as_mut() }
    }

    pub(crate) fn server(&self) -> &PublishedEndpoint {
        self.server.as_ref().expect("there is a server")
    }

    pub(crate) fn saw(&self, is_client: bool, event: PublishedEvent) -> Option<Time> {
        let found =
            |(_, of, what): &&(Time, bool, PublishedEvent)| *of == is_client && *what == event;
        self.events.iter().find(found).map(|(at, ..)| *at)
    }
}
