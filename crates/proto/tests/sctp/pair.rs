//! Two ends and a network with any number of paths between them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream, Time};
use fontis_proto::sctp::{
    SctpAssociation, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpMessage, SctpPacket,
    SctpSecret, SctpSend, SctpTransmit, respond_without_state,
};

/// A path of the network.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub delay: Duration,
    pub rate: Rate,
    /// Bytes that may wait, and the share of packets that are lost, overtaken or doubled.
    pub buffer: u64,
    pub loss: f64,
    pub reorder: f64,
    pub double: f64,
    /// Bytes of a packet at most; what may be cut comes whole all the same.
    pub mtu: u32,
    /// Whether nothing arrives.
    pub is_down: bool,
}

impl Way {
    pub fn of(delay: u64, mbps: f64) -> Self {
        Self {
            delay: Duration::from_millis(delay),
            rate: Rate::from_bps((mbps * 1e6) as u64),
            buffer: 1 << 30,
            loss: 0.0,
            reorder: 0.0,
            double: 0.0,
            mtu: u32::MAX,
            is_down: false,
        }
    }
}

/// Whether a packet with these TSNs is lost.
pub type Drops = Box<dyn FnMut(&[u32]) -> bool>;

/// A client, and a server once it has accepted.
pub struct Pair {
    pub now: Time,
    pub ends: [Option<SctpAssociation>; 2],
    pub configs: [SctpConfig; 2],
    pub ways: Vec<Way>,
    pub events: [Vec<SctpEvent>; 2],
    pub got: [Vec<SctpMessage>; 2],
    /// Messages that wait for room in the send buffer.
    pub queues: [std::collections::VecDeque<(SctpSend, SctpData)>; 2],
    /// Packets that left, with their times and the end.
    pub sent: Vec<(Time, usize, SctpTransmit)>,
    pub keeps: bool,
    /// Addresses that nobody has: what is sent there is lost.
    pub absent: Vec<IpAddr>,
    /// Packets that the network has lost.
    pub lost: u64,
    /// Which data packets of the client are lost, by their TSNs.
    pub drops: Option<Drops>,
    /// The ends are driven at multiples of this time, with all that has come until then.
    pub grain: Duration,
    /// Whether applications take their messages.
    pub takes: [bool; 2],
    random: Stream,
    free: BTreeMap<(usize, usize), Time>,
    flying: BTreeMap<(Time, u64), (usize, [IpAddr; 2], Bytes)>,
    count: u64,
}

/// An address of an end: its first byte is the end's, its last the path's.
pub fn address(end: usize, path: usize) -> IpAddr {
    IpAddr::from([10, end as u8 + 1, 0, path as u8 + 1])
}

/// A code that is good enough between friends.
pub fn secret(key: u64) -> SctpSecret {
    SctpSecret::new(move |bytes| {
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = Stream::new(key, &name);
        let (a, b) = (stream.next_u64(), stream.next_u64());
        (u128::from(a) << 64 | u128::from(b)).to_be_bytes()
    })
}

/// How many random pairs a test has: as `FONTIS_RUNS` says, or so many.
pub fn runs(usual: u64) -> u64 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(usual)
}

/// The usual configuration; a pair gives each end a secret of its own.
pub fn plain() -> SctpConfig {
    SctpConfig::new(secret(0))
}

impl Pair {
    pub fn new(seed: u64, config: &SctpConfig, ways: Vec<Way>) -> Self {
        Self::of(seed, [config.clone(), config.clone()], ways)
    }

    pub fn of(seed: u64, configs: [SctpConfig; 2], ways: Vec<Way>) -> Self {
        let all = ways.len();
        Self::with_addresses(seed, configs, ways, [all; 2])
    }

    /// The same with ends that have so many addresses to begin with.
    pub fn with_addresses(
        seed: u64,
        configs: [SctpConfig; 2],
        ways: Vec<Way>,
        counts: [usize; 2],
    ) -> Self {
        let mut configs = configs;
        for (end, config) in configs.iter_mut().enumerate() {
            config.addresses = (0..counts[end]).map(|path| address(end, path)).collect();
            config.secret = secret(seed * 2 + end as u64);
        }
        let ends = [address(0, 0), address(1, 0)];
        let client = SctpAssociation::connect(Time::from_nanos(1), configs[0].clone(), ends);
        Self {
            now: Time::from_nanos(1),
            ends: [Some(client), None],
            configs,
            ways,
            events: Default::default(),
            got: Default::default(),
            queues: Default::default(),
            sent: Vec::new(),
            keeps: false,
            absent: Vec::new(),
            lost: 0,
            drops: None,
            grain: Duration::ZERO,
            takes: [true; 2],
            random: Stream::new(seed, "network"),
            free: BTreeMap::new(),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    pub fn end(&mut self, end: usize) -> &mut SctpAssociation {
        self.ends[end].as_mut().expect("the end is there")
    }

    /// Runs until the time has passed or `until` holds. Whether it holds.
    pub fn run(&mut self, span: Duration, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + span;
        let (mut last, mut again) = (self.now, 0);
        loop {
            self.drain();
            if until(self) {
                return true;
            }
            let due = self.ends.iter().flatten().filter_map(SctpAssociation::timeout);
            let due = due.map(|(at, _)| at.max(self.now));
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = due.chain(flying).min().filter(|next| *next <= end) else { break };
            let grain = self.grain.as_nanos().max(1);
            self.now = Time::from_nanos(next.as_nanos().next_multiple_of(grain));
            again = if last == self.now { again + 1 } else { 0 };
            last = self.now;
            let timeouts: Vec<_> =
                self.ends.iter().flatten().map(SctpAssociation::timeout).collect();
            assert!(again < 10_000, "time stands still: {timeouts:?}");
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, ends, bytes) = entry.remove();
                self.deliver(to, ends, &bytes);
            }
        }
        self.now = end;
        false
    }

