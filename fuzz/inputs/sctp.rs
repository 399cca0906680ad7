//! SCTP: bytes that may be a packet, and two ends in a network that does what it likes.

use std::collections::VecDeque;
use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Stream, Time};
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{
    AckPolicy, AddressChange, AddressParameter, CmtConfig, CodeReach, CodingConfig,
    DynamicAddresses, Multipath, Reliability, RepairWait, RepairedLoss, SctpAssociation, SctpAuth,
    SctpCause, SctpChunk, SctpCode, SctpConfig, SctpData, SctpPacket, SctpSecret, SctpSend, Stamp,
    respond_without_state,
};

/// Whatever decodes is encoded to the same packet; whatever packets come, ends go on, and none
/// holds more than its budget.
pub(crate) fn run(data: &[u8]) {
    bytes_are_a_packet_or_none(data);
    let Some((&[a, b], steps)) = data.split_first_chunk::<2>() else { return };
    let scheduler = SchedulerKind::ALL[usize::from(b) % SchedulerKind::ALL.len()];
    let cmt = CmtConfig {
        scheduler,
        split_fast_retransmit: a & 16 != 0,
        believes_old_sacks: a & 32 != 0,
        ..CmtConfig::default()
    };
    let k = 1 + b % 7;
    let reach = [
        CodeReach::Group,
        CodeReach::Memory(2 * k),
        CodeReach::Unacknowledged(100),
        CodeReach::RaptorQ(k),
    ][usize::from(b % 4)];
    let coding = CodingConfig {
        code: match b & 64 {
            0 => SctpCode::fixed(k + 1 + b % 2, k, reach),
            _ => SctpCode::adaptive(10 * k),
        },
        wait: [RepairWait::None, RepairWait::Published, RepairWait::Outcome]
            [usize::from(b % 5 % 3)],
        is_inside: b & 8 != 0,
        loss: if b & 4 != 0 { RepairedLoss::Hidden } else { RepairedLoss::Beyond },
        covers_tail: a & 64 != 0,
    };
    let kinds = [0, 3, 10, 64].into_iter().filter(|kind| b >> (kind % 4) & 1 != 0);
    let auth = SctpAuth { kinds: kinds.collect(), ..SctpAuth::default() };
    let dynamic = [
        DynamicAddresses::No,
        DynamicAddresses::Authenticated,
        DynamicAddresses::Open,
        DynamicAddresses::Unnamed,
    ];
    let config = SctpConfig {
        auth: (b & 16 != 0).then_some(auth),
        dynamic: dynamic[usize::from(b % 4)],
        mtu: 200 + u32::from(b) * 6,
        receive_buffer: 2000 + u32::from(b) * 64,
        send_buffer: 20_000,
        max_message: 20_000,
        streams: 1 + u16::from(b % 4),
        interleaving: a & 1 != 0,
        nr_sack: a & 2 != 0,
        stamps: a & 4 != 0,
        multipath: if a & 8 != 0 { Multipath::Concurrent(cmt) } else { Multipath::Failover },
        acks: AckPolicy { waits_at_gaps: a & 64 != 0, ..AckPolicy::default() },
        coding: (a & 128 != 0).then_some(coding),
        ..SctpConfig::new(secret(0))
    };
    let config = |end: usize| SctpConfig {
        addresses: [address(end, 0), address(end, 1)].into_iter().collect(),
        secret: secret(end as u64),
        ..config.clone()
    };
    let now = Time::from_nanos(1);
    let client = SctpAssociation::connect(now, config(0), [address(0, 0), address(1, 0)]);
    let mut pair =
        Pair { now, config: config(1), ends: [Some(client), None], ways: Default::default() };
    for step in steps.chunks_exact(4).take(2000) {
        pair.step(step[0], step[1], u16::from_be_bytes([step[2], step[3]]));
    }
}

fn address(end: usize, path: u8) -> IpAddr {
    IpAddr::from([10, end as u8, 0, path])
}

fn secret(key: u64) -> SctpSecret {
    SctpSecret::new(move |bytes| {
        let sum = bytes.iter().fold(key, |sum, byte| {
            sum.wrapping_mul(0x100_0000_01b3).wrapping_add(u64::from(*byte))
        });
        let mut stream = Stream::new(sum, "secret");
        let (a, b) = (stream.next_u64(), stream.next_u64());
        (u128::from(a) << 64 | u128::from(b)).to_be_bytes()
    })
}

