//! An established connection whose peer says anything that decodes, and whose application does
//! anything that it may.
//!
//! The input is a list of commands: a byte that says which, a byte of argument, and for packets
//! that many bytes of frames.

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Time};
use fontis_proto::dfcp::{
    ChannelId, Config, Connection, ConnectionId, Event, ObjectShape, Packet, SYMBOL_SIZE,
    SendOptions, wire,
};

/// Packets that one touch may cause: the allowance of the first round trip, many times over.
const MAX_BURST: usize = 20_000;
/// How often a driver may be told to come back at once.
const MAX_SPIN: usize = 100;
/// A packet's bytes at the IP layer: what it is matters to no decision here.
const SIZE: u32 = 1280;

struct Side {
    connection: Connection,
    channels: Vec<ChannelId>,
    received: Vec<ChannelId>,
}

impl Side {
    /// Does what a driver does after every touch; returns what is sent.
    fn drive(&mut self, now: Time) -> Vec<Packet> {
        let mut sent = Vec::new();
        for spin in 0.. {
            while let Some(outgoing) = self.connection.poll(now) {
                sent.push(outgoing.packet);
                assert!(sent.len() < MAX_BURST, "a burst without end");
            }
            while let Some(job) = self.connection.job() {
                self.connection.job_done(now, job.run());
            }
            while let Some(event) = self.connection.event() {
                self.on_event(now, event);
            }
            let due = self.connection.timeout().is_some_and(|(at, _)| at <= now);
            if !due {
                break;
            }
            assert!(spin < MAX_SPIN, "{:?} is due for ever", self.connection.timeout());
        }
        sent
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Block { channel, block, .. } if block % 3 == 2 => {
                self.connection.reject_block(now, channel, block);
            }
            Event::Block { channel, block, .. } => {
                self.connection.release_block(now, channel, block);
            }
            Event::BlockWanted { channel, block } => {
                // The last block of the only shape that is sent here is short.
                let shape = shape();
                let data = Bytes::from(vec![7; shape.block_len(block) as usize]);
                assert!(self.connection.supply_block(channel, block, data));
            }
            Event::Readable { channel } => while self.connection.read(now, channel).is_some() {},
            Event::ObjectOpened { channel, .. } => self.received.push(channel),
            _ => {}
        }
    }
}

fn shape() -> ObjectShape {
    ObjectShape { size: 40_000, block_size: 16 << 10, symbol_size: SYMBOL_SIZE, code: 1 }
}

fn config() -> Config {
    // Small windows: hostile symbols may make a receiver hold a window for each of many channels.
    Config { window: 64 << 10, max_block: 32 << 10, live_block: 8 << 10, ..Config::default() }
}

/// The two sides after a handshake over a path of 10 ms.
fn handshake() -> Option<(Time, Side, Side)> {
    let start = Time::ZERO + Duration::from_secs(1);
    let side = |connection| Side { connection, channels: Vec::new(), received: Vec::new() };
    let mut client = side(Connection::connect(start, config(), ConnectionId([1; 8]), None));
    let syn = client.drive(start).into_iter().next()?;
    let Packet::Syn { version, source, hello } = syn else { return None };
    let at = start + Duration::from_millis(5);
    let id = ConnectionId([2; 8]);
    let mut server = side(Connection::accept(at, config(), id, source, version, &hello, SIZE));
    let answers = server.drive(at);
    let now = start + Duration::from_millis(10);
    for packet in answers {
        client.connection.handle(now, packet, SIZE, Ecn::NotEct);
    }
    for packet in client.drive(now) {
        server.connection.handle(now, packet, SIZE, Ecn::NotEct);
    }
    server.drive(now);
    Some((now, client, server))
}

/// Feeds one side; nothing panics, nothing is sent without end, and time goes on.
pub(crate) fn run(data: &[u8]) {
    let Some((mut now, client, server)) = handshake() else {
        panic!("the handshake succeeds");
    };
    let Some((first, mut rest)) = data.split_first() else { return };
    let mut side = if first & 1 == 0 { client } else { server };
    let mut number = 1000;
    for _ in 0..200 {
        let Some((&[command, argument], after)) = rest.split_first_chunk::<2>() else { break };
        rest = after;
        let channel = side.channels.get(usize::from(argument & 7)).copied();
        match command % 12 {
            0..=4 => {
                let (frames, after) = rest.split_at(usize::from(argument).min(rest.len()));
                rest = after;
                let Ok(frames) = wire::decode_frames(Bytes::copy_from_slice(frames)) else {
                    continue;
                };
                number += u64::from(command % 12 / 3) * 2 + 1;
                let packet = Packet::Sealed {
                    destination: side.connection.local_id(),
                    path: 0,
                    number,
                    frames,
                };
                let ecn = if command & 0x80 == 0 { Ecn::NotEct } else { Ecn::Ce };
                side.connection.handle(now, packet, SIZE, ecn);
            }
            5 => now += Duration::from_millis(u64::from(argument)),
            6 => now += Duration::from_micros(u64::from(argument) * 50),
            7 => {
                let length = usize::from(argument) * 150;
                let options = SendOptions { ordered: argument & 1 == 0, ..SendOptions::default() };
                let message = Bytes::from(vec![argument; length]);
                side.channels.push(side.connection.send_message(message, options));
            }
            8 => {
                let id = side.connection.open_stream(SendOptions {
                    deadline: (argument & 1 == 0).then(|| now + Duration::from_millis(300)),
                    ..SendOptions::default()
                });
                side.connection.write(id, Bytes::from(vec![1; usize::from(argument) * 40]));
                side.connection.finish_stream(id);
                side.channels.push(id);
            }
            9 => {
                let id = side.connection.send_object(
                    now,
                    shape(),
                    Bytes::from_static(b"label"),
                    SendOptions { priority: argument, ..SendOptions::default() },
                );
                side.channels.extend(id);
            }
            10 => {
                let received = side.received.get(usize::from(argument >> 4)).copied();
                for id in channel.into_iter().chain(received) {
                    side.connection.abandon(now, id, u32::from(argument));
                }
            }
            _ if argument < 64 => side.connection.finish(),
            _ if argument > 192 => side.connection.close(now, 1, "enough"),
            _ => {}
        }
        side.drive(now);
    }
    let stats = side.connection.stats();
    assert!(stats.symbols_sent >= stats.repair_symbols_sent);
}