    fn drain(&mut self) {
        for side in 0..2 {
            self.take(side);
            let now = self.now;
            while let Some(end) = &mut self.ends[side]
                && let Some((send, data)) = self.queues[side].front()
                && end.room() >= data.len() as u64
            {
                let sent = end.send(now, *send, data.clone());
                sent.unwrap_or_else(|error| panic!("{error}"));
                self.queues[side].pop_front();
            }
            for turn in 0.. {
                assert!(turn < 100_000, "an end sends without end");
                let Some(transmit) = self.ends[side].as_mut().and_then(|end| end.poll(now)) else {
                    break;
                };
                self.leave(side, transmit);
            }
            self.take(side);
        }
    }

    fn leave(&mut self, side: usize, transmit: SctpTransmit) {
        let mut bytes = Vec::new();
        transmit.packet.encode(&mut bytes);
        let SctpConfig { mtu, most_mtu, .. } = self.configs[side];
        let size = bytes.len() as u32 + 20;
        assert!(transmit.may_fragment || size <= mtu.max(most_mtu), "{transmit:?}");
        let ends = [transmit.peer, transmit.local];
        let may_fragment = transmit.may_fragment;
        let is_dropped = side == 0 && self.drops(&transmit.packet);
        if self.keeps {
            self.sent.push((self.now, side, transmit));
        }
        let IpAddr::V4(to) = ends[0] else { return };
        if self.absent.iter().any(|absent| ends.contains(absent)) {
            self.lost += 1;
            return;
        }
        if is_dropped {
            self.lost += 1;
            return;
        }
        let path = usize::from(to.octets()[3] - 1);
        if size > self.ways[path].mtu && !may_fragment {
            self.lost += 1;
            return;
        }
        self.fly(side, path, ends, bytes.into());
    }

    /// Whether a packet of the client is one that a test has named.
    fn drops(&mut self, packet: &SctpPacket) -> bool {
        let tsns = packet.chunks.iter().filter_map(|chunk| match chunk {
            SctpChunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        let tsns: Vec<u32> = tsns.collect();
        !tsns.is_empty() && self.drops.as_mut().is_some_and(|drops| drops(&tsns))
    }

    pub fn fly(&mut self, side: usize, path: usize, ends: [IpAddr; 2], bytes: Bytes) {
        let way = self.ways[path];
        let copies = 1 + usize::from(self.random.unit() < way.double);
        for _ in 0..copies {
            let free = self.free.entry((side, path)).or_insert(Time::ZERO);
            let begin = (*free).max(self.now);
            let waiting = way.rate.bytes_in(begin.since(self.now));
            if way.is_down || waiting > way.buffer || self.random.unit() < way.loss {
                self.lost += 1;
                continue;
            }
            let out = begin + way.rate.time_for(bytes.len() as u64 + 20);
            *free = out;
            let mut at = out + way.delay;
            if self.random.unit() < way.reorder {
                at += way.delay.mul_ratio(self.random.below(100), 100);
            }
            self.count += 1;
            self.flying.insert((at, self.count), (1 - side, ends, bytes.clone()));
        }
    }

    /// Every packet passes through its bytes.
    fn deliver(&mut self, to: usize, ends: [IpAddr; 2], bytes: &Bytes) {
        let packet = SctpPacket::decode(bytes).expect("our own bytes");
        let mut again = Vec::new();
        packet.encode(&mut again);
        assert_eq!(again, *bytes, "{packet:?}");
        if let Some(end) = &mut self.ends[to] {
            end.handle(self.now, ends, &packet, false);
            return self.take(to);
        }
        let config = self.configs[to].clone();
        match SctpAssociation::accept(self.now, config.clone(), ends, &packet) {
            Ok(end) => {
                self.ends[to] = Some(end);
                self.take(to);
            }
            Err(Some(answer)) => self.answer(to, ends, &answer),
            Err(None) => {
                if let Some(answer) = respond_without_state(self.now, &config, ends, &packet) {
                    self.answer(to, ends, &answer);
                }
            }
        }
    }

    fn answer(&mut self, side: usize, ends: [IpAddr; 2], answer: &SctpPacket) {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        let IpAddr::V4(to) = ends[0] else { return };
        let path = usize::from(to.octets()[3] - 1);
        self.fly(side, path, [ends[1], ends[0]], bytes.into());
    }

    fn take(&mut self, side: usize) {
        let now = self.now;
        let Some(end) = &mut self.ends[side] else { return };
        while let Some(event) = end.event() {
            self.events[side].push(event);
        }
        while self.takes[side]
            && let Some(message) = end.receive(now)
        {
            self.got[side].push(message);
        }
    }
}