/// The bytes with the checksum that they should have, so that more than it is tried.
fn bytes_are_a_packet_or_none(data: &[u8]) {
    let _ = SctpPacket::decode(&Bytes::copy_from_slice(data));
    let Some((header, rest)) = data.split_at_checked(8) else { return };
    // The checksum of a packet without chunks, put before the rest, is found by encoding.
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(rest);
    let sum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    let Ok(packet) = SctpPacket::decode(&bytes.into()) else { return };
    let mut bytes = Vec::new();
    packet.encode(&mut bytes);
    assert_eq!(bytes.len(), packet.size(), "{packet:?}");
    if bytes.len() > 60_000 {
        return;
    }
    let again = SctpPacket::decode(&bytes.into()).expect("what we encode decodes");
    // Parameters may come in another order, and a code is over bytes that may have been written in
    // another way.
    let is_free = |chunk: &SctpChunk| {
        matches!(chunk, SctpChunk::Init(_) | SctpChunk::InitAck(_) | SctpChunk::Auth(_))
    };
    if !packet.chunks.iter().any(is_free) {
        assert_eq!(again, packet);
    }
    let dynamic = DynamicAddresses::Authenticated;
    let config = SctpConfig { dynamic, ..SctpConfig::new(secret(1)) };
    let ends = [address(1, 0), address(0, 0)];
    let _ = respond_without_state(Time::from_nanos(9), &config, ends, &packet);
    let _ = SctpAssociation::accept(Time::from_nanos(9), config, ends, &packet);
}

struct Pair {
    now: Time,
    /// The server's configuration.
    config: SctpConfig,
    ends: [Option<SctpAssociation>; 2],
    /// What is on its way to the client, and to the server.
    ways: [VecDeque<([IpAddr; 2], SctpPacket)>; 2],
}

impl Pair {
    fn step(&mut self, kind: u8, small: u8, large: u16) {
        let side = usize::from(small % 2);
        match kind % 10 {
            0 => self.now += Duration::from_micros(u64::from(large) * 8),
            1 => self.poll(side),
            2 => self.deliver(side, small & 2 != 0),
            3 => drop(self.ways[side].pop_front()),
            4 => {
                // Later ones overtake it.
                if let Some(packet) = self.ways[side].pop_front() {
                    self.ways[side].push_back(packet);
                }
            }
            5 => {
                let due = self.ends.iter().flatten().filter_map(SctpAssociation::timeout);
                let due = due.map(|(at, _)| at).min();
                let soon = self.now + Duration::from_secs(100);
                self.now = self.now.max(due.unwrap_or(self.now).min(soon));
            }
            6 => {
                let now = self.now;
                let Some(end) = &mut self.ends[side] else { return };
                let send = SctpSend {
                    stream: u16::from(small / 4 % 5),
                    protocol: 7,
                    is_unordered: small & 2 != 0,
                    reliability: match small / 32 {
                        0 | 1 => Reliability::Lifetime(Duration::from_millis(large.into())),
                        2 => Reliability::Repeats(u32::from(large % 3)),
                        _ => Reliability::Full,
                    },
                };
                let _ = end.send(now, send, SctpData::Counted(u32::from(large) % 9000));
            }
            7 => {
                let now = self.now;
                let Some(end) = &mut self.ends[side] else { return };
                match large % 32 {
                    0 => end.abort(),
                    1 | 2 => end.close(now),
                    number @ 3..24 => {
                        let address = address(side, (number / 3 % 5) as u8);
                        let change = match number % 3 {
                            0 => AddressChange::Add(address),
                            1 => AddressChange::Remove(address),
                            _ => AddressChange::Primary(address),
                        };
                        let _ = end.change_address(change);
                    }
                    _ => {}
                }
            }
            8 => {
                if let Some((_, packet)) = self.ways[side].front_mut() {
                    forge(packet, small, large);
                }
            }
            _ => {
                // It comes again.
                if let Some(packet) = self.ways[side].front().cloned() {
                    self.ways[side].push_front(packet);
                }
            }
        }
    }

    fn poll(&mut self, side: usize) {
        let now = self.now;
        let Some(end) = &mut self.ends[side] else { return };
        for _ in 0..8 {
            let Some(transmit) = end.poll(now) else { break };
            if self.ways[1 - side].len() < 64 {
                let ends = [transmit.peer, transmit.local];
                self.ways[1 - side].push_back((ends, transmit.packet));
            }
        }
        while end.event().is_some() {}
        let stats = end.stats();
        assert!(stats.held <= 2000 + 255 * 64 + 20_000 + 3000, "{stats:?}");
        while end.receive(now).is_some() {}
        let _ = (end.paths().count(), end.room(), end.is_closed());
    }

    fn deliver(&mut self, side: usize, is_marked: bool) {
        let Some((ends, packet)) = self.ways[side].pop_front() else { return };
        match &mut self.ends[side] {
            Some(end) => end.handle(self.now, ends, &packet, is_marked),
            None => match SctpAssociation::accept(self.now, self.config.clone(), ends, &packet) {
                Ok(end) => self.ends[side] = Some(end),
                Err(_) => {
                    let answer = respond_without_state(self.now, &self.config, ends, &packet);
                    let back = [ends[1], ends[0]];
                    self.ways[1 - side].extend(answer.map(|answer| (back, answer)));
                }
            },
        }
    }
}

