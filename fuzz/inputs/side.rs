//! One side of a DFCP connection, its application, and a peer that sends any frames.
//!
//! The input is a list of commands: a byte that says which, a byte of argument, and for packets
//! that many bytes of frames, of which the command also says the path.

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Time};
use fontis_proto::dfcp::{
    ChannelId, DfcpConfig, DfcpConnection, DfcpEvent, DfcpPacket, ObjectShape, ParamFields, Params,
    SYMBOL_SIZE, SendOptions, wire,
};

/// Packets that one touch may cause: the allowance of the first round trip, many times over.
const MAX_BURST: usize = 20_000;
/// How often a driver may be told to come back at once.
const MAX_SPIN: usize = 100;
/// A packet's bytes at the IP layer: what it is matters to no decision here.
pub(crate) const SIZE: u32 = 1280;

pub(crate) struct Side {
    pub(crate) connection: DfcpConnection,
    channels: Vec<ChannelId>,
    received: Vec<ChannelId>,
}

impl Side {
    pub(crate) const fn new(connection: DfcpConnection) -> Self {
        Self { connection, channels: Vec::new(), received: Vec::new() }
    }

    /// Does what a driver does after every touch; returns what is sent.
    pub(crate) fn drive(&mut self, now: Time) -> Vec<DfcpPacket> {
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

    /// Lets the peer and the application do what the commands say: nothing panics, nothing is sent
    /// without end, and time goes on.
    pub(crate) fn feed(&mut self, mut now: Time, mut rest: &[u8]) {
        let mut number = 1000;
        for _ in 0..200 {
            let Some((&[command, argument], after)) = rest.split_first_chunk::<2>() else { break };
            rest = after;
            let channel = self.channels.get(usize::from(argument & 7)).copied();
            match command % 12 {
                0..=4 => {
                    let (frames, after) = rest.split_at(usize::from(argument).min(rest.len()));
                    rest = after;
                    let Ok(frames) = wire::decode_frames(Bytes::copy_from_slice(frames)) else {
                        continue;
                    };
                    number += u64::from(command % 12 / 3) * 2 + 1;
                    let packet = DfcpPacket::Sealed {
                        destination: self.connection.local_id(),
                        path: command / 12 % 4,
                        number,
                        frames,
                    };
                    let ecn = if command & 0x80 == 0 { Ecn::NotEct } else { Ecn::Ce };
                    self.connection.handle(now, packet, SIZE, ecn);
                }
                5 => now += Duration::from_millis(u64::from(argument)),
                6 => now += Duration::from_micros(u64::from(argument) * 50),
                7 => {
                    let length = usize::from(argument) * 150;
                    let options =
                        SendOptions { ordered: argument & 1 == 0, ..SendOptions::default() };
                    let message = Bytes::from(vec![argument; length]);
                    self.channels.push(self.connection.send_message(message, options));
                }
                8 => {
                    let id = self.connection.open_stream(SendOptions {
                        deadline: (argument & 1 == 0).then(|| now + Duration::from_millis(300)),
                        ..SendOptions::default()
                    });
                    self.connection.write(id, Bytes::from(vec![1; usize::from(argument) * 40]));
                    self.connection.finish_stream(id);
                    self.channels.push(id);
                }
                9 => {
                    let id = self.connection.send_object(
                        now,
                        shape(),
                        Bytes::from_static(b"label"),
                        SendOptions { priority: argument, ..SendOptions::default() },
                    );
                    self.channels.extend(id);
                }
                10 => {
                    let received = self.received.get(usize::from(argument >> 4)).copied();
                    for id in channel.into_iter().chain(received) {
                        self.connection.abandon(now, id, u32::from(argument));
                    }
                }
                _ if argument < 64 => self.connection.finish(),
                _ if argument > 192 => self.connection.close(now, 1, "enough"),
                // The peer can guess these tokens.
                _ if argument < 96 => {
                    self.connection.open_path(28, argument & 1 == 0, [argument & 3; 8]);
                }
                _ if argument < 128 => {
                    self.connection.close_path(now, argument & 3);
                }
                _ if argument < 160 => {
                    self.connection.challenge(argument & 3, 48, [argument & 3; 8]);
                    self.connection.challenge_answered(argument & 3);
                }
                _ => self.connection.path_changed(now, argument & 3),
            }
            self.drive(now);
        }
        let stats = self.connection.stats();
        assert!(stats.symbols_sent >= stats.repair_symbols_sent);
    }

    fn on_event(&mut self, now: Time, event: DfcpEvent) {
        match event {
            DfcpEvent::Block { channel, block, .. } if block % 3 == 2 => {
                self.connection.reject_block(now, channel, block);
            }
            DfcpEvent::Block { channel, block, .. } => {
                self.connection.release_block(now, channel, block);
            }
            DfcpEvent::BlockWanted { channel, block } => {
                // The last block of the only shape that is sent here is short.
                let shape = shape();
                let data = Bytes::from(vec![7; shape.block_len(block) as usize]);
                assert!(self.connection.supply_block(channel, block, data));
            }
            DfcpEvent::Readable { channel } => {
                while self.connection.read(now, channel).is_some() {}
            }
            DfcpEvent::ObjectOpened { channel, .. } => self.received.push(channel),
            _ => {}
        }
    }
}

fn shape() -> ObjectShape {
    ObjectShape { size: 40_000, block_size: 16 << 10, symbol_size: SYMBOL_SIZE, code: 1 }
}

pub(crate) fn config() -> DfcpConfig {
    // Small windows: hostile symbols may make a receiver hold a window for each of many channels.
    let fields = ParamFields { window: 64 << 10, max_block: 32 << 10, ..ParamFields::default() };
    let params = Params::new(fields).expect("parameters within their limits");
    DfcpConfig { params, live_block: 8 << 10, left_out: Some(1), ..DfcpConfig::default() }
}
