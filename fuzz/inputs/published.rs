//! The DFCP of 2015: bytes that may be a packet, and two endpoints in a network that does what it
//! likes.

use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};
use fontis_proto::published::{
    Body, Coding, Need, Parameters, Plan, PublishedConfig, PublishedEndpoint, PublishedFlags,
    PublishedHeader, PublishedPacket, PublishedSymbols, Sending,
};

/// Bytes that the application wants to move: in most cases few, since each costs work.
const MESSAGES: [u64; 4] = [500, 2_000, 5_000, 20_000];
/// Bytes of symbols that both sides may send in all.
const WORK: u64 = 60_000;

/// Whatever decodes is encoded to the same bytes; whatever packets come, endpoints go on, and
/// nobody gets more than was sent.
pub(crate) fn run(data: &[u8]) {
    bytes_are_a_packet_or_none(data);
    let (Some((&[a, b, c], steps)), now) = (data.split_first_chunk::<3>(), Time::ZERO) else {
        return;
    };
    let config = PublishedConfig {
        block: 64 + u32::from(a).pow(2) / 16,
        window: 1 + u32::from(b % 16),
        redundancy: f64::from(c) / 200.0,
        payload: 1 + u32::from(b) * 6,
        sending: [Sending::TwoPhase, Sending::RoundRobin, Sending::UntilAcknowledged]
            [usize::from(a % 3)],
        plan: [Plan::Measured, Plan::Fixed][usize::from(b % 2)],
        need: [Need::Redundancy, Need::Code][usize::from(c % 2)],
        coding: if c % 8 == 7 { Coding::Real } else { Coding::Counting },
        rate: Rate::from_mbps(10),
        ..PublishedConfig::default()
    };
    let mut client = PublishedEndpoint::connect(now, config.clone(), [1, 2, 3]);
    let message = MESSAGES[usize::from(b / 64)];
    client.write(message);
    client.finish();
    let ways = Default::default();
    let mut pair = Pair { now, config, message, client, server: None, ways, work: 0 };
    for step in steps.chunks_exact(4).take(1000) {
        pair.step(step[0], step[1], u16::from_be_bytes([step[2], step[3]]));
        if pair.work > WORK {
            break;
        }
    }
}

fn bytes_are_a_packet_or_none(data: &[u8]) {
    if let Ok(packet) = PublishedPacket::decode(&[], data) {
        let mut bytes = Vec::new();
        packet.encode(&[], &mut bytes);
        let again = PublishedPacket::decode(&[], &bytes).expect("what we encode decodes");
        assert_eq!(again.header, packet.header);
    }
    // A packet whose checksum is right gets further.
    let Some((fields, rest)) = data.split_first_chunk::<21>() else { return };
    let word = |at: usize| {
        u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]])
    };
    let state = [word(8), word(12), word(16)];
    let flags = PublishedFlags(fields[20] & 0x3f);
    let header = PublishedHeader { source: 1, destination: 2, block: word(4), state, flags };
    let mut bytes = Vec::new();
    header.encode(&[], rest, &mut bytes);
    if let Ok(packet) = PublishedPacket::decode(&[], &bytes) {
        assert_eq!(packet.header, header);
    }
}

struct Pair {
    now: Time,
    config: PublishedConfig,
    message: u64,
    client: PublishedEndpoint,
    server: Option<PublishedEndpoint>,
    /// What is on its way to the server, and to the client.
    ways: [VecDeque<PublishedPacket>; 2],
    /// Bytes of symbols that were sent.
    work: u64,
}

impl Pair {
    fn step(&mut self, kind: u8, small: u8, large: u16) {
        let side = usize::from(small % 2);
        match kind % 8 {
            0 => self.now += Duration::from_micros(u64::from(large)),
            1 => self.poll(side),
            2 => {
                if let Some(packet) = self.ways[side].pop_front() {
                    self.deliver(side, &packet, small & 2 != 0);
                }
            }
            3 => drop(self.ways[side].pop_front()),
            4 => {
                // Later ones overtake it.
                if let Some(packet) = self.ways[side].pop_front() {
                    self.ways[side].push_back(packet);
                }
            }
            5 => {
                if let Some(packet) = self.ways[side].front().cloned() {
                    self.deliver(side, &packet, false);
                }
            }
            6 => {
                let due = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
                let due = due.filter_map(|endpoint| endpoint.timeout()).map(|(at, _)| at).min();
                // Not to the end of time, where nothing is to be learned.
                let soon = self.now + Duration::from_secs(100);
                self.now = self.now.max(due.unwrap_or(self.now).min(soon));
            }
            _ => self.deliver(side, &forged(small, large), false),
        }
        if let Some(server) = &self.server {
            assert!(server.stats().delivered <= self.message, "{:?}", server.stats());
        }
    }

    fn poll(&mut self, side: usize) {
        let endpoint = if side == 0 { Some(&mut self.client) } else { self.server.as_mut() };
        let Some(endpoint) = endpoint else { return };
        for _ in 0..8 {
            let Some(packet) = endpoint.poll(self.now) else { break };
            if let Body::Symbols(symbols) = &packet.body {
                self.work += u64::from(symbols.len);
            }
            if self.ways[side].len() < 64 {
                self.ways[side].push_back(packet);
            }
        }
        while endpoint.event().is_some() {}
        while endpoint.read().is_some() {}
    }

    fn deliver(&mut self, side: usize, packet: &PublishedPacket, marked: bool) {
        if side == 1 {
            return self.client.handle(self.now, packet, marked);
        }
        match &mut self.server {
            Some(server) => server.handle(self.now, packet, marked),
            None => {
                let config = self.config.clone();
                self.server = PublishedEndpoint::accept(self.now, config, [4, 5, 6], packet);
            }
        }
    }
}

/// A packet that nobody sent. Data are not forged: that they are right is the checksum's business,
/// not the endpoint's.
fn forged(small: u8, large: u16) -> PublishedPacket {
    let flags = PublishedFlags(small & 0x3f);
    let is_data = flags.0
        & (PublishedFlags::SYN.0
            | PublishedFlags::ACK.0
            | PublishedFlags::FIN.0
            | PublishedFlags::RST.0)
        == 0;
    let number = u32::from(large);
    let body = match large % 4 {
        0 => Body::Parameters(Parameters { block: number, window: number, redundancy: number }),
        1 if !is_data => Body::Marks { packets: number, marked: number / 2 },
        2 if !is_data => Body::Symbols(PublishedSymbols {
            len: number,
            bytes: Default::default(),
            message: number,
        }),
        _ => Body::None,
    };
    let block = if large & 0x8000 != 0 { u32::MAX - number % 8 } else { number % 64 };
    let header = PublishedHeader { source: 1, destination: 2, block, state: [number, 7, 9], flags };
    PublishedPacket { header, body }
}
