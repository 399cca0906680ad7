//! A member of the group, who knows its key, sends what looks like the sender's.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream, Time};
use fontis_codes::{BlockEncoder, Code};
use fontis_proto::cast::{
    CastConfig, CastGate, CastLaw, CastOrigin, CastRate, CastReceipt, CastReceiver,
    CastReceiverConfig, CastSender, CastShape, CastState, CastSymbol, CastTransmit, ReceiptBook,
};
use fontis_proto::rate::PathDeparture;
use proptest::prelude::*;

const SYMBOL: u16 = 64;
const BLOCK: u32 = 64 * 64;
const DELAY: Duration = Duration::from_millis(1);
const RATE: Rate = Rate::from_mbps(5);
const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FORGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66));

/// What a packet says.
#[derive(Clone)]
enum Says {
    Symbol(CastSymbol),
    State(CastState),
    Receipt(CastReceipt),
}

/// A digest of what stands in a packet; a real one is a hash.
fn digest(number: u64, says: &Says) -> u64 {
    let text = match says {
        Says::Symbol(one) => format!("{number} {one:?}"),
        Says::State(one) => format!("{number} {one:?}"),
        Says::Receipt(one) => format!("{number} {one:?}"),
    };
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

struct Outcome {
    took: Time,
    wrong: u64,
    accused: u64,
    innocent: u64,
    forged: u64,
}

/// One sender, one receiver that loses a share of what comes, and a forger who sends a packet for
/// each of the sender's with this probability.
struct Play {
    encoders: Vec<BlockEncoder>,
    gate: CastGate,
    stream: Stream,
    evil: f64,
    old: Vec<(u64, Says)>,
    outcome: Outcome,
}

impl Play {
    fn take(&mut self, number: u64, says: Says, source: IpAddr, at: Time) {
        let origin = CastOrigin { number, digest: digest(number, &says), source, at };
        match says {
            Says::Symbol(symbol) => self.gate.symbol(origin, symbol),
            Says::State(state) => self.gate.state(origin, state),
            Says::Receipt(receipt) => self.gate.receipt(origin, &receipt),
        }
        while let Some((block, job)) = self.gate.receiver_mut().take_job() {
            let decoded = self.gate.receiver_mut().decoded(block, job.run());
            let Some(decoded) = decoded else { continue };
            if decoded.data == right(block, self.encoders[block as usize].shape().len()) {
                self.gate.receiver_mut().accept(block);
            } else {
                self.outcome.wrong += 1;
                self.gate.reject(block);
            }
        }
    }

    /// Something that looks like what the sender sends as packet `number`, or sent before.
    fn forge(&mut self, number: u64, at: Time) {
        let pick = self.stream.below(5);
        if pick == 0 && !self.old.is_empty() {
            let (number, says) =
                self.old[self.stream.below(self.old.len() as u64) as usize].clone();
            self.take(number, says, FORGER, at);
            return;
        }
        let number = match pick {
            1 => number,
            2 => number + 1 + self.stream.below(80),
            3 => u64::MAX - self.stream.below(9),
            _ => number.saturating_sub(self.stream.below(300)),
        };
        let block = self.stream.below(self.encoders.len() as u64) as u32;
        let data = Bytes::from(vec![0xee; usize::from(SYMBOL)]);
        let (visit, esi) = (self.stream.below(9) as u32, self.stream.below(90) as u32);
        self.outcome.forged += 1;
        self.take(
            number,
            Says::Symbol(CastSymbol { visit, block, esi, timing: None, data }),
            FORGER,
            at,
        );
    }
}

fn right(block: u32, length: u32) -> Bytes {
    (0..length).map(|i| (i * 7 + i / 251 + block * 13) as u8).collect()
}

fn play(blocks: u32, loss: f64, evil: f64, seed: u64) -> Outcome {
    let body = u64::from(blocks) * u64::from(BLOCK);
    let shape = CastShape::new(0, body, BLOCK, SYMBOL, Code::RaptorQ).unwrap();
    let encoders = (0..blocks).map(|block| {
        let own = shape.block(block).unwrap();
        let mut encoder = BlockEncoder::new(own, right(block, own.len()));
        let repair = encoder.repair_job().run();
        encoder.set_repair(repair);
        encoder
    });
    let outcome = Outcome { took: Time::ZERO, wrong: 0, accused: 0, innocent: 0, forged: 0 };
    let receiver = CastReceiver::new(CastReceiverConfig::default(), shape, 0, seed);
    let mut play = Play {
        encoders: encoders.collect(),
        gate: CastGate::new(receiver),
        stream: Stream::new(seed, "forger"),
        evil,
        old: Vec::new(),
        outcome,
    };
    let mut sender = CastSender::new(CastConfig::new(CastRate::Fixed(RATE)), shape);
    let mut book = ReceiptBook::default();
    let mut now = Time::ZERO;
    sender.join(0, now);
    sender.start(now);
    while !play.gate.receiver().is_complete() {
        let mut sent = Vec::new();
        while let Some((number, transmit)) = sender.poll(now) {
            let says = match transmit {
                CastTransmit::State(state) => Says::State(state),
                CastTransmit::Symbol { visit, block, esi, timing } => {
                    let data = play.encoders[block as usize].symbol(esi).unwrap();
                    Says::Symbol(CastSymbol { visit, block, esi, timing, data })
                }
            };
            book.note(number, digest(number, &says), RATE, now);
            sent.push((number, says));
            if let Some(receipt) = book.poll(now, sender.is_idle()) {
                let (number, says) = (sender.number(now), Says::Receipt(receipt));
                book.note_receipt(number, digest(number, &says));
                sent.push((number, says));
            }
        }
        if let Some(receipt) = book.poll(now, sender.is_idle()) {
            let (number, says) = (sender.number(now), Says::Receipt(receipt));
            book.note_receipt(number, digest(number, &says));
            sent.push((number, says));
        }
        for (number, says) in sent {
            if play.stream.unit() < play.evil {
                play.forge(number, now + DELAY);
            }
            play.old.push((number, says.clone()));
            if play.stream.unit() >= loss {
                play.take(number, says, SENDER, now + DELAY);
            }
        }
        while let Some(report) = play.gate.receiver_mut().poll(now + DELAY) {
            sender.report(0, &report, now + DELAY * 2);
        }
        let next = sender.timeout().min(book.timeout()).min(play.gate.receiver().timeout());
        now = next.max(now + Duration::from_micros(50));
        assert!(now < Time::from_nanos(60_000_000_000), "seed {seed}: it never ends");
    }
    play.outcome.took = now;
    play.outcome.accused = play.gate.forged();
    play.outcome.innocent = play.gate.sources().get(&SENDER).copied().unwrap_or(0);
    play.outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A forger delays nobody for long, is counted, and nobody else is blamed.
    #[test]
    fn what_a_member_forges_is_counted_and_costs_little(
        seed in any::<u64>(),
        loss in 0.0..0.3_f64,
        evil in 0.02..0.6_f64,
    ) {
        let outcome = play(40, loss, evil, seed);
        prop_assert_eq!(outcome.innocent, 0, "seed {}", seed);
        prop_assert!(outcome.accused * 2 > outcome.forged, "seed {}: {} of {}", seed,
            outcome.accused, outcome.forged);
        prop_assert!(outcome.wrong <= 3, "seed {}: {} blocks", seed, outcome.wrong);
    }
}

#[test]
fn one_forged_packet_in_ten_takes_a_tenth_more_time_at_most() {
    for (loss, most) in [(0.0, 1.10), (0.1, 1.10)] {
        let time = |evil, seed| play(200, loss, evil, seed).took.as_secs_f64();
        let (mut honest, mut forged) = (0.0, 0.0);
        for seed in 1..=4 {
            honest += time(0.0, seed);
            forged += time(0.1, seed);
        }
        println!("loss {loss}, seeds 1 to 4: {:.3} times as long", forged / honest);
        assert!(forged < honest * most, "{forged} {honest}");
    }
}

#[test]
fn without_a_forger_nobody_is_accused_and_nothing_waits() {
    for seed in 1..=8 {
        let outcome = play(20, 0.2, 0.0, seed);
        assert_eq!((outcome.accused, outcome.wrong), (0, 0), "seed {seed}");
    }
}

/// Where TFMCC says how fast to send, nobody in the group can put another law in its place.
#[test]
fn a_symbol_that_says_when_it_left_means_nothing_by_tfmcc() {
    let shape = CastShape::new(0, 1 << 20, BLOCK, SYMBOL, Code::Counting).unwrap();
    let allowed = |law| {
        let mut receiver = CastReceiver::new(CastReceiverConfig::default(), shape, 0, 1);
        let state = CastState { law: Some(law), rate: 10_000, members: 1, ..CastState::default() };
        let mut reports = Vec::new();
        for number in 0..2000 {
            let now = Time::ZERO + Duration::from_millis(10) * number;
            let timing = Some(PathDeparture { sent: 10_000 * number as u32, pace: 9000 });
            let (block, esi) = (number as u32 / 64, number as u32 % 63);
            let symbol = CastSymbol { visit: 1, block, esi, timing, data: Bytes::new() };
            match number % 10 {
                5 => receiver.state(number, state.clone(), now),
                _ => receiver.symbol(number, &symbol, now),
            }
            reports.extend(receiver.poll(now));
        }
        assert!(reports.len() > 5, "{}", reports.len());
        reports.iter().map(|report| report.allowed).max()
    };
    assert_eq!(allowed(CastLaw::Tfmcc), Some(0));
    assert!(allowed(CastLaw::Auto) > Some(5000), "{:?}", allowed(CastLaw::Auto));
}
