//! TCP: bytes that may be a packet, and two endpoints in a network that does what it likes.

use std::collections::VecDeque;

use fontis_base::{Duration, Ecn, Time};
use fontis_proto::tcp::wire::{Addresses, decode_headers, encode_headers};
use fontis_proto::tcp::{
    Options, Recovery, SackBlocks, Segment, SynOptions, TcpConfig, TcpEndpoint, TcpFlags,
    Timestamps,
};

/// Bytes that the application wants to move.
const MESSAGE: u64 = 200_000;
const ADDRESSES: Addresses = Addresses { source: (1, 2), destination: (3, 4) };

/// Whatever decodes is encoded to the same bytes; whatever segments come, endpoints go on, and
/// nobody gets more than was sent.
pub(crate) fn run(data: &[u8]) {
    if let Ok((addresses, ecn, segment)) = decode_headers(data) {
        let mut bytes = Vec::new();
        encode_headers(&segment, ecn, addresses, &mut bytes);
        bytes.resize(bytes.len() + segment.len as usize, 0);
        assert_eq!(decode_headers(&bytes), Ok((addresses, ecn, segment)));
    }
    let Some((&[a, b], steps)) = data.split_first_chunk::<2>() else { return };
    const NAMES: [&str; 9] = [
        "newreno",
        "cubic",
        "cubic-hystart",
        "compound",
        "vegas",
        "bbr",
        "fld",
        "fld-linux",
        "fld-thesis",
    ];
    let name = match b >> 6 {
        1 => "hybla",
        2 => "jumpstart",
        3 => "halfback",
        _ => NAMES[usize::from(a) % NAMES.len()],
    };
    let config = || TcpConfig {
        congestion: name.parse().unwrap_or_default(),
        recovery: if b & 1 == 0 { Recovery::Rfc6675 } else { Recovery::RackTlp },
        sack: b & 2 == 0,
        timestamps: b & 4 == 0,
        ecn: b & 8 == 0,
        pacing: b & 16 != 0,
        max_window: (b & 32 != 0).then_some(u64::from(a) * 300),
        ..TcpConfig::default()
    };
    let now = Time::ZERO;
    // Numbers that run over on the way.
    let mut client = TcpEndpoint::connect(now, config(), u32::MAX - 50_000);
    client.write(MESSAGE);
    client.finish();
    let mut pair = Pair { now, config: config(), client, server: None, ways: Default::default() };
    for step in steps.chunks_exact(4).take(2000) {
        pair.step(step[0], step[1], u16::from_be_bytes([step[2], step[3]]));
    }
}

struct Pair {
    now: Time,
    config: TcpConfig,
    client: TcpEndpoint,
    server: Option<TcpEndpoint>,
    /// What is on its way to the server, and to the client.
    ways: [VecDeque<Segment>; 2],
}

impl Pair {
    fn step(&mut self, kind: u8, small: u8, large: u16) {
        let side = usize::from(small % 2);
        match kind % 9 {
            0 => self.now += Duration::from_micros(u64::from(large)),
            1 => self.poll(side),
            2 => {
                if let Some(segment) = self.ways[side].pop_front() {
                    self.deliver(side, &segment, small & 2 != 0);
                }
            }
            3 => drop(self.ways[side].pop_front()),
            4 => {
                if let Some(segment) = self.ways[side].pop_front() {
                    self.ways[side].push_back(segment);
                }
            }
            5 => {
                if let Some(segment) = self.ways[side].front().cloned() {
                    self.deliver(side, &segment, false);
                }
            }
            6 => {
                let due = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
                let due = due.filter_map(|endpoint| endpoint.timeout()).map(|(at, _)| at).min();
                let soon = self.now + Duration::from_secs(100);
                self.now = self.now.max(due.unwrap_or(self.now).min(soon));
            }
            7 => {
                // The same segment with another field.
                if let Some(mut segment) = self.ways[side].front().cloned() {
                    change(&mut segment, small, large);
                    self.deliver(side, &segment, false);
                }
            }
            _ => {
                let mut segment = Segment { seq: u32::from(large) << 16, ..Segment::default() };
                change(&mut segment, small, large);
                self.deliver(side, &segment, false);
            }
        }
        if let Some(server) = &mut self.server {
            let read = server.read(u64::MAX);
            assert!(read <= MESSAGE + FORGED, "{read} bytes were read");
        }
    }

    fn poll(&mut self, side: usize) {
        let endpoint = if side == 0 { Some(&mut self.client) } else { self.server.as_mut() };
        let Some(endpoint) = endpoint else { return };
        for _ in 0..8 {
            let Some(transmit) = endpoint.poll(self.now) else { break };
            let mut bytes = Vec::new();
            encode_headers(&transmit.segment, Ecn::NotEct, ADDRESSES, &mut bytes);
            bytes.resize(bytes.len() + transmit.segment.len as usize, 0);
            let (_, _, segment) = decode_headers(&bytes).expect("what we encode decodes");
            assert_eq!(segment, transmit.segment);
            if self.ways[side].len() < 64 {
                self.ways[side].push_back(segment);
            }
        }
        while endpoint.event().is_some() {}
    }

    fn deliver(&mut self, side: usize, segment: &Segment, marked: bool) {
        if side == 1 {
            return self.client.handle(self.now, segment, marked);
        }
        match &mut self.server {
            Some(server) => server.handle(self.now, segment, marked),
            None => {
                self.server = TcpEndpoint::accept(self.now, self.config.clone(), 77, segment);
            }
        }
    }
}

/// A window of bytes that nobody sent may be believed.
const FORGED: u64 = 1 << 31;

fn change(segment: &mut Segment, small: u8, large: u16) {
    let wide = u32::from(large) << (small % 17);
    match small / 16 {
        0 => segment.seq = segment.seq.wrapping_add(wide),
        1 => segment.seq = segment.seq.wrapping_sub(wide),
        2 => segment.ack = segment.ack.wrapping_add(wide),
        3 => segment.ack = segment.ack.wrapping_sub(wide),
        4 => segment.len = u32::from(large),
        5 => segment.window = large,
        6 | 7 => segment.flags = TcpFlags(large as u8),
        8 => {
            segment.has_timestamps = true;
            segment.timestamps = Timestamps { value: wide, echo: u32::from(large) };
        }
        9 => {
            segment.has_timestamps = false;
            segment.timestamps = Timestamps::default();
        }
        10 | 11 => {
            let mut sack = SackBlocks::default();
            let left = segment.ack.wrapping_add(u32::from(large));
            sack.push(left, left.wrapping_add(wide));
            sack.push(wide, left);
            segment.options = Some(Box::new(Options::Sack(sack)));
        }
        12 => {
            let (window_scale, sack_permitted) = (Some(small % 15), large & 1 == 0);
            let syn = SynOptions { mss: large, window_scale, sack_permitted };
            segment.options = Some(Box::new(Options::Syn(syn)));
            segment.flags = TcpFlags::SYN;
        }
        13 => segment.options = None,
        _ => segment.flags = TcpFlags(small),
    }
}
