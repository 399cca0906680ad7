//! A sender to a group, a receiver in it, and whoever knows the group's secrets and says anything.
//!
//! The input is a head of eight bytes (the object, its symbols, the rate, the receivers), and
//! commands: a byte that says which, a byte of argument, and for packets that many bytes.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Time};
use fontis_codes::Code;
use fontis_proto::cast::{
    CastConfig, CastLaw, CastNeed, CastRate, CastReceiver, CastReceiverConfig, CastReport,
    CastSender, CastShape, CastState, CastSymbol, CastTransmit, decode_report, decode_state,
    encode_report, encode_state,
};
use fontis_proto::rate::PathDeparture;

/// Packets that one moment may cause.
const MAX_BURST: usize = 5_000;

/// Nothing panics, nobody sends without end, and what is sent can be read.
pub(crate) fn run(data: &[u8]) {
    let Some((&[head, body, shift, size, kind, rate, members, memory], mut rest)) =
        data.split_first_chunk::<8>()
    else {
        return;
    };
    let code = if kind & 0x07 == 0 { Code::RaptorQ } else { Code::Counting };
    let symbol_size = 1 + u16::from(size);
    let block_size = 16_u32 << (shift % 9);
    let bytes = [head, body].map(|part| u64::from(part) * u64::from(block_size) / 8);
    let shape = CastShape::new(bytes[0], bytes[1], block_size, symbol_size, code);
    let Ok(shape) = shape else { return };
    // What a real code costs is another target's business.
    if code == Code::RaptorQ && (0..shape.blocks()).any(|one| shape.source_symbols(one) > 64) {
        return;
    }
    let rate = Rate::from_bps(1000 + u64::from(rate) * 4000);
    let adaptive = |law| CastRate::Adaptive { law, least: Rate::from_bps(1000), most: rate };
    let rate = match kind & 0x18 {
        0 => CastRate::Fixed(rate),
        0x08 => adaptive(CastLaw::Tfmcc),
        _ => adaptive(CastLaw::Auto),
    };
    let mut sender = CastSender::new(CastConfig::new(rate), shape);
    let now = Time::ZERO;
    (0..u32::from(members)).for_each(|member| sender.join(member, now));
    sender.start(now);
    let memory = u64::from(memory) * 1024;
    let receiver = CastReceiver::new(CastReceiverConfig { memory }, shape, 0, 1);
    let mut group = Group { now, shape, sender, receiver, number: 0 };
    for _ in 0..200 {
        let Some((&[what, argument], more)) = rest.split_first_chunk::<2>() else { return };
        let taken = if what % 8 < 3 { usize::from(argument).min(more.len()) } else { 0 };
        let (packet, more) = more.split_at(taken);
        group.step(what, argument, packet);
        rest = more;
    }
}

struct Group {
    now: Time,
    shape: CastShape,
    sender: CastSender,
    receiver: CastReceiver,
    /// Of packets that nobody sent.
    number: u64,
}

impl Group {
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
                    self.receiver.state(self.number, state, self.now);
                }
            }
            2 => {
                let field = |at: usize| packet.get(at).copied().map_or(0, u32::from);
                let (visit, block, esi) = (field(0) << 8 | field(1), field(2), field(3));
                let block = if field(4) == 255 { u32::MAX - block } else { block };
                let esi = if field(4) == 254 { 0xff_ffff - esi } else { esi };
                let (sent, pace) = (esi.wrapping_mul(visit), block.rotate_left(visit));
                let timing = (what & 0x40 != 0).then_some(PathDeparture { sent, pace });
                self.symbol((visit, block, esi), timing, what & 0x80 != 0);
            }
            3 => self.now += Duration::from_micros(1 << (argument % 32)),
            4 => self.sender_speaks(argument & 1 != 0),
            5 => self.receiver_speaks(argument & 1 != 0),
            6 => match argument & 1 {
                0 => self.sender.leave(u32::from(argument / 2)),
                _ => self.sender.join(u32::from(argument / 2), self.now),
            },
            _ => self.asks(u32::from(what / 8), u32::from(argument)),
        }
        assert!(self.receiver.lacking() <= self.shape.all_symbols());
    }

    /// A symbol of somebody, and what its blocks then are.
    fn symbol(
        &mut self,
        (visit, block, esi): (u32, u32, u32),
        timing: Option<PathDeparture>,
        is_right: bool,
    ) {
        self.number = self.number.wrapping_add(1);
        let carried = self.shape.block(block).filter(|shape| shape.code().carries_bytes());
        let length = carried.map_or(0, |shape| shape.symbol_len(esi));
        let data = Bytes::from(vec![esi as u8; length]);
        let symbol = CastSymbol { visit, block, esi, timing, data };
        self.receiver.symbol(self.number, &symbol, self.now);
        while let Some((block, job)) = self.receiver.take_job() {
            let Some(done) = self.receiver.decoded(block, job.run()) else { continue };
            assert_eq!(done.block, block);
            match is_right {
                true => self.receiver.accept(block),
                false => self.receiver.reject(block),
            }
        }
    }

    fn sender_speaks(&mut self, arrives: bool) {
        for burst in 0.. {
            let Some((number, transmit)) = self.sender.poll(self.now) else { break };
            assert!(burst < MAX_BURST, "a burst without end");
            match transmit {
                CastTransmit::Symbol { visit, block, esi, timing } => {
                    assert!(block < self.shape.blocks());
                    if arrives {
                        self.number = number;
                        self.symbol((visit, block, esi), timing, true);
                    }
                }
                CastTransmit::State(state) => {
                    let state = written(&state);
                    if arrives {
                        self.number = number;
                        self.receiver.state(number, state, self.now);
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
            let mut bytes = Vec::new();
            encode_report(&report, &mut bytes);
            assert_eq!(decode_report(bytes.into()), Ok(report.clone()));
            if arrives {
                self.sender.report(0, &report, self.now);
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
        let report = CastReport { sequence, lacking: u64::MAX, needs, ..CastReport::default() };
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
