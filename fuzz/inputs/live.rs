//! A sender of a stream, a receiver of it, and whoever knows the group's secrets and says anything.
//!
//! The input is a head of four bytes (the rate, the latency, the receivers, the memory), and
//! commands: a byte that says which, a byte of argument, and for packets that many bytes.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Time};
use fontis_codes::BlockEncoder;
use fontis_proto::cast::{
    CastNeed, CastReport, CastState, GateKept, LiveConfig, LiveEvent, LiveReceiver, LiveSender,
    LiveSymbol, LiveTransmit, decode_live_symbol, decode_report, decode_state, encode_state,
    live_shape,
};

/// Packets that one moment may cause.
const MAX_BURST: usize = 5_000;
/// Bytes of a block, so that decoding costs little.
const MOST: u32 = 20_000;

/// Nothing panics, nobody sends without end, and what the sender alone said comes as it was.
pub(crate) fn run(data: &[u8]) {
    let Some((&[rate, latency, members, memory], mut rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let rate = Rate::from_bps(8000 + u64::from(rate) * 40_000);
    let latency = Duration::from_millis(20 + u64::from(latency) * 10);
    let mut sender = LiveSender::new(LiveConfig::new(rate, latency));
    (0..u32::from(members)).for_each(|member| sender.join(member, Time::ZERO));
    let receiver = LiveReceiver::new(latency, u64::from(memory) * 4096, 0, 1);
    let mut play = Play {
        now: Time::ZERO,
        sender,
        receiver,
        encoders: Vec::new(),
        number: 0,
        is_honest: true,
        next: 0,
    };
    for _ in 0..200 {
        let Some((&[what, argument], more)) = rest.split_first_chunk::<2>() else { return };
        let taken = if what % 8 < 3 { usize::from(argument).min(more.len()) } else { 0 };
        let (packet, more) = more.split_at(taken);
        play.step(what, argument, packet);
        rest = more;
    }
}

struct Play {
    now: Time,
    sender: LiveSender,
    receiver: LiveReceiver,
    /// Those of all blocks.
    encoders: Vec<BlockEncoder>,
    /// Of packets that nobody sent.
    number: u64,
    /// Whether the receiver has heard the sender alone.
    is_honest: bool,
    /// Blocks below it do not come any more.
    next: usize,
}

fn content(block: u32, len: u32) -> Bytes {
    (0..len).map(|i| (i ^ block.wrapping_mul(37)) as u8).collect()
}

impl Play {
    fn step(&mut self, what: u8, argument: u8, packet: &[u8]) {
        let bytes = Bytes::copy_from_slice(packet);
        match what % 8 {
            0 => {
                if let Ok(report) = decode_report(bytes) {
                    self.sender.report(u32::from(what / 8), &report, self.now);
                }
            }
            1 => {
                self.number = self.number.wrapping_add(u64::from(what / 8) * 977);
                if let Ok(state) = decode_state(bytes) {
                    self.is_honest = false;
                    self.receiver.state(self.number, state, self.now);
                }
            }
            2 => match decode_live_symbol(bytes) {
                Ok(symbol) if symbol.len <= MOST => {
                    self.is_honest = false;
                    self.receiver.symbol(self.number, &symbol, self.now);
                }
                _ => {}
            },
            3 => self.now += Duration::from_micros(1 << (argument % 24)),
            4 => self.push(what, argument),
            5 => self.sender_speaks(what & 0x80 == 0, argument),
            6 => self.receiver_speaks(what & 0x80 == 0),
            _ => match argument {
                0 => self.sender.end(self.now),
                1 => self.sender.leave(u32::from(what / 8)),
                2 => self.sender.join(u32::from(what / 8), self.now),
                _ => self.asks(u32::from(what / 8), u32::from(argument)),
            },
        }
        self.take();
    }

    fn push(&mut self, what: u8, argument: u8) {
        let len = u32::from(argument) * 40 * u32::from(1 + what / 128) + 1;
        if !self.sender.has_room() {
            return;
        }
        let Some(block) = self.sender.push(len, self.now) else { return };
        assert_eq!(block as usize, self.encoders.len());
        let shape = live_shape(len).expect("a block of a few symbols");
        self.encoders.push(BlockEncoder::new(shape, content(block, len)));
    }

    /// What the sender has to say comes, or is lost; of symbols those that `lost` says are.
    fn sender_speaks(&mut self, arrives: bool, lost: u8) {
        for burst in 0_usize.. {
            let Some((number, transmit)) = self.sender.poll(self.now) else { break };
            assert!(burst < MAX_BURST, "a burst without end");
            self.number = number;
            match transmit {
                LiveTransmit::State(state) if arrives => {
                    self.receiver.state(number, written(&state), self.now);
                }
                LiveTransmit::State(_) => {}
                LiveTransmit::Symbol { block, esi, len, at, age } => {
                    let encoder = &mut self.encoders[block as usize];
                    if esi >= encoder.shape().source_symbols() && !encoder.has_repair() {
                        let repair = encoder.repair_job().run();
                        encoder.set_repair(repair);
                    }
                    let data = encoder.symbol(esi).expect("within the limit of the code");
                    let symbol = LiveSymbol { block, esi, len, at, age, data };
                    if arrives && lost >> (burst % 8) & 1 == 0 {
                        self.receiver.symbol(number, &symbol, self.now);
                    }
                }
            }
        }
        assert!(self.sender.timeout() > self.now || self.sender.poll(self.now).is_none());
    }

    fn receiver_speaks(&mut self, arrives: bool) {
        for burst in 0.. {
            let Some(report) = self.receiver.poll(self.now) else { break };
            assert!(burst < 100, "reports without end");
            if arrives {
                self.sender.report(0, &report, self.now);
            }
        }
    }

    fn take(&mut self) {
        for burst in 0.. {
            let Some(event) = self.receiver.take(self.now) else { break };
            assert!(burst < MAX_BURST, "events without end");
            let LiveEvent::Data(data) = event else { continue };
            if self.is_honest {
                let mut later = self.encoders[self.next..].iter();
                let at = later.position(|encoder| *encoder.data() == data);
                self.next += at.expect("a later block of the stream") + 1;
            }
        }
    }

    /// A receiver asks for blocks.
    fn asks(&mut self, member: u32, first: u32) {
        let needs = vec![
            CastNeed { first, blocks: member + 1, symbols: u32::MAX / (1 + first) },
            CastNeed { first: first / 2, blocks: u32::MAX, symbols: 1 + member },
        ];
        let sequence = self.now.as_nanos() as u32;
        let newest = u64::from(first);
        let report = CastReport { sequence, newest, needs, loss: 900_000, ..CastReport::default() };
        self.sender.report(member, &report, self.now);
    }
}

/// A state, as it is read by others.
fn written(state: &CastState) -> CastState {
    let mut bytes = Vec::new();
    encode_state(state, &mut bytes);
    let read = decode_state(bytes.into()).expect("what is sent can be read");
    assert_eq!(&read, state);
    read
}
