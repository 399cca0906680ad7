//! Two ends and the network between them.

use std::collections::{BTreeMap, VecDeque};

use fontis_base::{Duration, Rate, Time};
use fontis_proto::dccp::{
    Carrier, DccpConfig, DccpConnection, DccpData, DccpEvent, DccpPacket, no_connection,
};

const IP: Carrier = Carrier::Ip { source: 1, destination: 2 };

/// Whether a packet of an end is lost.
pub type Loses = Box<dyn FnMut(usize, &DccpPacket) -> bool>;

/// A client, and a server once a Request has come.
pub struct Pair {
    pub now: Time,
    pub client: DccpConnection,
    pub server: Option<DccpConnection>,
    pub config: DccpConfig,
    pub delay: Duration,
    /// The rate of the way to the server, and the packets that may wait for it.
    pub rate: Rate,
    pub buffer: usize,
    /// Whether a packet of an end, the client's 0, is lost.
    pub loses: Loses,
    /// Every twentieth packet to the server takes so much longer.
    pub late: Option<Duration>,
    /// The client sends whenever its queue has room.
    pub is_greedy: bool,
    pub events: [Vec<DccpEvent>; 2],
    /// What the server's application got.
    pub got: Vec<DccpData>,
    /// The packets that left, by end.
    pub sent: [Vec<DccpPacket>; 2],
    line: VecDeque<DccpPacket>,
    line_free: Time,
    flying: BTreeMap<(Time, u64), (usize, DccpPacket)>,
    count: u64,
}

impl Pair {
    pub fn new(client: DccpConfig, server: DccpConfig) -> Self {
        Self {
            now: Time::ZERO,
            client: DccpConnection::connect(Time::ZERO, client, 0xffff_ffff_fff0),
            server: None,
            config: server,
            delay: Duration::from_millis(50),
            rate: Rate::from_mbps(1000),
            buffer: 1_000_000,
            loses: Box::new(|_, _| false),
            late: None,
            is_greedy: false,
            events: [Vec::new(), Vec::new()],
            got: Vec::new(),
            sent: [Vec::new(), Vec::new()],
            line: VecDeque::new(),
            line_free: Time::ZERO,
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    pub fn of(config: &DccpConfig) -> Self {
        Self::new(config.clone(), config.clone())
    }

    pub fn server(&mut self) -> &mut DccpConnection {
        self.server.as_mut().expect("the server has been asked")
    }

    /// Bytes of data that the server has got.
    pub fn bytes(&self) -> u64 {
        self.got.iter().map(|data| data.len() as u64).sum()
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let (mut last, mut again) = (self.now, 0);
        loop {
            again = if last == self.now { again + 1 } else { 0 };
            last = self.now;
            let due = self.server.as_ref().map(|server| server.timeout());
            assert!(again < 1000, "time stands still: {:?} {due:?}", self.client.timeout());
            self.drain();
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let line = (!self.line.is_empty()).then_some(self.line_free);
            let ends = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
            let due = ends.filter_map(|end| end.timeout()).map(|(at, _)| at.max(self.now));
            let next = due.chain(flying).chain(line).min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            self.transmit();
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (from, packet) = entry.remove();
                self.deliver(from, &packet);
            }
        }
        self.now = end;
    }

    fn drain(&mut self) {
        for side in 0..2 {
            for _ in 0..1000 {
                if side == 0 && self.is_greedy {
                    while self.client.room() > 0
                        && self.client.send(DccpData::Counted { len: 1000, mark: 0 }) == Ok(true)
                    {
                    }
                }
                let now = self.now;
                let end = if side == 0 { Some(&mut self.client) } else { self.server.as_mut() };
                let Some(packet) = end.and_then(|end| end.poll(now)) else { break };
                self.leave(side, packet);
            }
        }
        self.take();
    }

    fn leave(&mut self, side: usize, packet: DccpPacket) {
        self.sent[side].push(packet.clone());
        if (self.loses)(side, &packet) {
            return;
        }
        match side {
            0 if self.line.len() < self.buffer => {
                if self.line.is_empty() {
                    self.line_free = self.line_free.max(self.now) + self.time_for(&packet);
                }
                self.line.push_back(packet);
            }
            0 => {}
            _ => self.fly(1, packet),
        }
    }

    fn time_for(&self, packet: &DccpPacket) -> Duration {
        self.rate.time_for((packet.header_len() + packet.data.len() + 20) as u64)
    }

    fn transmit(&mut self) {
        while self.line_free <= self.now
            && let Some(packet) = self.line.pop_front()
        {
            self.fly(0, packet);
            if let Some(next) = self.line.front() {
                self.line_free += self.time_for(next);
            }
        }
    }

    fn fly(&mut self, side: usize, packet: DccpPacket) {
        self.count += 1;
        let late = self.late.filter(|_| side == 0 && self.count.is_multiple_of(20));
        let at = self.now + self.delay + late.unwrap_or(Duration::ZERO);
        self.flying.insert((at, self.count), (side, packet));
    }

    /// Every packet passes through its bytes.
    fn deliver(&mut self, from: usize, packet: &DccpPacket) {
        let mut bytes = Vec::new();
        packet.encode(IP, &mut bytes);
        let packet = DccpPacket::decode(IP, &bytes).expect("our own bytes");
        match (from, &mut self.server) {
            (0, Some(server)) => server.handle(self.now, &packet, false),
            (0, None) => {
                let config = self.config.clone();
                self.server = DccpConnection::accept(self.now, config, 77, &packet);
                if self.server.is_none()
                    && let Some(reset) = no_connection(&packet)
                {
                    self.fly(1, reset);
                }
            }
            _ => self.client.handle(self.now, &packet, false),
        }
        self.take();
    }

    fn take(&mut self) {
        let ends = [Some(&mut self.client), self.server.as_mut()];
        for (side, end) in ends.into_iter().enumerate() {
            let Some(end) = end else { continue };
            while let Some(event) = end.event() {
                self.events[side].push(event);
            }
            while let Some(data) = end.receive() {
                if side == 1 {
                    self.got.push(data);
                }
            }
        }
    }
}
