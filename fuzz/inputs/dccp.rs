//! DCCP: bytes that may be a packet, and two ends in a network that does what it likes.

use std::collections::VecDeque;

use fontis_base::{Duration, Time};
use fontis_proto::dccp::{
    Carrier, Ccid, DccpBody, DccpConfig, DccpConnection, DccpData, DccpOption, DccpPacket, DccpSeq,
    FeatureOption, FeatureStep, ResetCode, no_connection,
};
use fontis_proto::rate::reorder::ReorderMode;
use fontis_proto::rate::tfrc::{FeedbackCount, SlowStart};

/// Whatever decodes is encoded to the same packet; whatever packets come, ends go on, and none
/// receives more than was sent.
pub(crate) fn run(data: &[u8]) {
    bytes_are_a_packet_or_none(data);
    let (Some((&[a, b], steps)), now) = (data.split_first_chunk::<2>(), Time::ZERO) else {
        return;
    };
    let mut config = DccpConfig {
        ccid: [Ccid::Two, Ccid::Three, Ccid::Four][usize::from(a % 3)],
        queue: 1 + usize::from(b % 8),
        short_numbers: a & 8 != 0,
        tells_rtt: a & 16 != 0,
        ecn: a & 32 != 0,
        sequence_window: 32 + u64::from(b) * 4,
        ..DccpConfig::default()
    };
    config.tfrc.slow_start =
        [SlowStart::Standard, SlowStart::Equivalent, SlowStart::Nominal][usize::from(b % 3)];
    config.tfrc.feedback = match b % 4 {
        0 => FeedbackCount::Dynamic { reference: Duration::from_millis(100) },
        count => FeedbackCount::Fixed(count.into()),
    };
    let delay = Duration::from_millis(b.into());
    config.reorder = [None, Some((ReorderMode::Hold, delay)), Some((ReorderMode::Full, delay))]
        [usize::from(b / 8 % 3)];
    let client = DccpConnection::connect(now, config.clone(), u64::from(a) << 40);
    let mut pair = Pair { now, config, client, server: None, ways: Default::default(), sent: 0 };
    for step in steps.chunks_exact(4).take(2000) {
        pair.step(step[0], step[1], u16::from_be_bytes([step[2], step[3]]));
    }
}

fn bytes_are_a_packet_or_none(data: &[u8]) {
    let ip = Carrier::Ip { source: 1, destination: 2 };
    let _ = DccpPacket::decode(ip, data);
    if let Ok(packet) = DccpPacket::decode(Carrier::Udp, data) {
        for carrier in [Carrier::Udp, ip] {
            let mut bytes = Vec::new();
            packet.encode(carrier, &mut bytes);
            let again = DccpPacket::decode(carrier, &bytes).expect("what we encode decodes");
            assert_eq!(again, packet);
        }
        let _ = no_connection(&packet);
    }
}

struct Pair {
    now: Time,
    config: DccpConfig,
    client: DccpConnection,
    server: Option<DccpConnection>,
    /// What is on its way to the server, and to the client.
    ways: [VecDeque<DccpPacket>; 2],
    /// Datagrams that the client's application sent.
    sent: u64,
}

impl Pair {
    fn step(&mut self, kind: u8, small: u8, large: u16) {
        let side = usize::from(small % 2);
        match kind % 10 {
            0 => self.now += Duration::from_micros(u64::from(large) * 4),
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
                let due = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
                let due = due.filter_map(|end| end.timeout()).map(|(at, _)| at).min();
                let soon = self.now + Duration::from_secs(100);
                self.now = self.now.max(due.unwrap_or(self.now).min(soon));
            }
            6 => {
                if let Some(end) = self.end(side) {
                    let len = u32::from(large % 1500);
                    let _ = end.send(DccpData::Counted { len, mark: 0 });
                    self.sent += u64::from(side == 0);
                }
            }
            7 => {
                let Some(end) = self.end(side) else { return };
                match large % 16 {
                    0 => end.abort(),
                    1 | 2 => end.close(),
                    _ => {}
                }
            }
            8 => {
                // A packet on its way is changed.
                if let Some(packet) = self.ways[side].front_mut() {
                    forge(packet, small, large);
                }
            }
            _ => {
                let packet = self.ways[side].front().cloned();
                if let Some(mut packet) = packet {
                    forge(&mut packet, small, large);
                    self.deliver(side, &packet, false);
                }
            }
        }
    }

    const fn end(&mut self, side: usize) -> Option<&mut DccpConnection> {
        if side == 0 { Some(&mut self.client) } else { self.server.as_mut() }
    }

    fn poll(&mut self, side: usize) {
        let now = self.now;
        for _ in 0..8 {
            let Some(end) = self.end(side) else { return };
            let Some(packet) = end.poll(now) else { break };
            if self.ways[side].len() < 64 {
                self.ways[side].push_back(packet);
            }
        }
        let Some(end) = self.end(side) else { return };
        while end.event().is_some() {}
        while end.receive().is_some() {}
        let _ = (end.path(), end.stats(), end.room(), end.is_closed());
    }

    fn deliver(&mut self, side: usize, packet: &DccpPacket, is_marked: bool) {
        if side == 1 {
            return self.client.handle(self.now, packet, is_marked);
        }
        match &mut self.server {
            Some(server) => server.handle(self.now, packet, is_marked),
            None => {
                let config = self.config.clone();
                self.server = DccpConnection::accept(self.now, config, 4, packet);
            }
        }
    }
}

/// Changes what a peer may say.
fn forge(packet: &mut DccpPacket, small: u8, large: u16) {
    let number = u64::from(large);
    let values = large.to_be_bytes();
    match small / 4 % 12 {
        0 => packet.seq = packet.seq.plus(number),
        1 => packet.seq = packet.seq.minus(number),
        2 => packet.body = packet.body.with_ack(DccpSeq::new(number << 30)),
        3 => packet.ccval = (large % 16) as u8,
        4 => packet.options.push(DccpOption::AckVector { nonce: false, runs: values.into() }),
        5 => packet.options.push(DccpOption::RttEstimate(u32::from(large) << 8)),
        6 => packet.options.insert(0, DccpOption::LossEventRate(number as u32 % 40)),
        7 => packet.options.insert(0, DccpOption::ReceiveRate(u32::from(large) << 16)),
        8 => packet.options.insert(0, DccpOption::ElapsedTime(u32::from(large) << 12)),
        9 => packet.options.push(DccpOption::Mandatory),
        10 => packet.options.push(DccpOption::Feature(FeatureOption {
            step: [
                FeatureStep::ChangeL,
                FeatureStep::ConfirmL,
                FeatureStep::ChangeR,
                FeatureStep::ConfirmR,
            ][usize::from(large % 4)],
            feature: values[0] % 12,
            values: [values[1], values[0]].into_iter().collect(),
        })),
        _ => {
            let ack = packet.ack().unwrap_or_default();
            let code = ResetCode::of(values[0] % 12);
            packet.body = match large % 6 {
                0 => DccpBody::Reset { ack, code, details: [0; 3] },
                1 => DccpBody::Sync { ack },
                2 => DccpBody::Close { ack },
                3 => DccpBody::CloseReq { ack },
                4 => DccpBody::Request { service: 0 },
                _ => DccpBody::Response { ack, service: 0 },
            };
        }
    }
}