/// Changes what a peer may say.
fn forge(packet: &mut SctpPacket, small: u8, large: u16) {
    let number = u32::from(large);
    let place = usize::from(small / 16) % packet.chunks.len().max(1);
    let Some(chunk) = packet.chunks.get_mut(place) else { return };
    match (chunk, small / 2 % 8) {
        (SctpChunk::Data(data), 0) => data.tsn = data.tsn.wrapping_add(number),
        (SctpChunk::Data(data), 1) => data.stream = large,
        (SctpChunk::Data(data), 2) => data.message = data.message.wrapping_sub(number),
        (SctpChunk::Data(data), 3) => data.is_first ^= true,
        (SctpChunk::Data(data), 4) => data.is_last ^= true,
        (SctpChunk::Data(data), 5) => data.fragment = number,
        (SctpChunk::Data(data), 6) => data.is_interleaved ^= true,
        (SctpChunk::Data(data), _) => data.data = SctpData::Counted(number.max(1)),
        (SctpChunk::Repair(repair), 0) => repair.first = repair.first.wrapping_add(number),
        (SctpChunk::Repair(repair), 1) => repair.count = large,
        (SctpChunk::Repair(repair), 2) => repair.id = number,
        (SctpChunk::Repair(repair), 3) => repair.head[usize::from(large % 16)] ^= small,
        (SctpChunk::Repair(repair), _) => repair.data = SctpData::Counted(number),
        (SctpChunk::Restored(tsns), 0) => tsns.push(number),
        (SctpChunk::Restored(tsns), _) => {
            tsns.iter_mut().for_each(|tsn| *tsn = tsn.wrapping_add(number));
        }
        (SctpChunk::Sack(sack), 0) => sack.cumulative = sack.cumulative.wrapping_add(number),
        (SctpChunk::Sack(sack), 1) => sack.cumulative = sack.cumulative.wrapping_sub(number),
        (SctpChunk::Sack(sack), 2) => sack.window = number,
        (SctpChunk::Sack(sack), 3) => sack.gaps.push((large.max(1), large.max(1))),
        (SctpChunk::Sack(sack), 4) => sack.gaps.push((1, u16::MAX)),
        (SctpChunk::Sack(sack), 5) => sack.gaps.clear(),
        (SctpChunk::Sack(sack), _) => sack.packets = small % 4,
        (SctpChunk::Forward(forward), 0) => {
            forward.cumulative = forward.cumulative.wrapping_add(number);
        }
        (SctpChunk::Forward(forward), _) => {
            forward.skipped.iter_mut().for_each(|skipped| skipped.message ^= number);
        }
        (SctpChunk::Stamp(stamp), _) => {
            *stamp = Stamp { path: small, sent: u64::from(large) << 48 }
        }
        (SctpChunk::Echo(echo), 0) => echo.number = echo.number.wrapping_add(number),
        (SctpChunk::Echo(echo), _) => echo.stamp.path = small,
        (SctpChunk::Shutdown { cumulative }, _) => *cumulative = cumulative.wrapping_add(number),
        (SctpChunk::Auth(auth), 0) => auth.key = large,
        (SctpChunk::Auth(auth), 1) => auth.hash = large % 4,
        (SctpChunk::Auth(auth), 2) => auth.code = auth.code.slice(..auth.code.len() / 2),
        (SctpChunk::Auth(auth), _) => auth.covered = Bytes::from(vec![small; 4]),
        (SctpChunk::Asconf(asconf), 0) => asconf.number = asconf.number.wrapping_add(number),
        (SctpChunk::Asconf(asconf), way) => {
            let host = address(usize::from(small % 2), large as u8 % 9);
            let zeros = IpAddr::from([0; 4]);
            let address =
                [host, host, zeros, IpAddr::from([large as u8; 16])][usize::from(way % 4)];
            let change = match large / 256 % 3 {
                0 => AddressChange::Add(address),
                1 => AddressChange::Remove(address),
                _ => AddressChange::Primary(address),
            };
            let value = Bytes::copy_from_slice(&large.to_be_bytes());
            asconf.parameters.push(match way {
                7 => AddressParameter::Unknown { kind: large, value },
                _ => AddressParameter::Change { id: number, change },
            });
        }
        (SctpChunk::AsconfAck(ack), 0) => ack.number = ack.number.wrapping_add(number),
        (SctpChunk::AsconfAck(ack), 1) => ack.answers.clear(),
        (SctpChunk::AsconfAck(ack), _) => {
            for answer in &mut ack.answers {
                answer.causes = vec![SctpCause::of(large); usize::from(small % 2)];
            }
        }
        (SctpChunk::Heartbeat(info) | SctpChunk::HeartbeatAck(info), _) => {
            *info = Bytes::copy_from_slice(&vec![small; usize::from(large % 40)]);
        }
        (chunk, 0) => *chunk = SctpChunk::ShutdownAck,
        (chunk, 1) => *chunk = SctpChunk::Shutdown { cumulative: number },
        (chunk, 2) => *chunk = SctpChunk::CookieAck,
        (chunk, 3) => *chunk = SctpChunk::EcnEcho(number),
        (chunk, 4) => *chunk = SctpChunk::Error(Vec::new()),
        _ => packet.tag = packet.tag.wrapping_add(number),
    }
}
