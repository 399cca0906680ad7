//! Probes of the code itself: small experiments without a network.

mod fld;
mod network;
mod schedule;
mod sctp;
mod tcp;
mod tfrc;

use std::sync::OnceLock;

use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream, Time};
use fontis_codes::raptorq::EncodingPlan;
use fontis_codes::{
    BlockDecoder, BlockEncoder, BlockShape, Code, Decoded, Distribution, SparseCode, SparseDecoder,
    SparseEncoder, Taus88,
};
use fontis_proto::published::{
    Coding, Need, PublishedConfig, PublishedEndpoint, PublishedFlags, PublishedHeader,
    PublishedPacket,
};
use fontis_sim::analysis::cellular::{Cellular, PROBE, Web};
use fontis_sim::analysis::estimator::{Estimate, Estimator, EstimatorForm};

use super::value::Value;

/// The result of the experiment of this name.
pub(super) fn probe(name: &str) -> Result<Value, String> {
    if let Some(field) = name.strip_prefix("bits ") {
        return bits(field).map(Value::Number);
    }
    if let Some(rule) = name.strip_prefix("fld ") {
        return fld::probe(rule).ok_or_else(|| format!("there is no probe {name:?}"));
    }
    if let Some(rule) = name.strip_prefix("tcp ") {
        return tcp::probe(rule).ok_or_else(|| format!("there is no probe {name:?}"));
    }
    if let Some(rule) = name.strip_prefix("tfrc ") {
        return tfrc::probe(rule).ok_or_else(|| format!("there is no probe {name:?}"));
    }
    if let Some(rule) = name.strip_prefix("sctp ") {
        return sctp::probe(rule).ok_or_else(|| format!("there is no probe {name:?}"));
    }
    if let Some(rule) = name.strip_prefix("schedule ") {
        return schedule::probe(rule).ok_or_else(|| format!("there is no probe {name:?}"));
    }
    let estimator = Estimator::default();
    Ok(match name {
        "block" => Value::Number(f64::from(PublishedConfig::default().block)),
        "checks" => Value::Number(SparseCode::PROTOTYPE.checks as f64),
        "syn times" => Value::List(copies(Silence::Always, PublishedFlags::SYN)),
        "synack copies" => {
            count(&copies(Silence::OfAnswers, PublishedFlags::SYN.and(PublishedFlags::ACK)))
        }
        "fin copies" => count(&copies(Silence::FromClose, PublishedFlags::FIN)),
        "finack copies" => {
            count(&copies(Silence::FromAnswer, PublishedFlags::FIN.and(PublishedFlags::ACK)))
        }
        "parity" => Value::truth(parity()),
        "half of acknowledgements lost" => {
            let (delivered, open, _) = transfer(&PublishedConfig::default(), 40, true);
            Value::truth(delivered == 40 * 63_536 && open == 0)
        }
        "in order" => {
            let config = PublishedConfig { window: 8, ..PublishedConfig::default() };
            Value::truth(transfer(&config, 60, false).0 == 60 * 63_536)
        }
        "most held" => {
            let config = PublishedConfig { window: 8, ..PublishedConfig::default() };
            Value::Number(transfer(&config, 60, false).2 as f64)
        }
        "switches" => Value::Number(switches() as f64),
        "symbols from a number" => Value::truth(symbols_from_a_number()),
        "rateless" => Value::truth(rateless()),
        "code overhead" => {
            let runs = |run: u32| overhead(&SparseCode::PROTOTYPE, run * 1500);
            Value::List((0..5u32).map(runs).collect())
        }
        "ideal soliton degree" => {
            let k = 65_536.0;
            Value::Number(1.0 / k + (1..65_536).map(|d| 1.0 / f64::from(d)).sum::<f64>())
        }
        "ideal soliton overhead" => {
            let code = SparseCode::lt(65_536, Distribution::IdealSoliton);
            Value::Number((0..3u32).map(|run| overhead(&code, run * 9000)).sum::<f64>() / 3.0)
        }
        "robust soliton overhead" => {
            let distribution = Distribution::RobustSoliton { c: 0.03, delta: 0.5 };
            Value::Number(overhead(&SparseCode::lt(65_536, distribution), 0))
        }
        "raptorq work" => Value::List([1000, 10_000, 50_000].map(work).to_vec()),
        "broadcast" => Value::truth(broadcast()),
        "early acknowledgement" => Value::List(network::early_acknowledgement()),
        "newreno single loss" => Value::List(network::new_reno(1)),
        "newreno burst" => Value::List(network::new_reno(5)),
        "raptorq most symbols" => Value::Number(f64::from(most_symbols())),
        "lt fraction" => Value::Number(lt_fraction()),
        "resumed decoding" => Value::truth(resumed()),
        "estimator probe" => Value::Number(f64::from(PROBE)),
        "estimator distance" => Value::Number(estimator.distance * 1e3),
        "estimator threshold" => Value::Number(estimator.threshold * 1e3),
        "estimator gap" => Value::Number(estimator.gap * 1e3),
        "estimator jitter" => Value::Number(jitter()),
        "estimator printed" => Value::List(hours(EstimatorForm::Printed)),
        "estimator improved" => Value::List(hours(EstimatorForm::Improved)),
        "estimator periods" => {
            let estimate = hour(1, Estimator::default());
            Value::List(estimate.periods.iter().map(|period| period.rate() * 1e-6).collect())
        }
        "estimator by threshold" => {
            let rates = by_threshold().into_iter().filter_map(|estimate| estimate.rate);
            Value::List(rates.map(|rate| rate * 1e-6).collect())
        }
        "estimator counts" => {
            let counts = by_threshold().into_iter().map(|estimate| estimate.periods.len() as f64);
            Value::List(counts.collect())
        }
        _ => return Err(format!("there is no probe {name:?}")),
    })
}

/// The result of the experiment of this name that takes long, or measures time: it is kept as those
/// of runs are.
pub(super) fn long_probe(name: &str) -> Result<Vec<f64>, String> {
    Ok(match name {
        "raptorq failures" => vec![f64::from(failures(10, TRIALS)), f64::from(TRIALS)],
        "fair queueing" => network::fair_queueing(),
        _ => return Err(format!("there is no long probe {name:?}")),
    })
}

fn count(times: &[f64]) -> Value {
    Value::Number(times.len() as f64)
}

/// Bits of a header's field: as many as change when the field is as large as can be.
fn bits(field: &str) -> Result<f64, String> {
    let encode = |header: &PublishedHeader| {
        let mut bytes = Vec::new();
        header.encode(&[], &[], &mut bytes);
        // The checksum follows the others.
        bytes[16..18].fill(0);
        bytes
    };
    let zero = PublishedHeader::default();
    let header = match field {
        "port" => PublishedHeader { source: u16::MAX, ..zero },
        "blockid" => PublishedHeader { block: u32::MAX, ..zero },
        "s" => PublishedHeader { state: [u32::MAX, 0, 0], ..zero },
        "flags" => PublishedHeader { flags: PublishedFlags(u8::MAX), ..zero },
        // The high half of byte 12 holds the header's length in words.
        "offset" => {
            let bytes = encode(&zero);
            return if bytes[12] >> 4 == 7 { Ok(4.0) } else { Err("no offset".to_owned()) };
        }
        // Those that some header sets and another does not.
        "checksum" => {
            let checksum = |block: u32| {
                let mut bytes = Vec::new();
                PublishedHeader { block, ..PublishedHeader::default() }.encode(
                    &[],
                    &[],
                    &mut bytes,
                );
                u16::from_be_bytes([bytes[16], bytes[17]])
            };
            let first = checksum(0);
            let changes =
                (1..=u32::from(u16::MAX)).fold(0, |bits, block| bits | (checksum(block) ^ first));
            return Ok(f64::from(changes.count_ones()));
        }
        _ => return Err(format!("there is no field {field:?}")),
    };
    let (a, b) = (encode(&zero), encode(&header));
    Ok(a.iter().zip(&b).map(|(a, b)| f64::from((a ^ b).count_ones())).sum())
}

/// The losses of packets, by sender and time.
#[derive(Clone, Copy, PartialEq)]
enum Silence {
    /// All, always.
    Always,
    /// All but the first SYN.
    OfAnswers,
    /// All, once the connection stands and the first end closes.
    FromClose,
    /// All of the first end's, once the second closes.
    FromAnswer,
}

/// The times, in seconds, at which packets with exactly these flags are sent.
fn copies(silence: Silence, flags: PublishedFlags) -> Vec<f64> {
    let config = PublishedConfig::default();
    let mut first = PublishedEndpoint::connect(Time::ZERO, config.clone(), [9, 99, 999]);
    let mut second: Option<PublishedEndpoint> = None;
    let (mut times, mut now, mut heard) = (Vec::new(), Time::ZERO, 0);
    while now < Time::ZERO + Duration::from_secs(300) {
        let seconds = now.as_secs_f64();
        if seconds >= 0.5 && silence == Silence::FromClose {
            first.finish();
        }
        if seconds >= 0.5 && silence == Silence::FromAnswer {
            first.finish();
            if let Some(second) = second.as_mut().filter(|_| seconds >= 0.6) {
                second.finish();
            }
        }
        while let Some(packet) = first.poll(now) {
            times.extend((packet.header.flags == flags).then_some(seconds));
            heard += 1;
            let is_lost = match silence {
                Silence::Always => true,
                Silence::OfAnswers => heard > 1,
                Silence::FromClose => seconds >= 0.5,
                Silence::FromAnswer => seconds >= 0.6,
            };
            if is_lost {
                continue;
            }
            match &mut second {
                Some(second) => second.handle(now, &packet, false),
                None => {
                    second = PublishedEndpoint::accept(now, config.clone(), [8, 88, 888], &packet);
                }
            }
        }
        while let Some(packet) = second.as_mut().and_then(|second| second.poll(now)) {
            times.extend((packet.header.flags == flags).then_some(seconds));
            let is_lost =
                silence == Silence::OfAnswers || silence == Silence::FromClose && seconds >= 0.5;
            if !is_lost {
                first.handle(now, &packet, false);
            }
        }
        now += Duration::from_millis(100);
    }
    times
}

/// Bytes delivered, bytes open, and the most blocks held, after a transfer of this number of blocks
/// over 10 ms with block 3 held up; optionally with every other acknowledgement lost.
fn transfer(config: &PublishedConfig, blocks: u64, lose_acks: bool) -> (u64, u64, u64) {
    let config = PublishedConfig { rate: Rate::from_mbps(100), ..config.clone() };
    let mut sender = PublishedEndpoint::connect(Time::ZERO, config.clone(), [9, 99, 999]);
    let mut receiver: Option<PublishedEndpoint> = None;
    sender.write(blocks * u64::from(config.block));
    let mut wire: std::collections::VecDeque<(Time, bool, PublishedPacket)> = Default::default();
    let (mut now, mut acks, mut held_up) = (Time::ZERO, 0, 300);
    let delay = Duration::from_millis(5);
    while now < Time::ZERO + Duration::from_secs(30) {
        while wire.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to_receiver, packet)) = wire.pop_front() else { break };
            match (to_receiver, &mut receiver) {
                (false, _) => sender.handle(now, &packet, false),
                (true, Some(receiver)) => receiver.handle(now, &packet, false),
                (true, None) => {
                    receiver =
                        PublishedEndpoint::accept(now, config.clone(), [8, 88, 888], &packet);
                }
            }
        }
        while let Some(packet) = sender.poll(now) {
            let is_held = packet.header.block == 3 && held_up > 0;
            held_up -= i32::from(is_held);
            if !is_held {
                wire.push_back((now + delay, true, packet));
            }
        }
        while let Some(packet) = receiver.as_mut().and_then(|receiver| receiver.poll(now)) {
            acks += u32::from(packet.header.block > 0);
            if !lose_acks || packet.header.block == 0 || acks % 2 == 0 {
                wire.push_back((now + delay, false, packet));
            }
        }
        now += Duration::from_micros(100);
    }
    let got = receiver.map(|receiver| receiver.stats()).unwrap_or_default();
    (got.delivered, sender.stats().in_flight, got.most_blocks_held)
}

/// The number of the eight combinations of encoding, decoding and acknowledging that carry data.
fn switches() -> usize {
    let works = |switches: u32| {
        let config = PublishedConfig {
            coding: if switches & 1 == 0 { Coding::Counting } else { Coding::Real },
            decode: switches & 2 == 0,
            acknowledge: switches & 4 == 0,
            need: Need::Code,
            ..PublishedConfig::default()
        };
        let mut sender = PublishedEndpoint::connect(Time::ZERO, config.clone(), [9, 99, 999]);
        let mut receiver: Option<PublishedEndpoint> = None;
        sender.write_data(bytes::Bytes::from(vec![7; 60_000]));
        let mut now = Time::ZERO;
        while now < Time::ZERO + Duration::from_secs(2) {
            while let Some(packet) = sender.poll(now) {
                match &mut receiver {
                    Some(receiver) => receiver.handle(now, &packet, false),
                    None => {
                        receiver =
                            PublishedEndpoint::accept(now, config.clone(), [8, 88, 888], &packet);
                    }
                }
            }
            while let Some(packet) = receiver.as_mut().and_then(|receiver| receiver.poll(now)) {
                sender.handle(now, &packet, false);
            }
            now += Duration::from_millis(1);
        }
        receiver.is_some_and(|receiver| receiver.stats().bytes_received >= 60_000)
            && sender.stats().in_flight == 0
    };
    (0..8).filter(|switches| works(*switches)).count()
}

fn message(len: usize) -> Vec<u8> {
    let mut generator = Taus88::new([1, 22, 333]);
    (0..len).map(|_| generator.next_u32() as u8).collect()
}

/// Returns true if message and checks of a block sum up to zero, check by check: a decoder with the
/// message derives the checks from these equations alone, and encoded symbols agree with them.
fn parity() -> bool {
    let code = SparseCode::PROTOTYPE;
    let message = message(code.message);
    let encoder = SparseEncoder::new(&code, 1, &message);
    let mut decoder = SparseDecoder::new(&code, 1, message.len());
    // All of the message but one symbol in a thousand: the checks give the rest.
    for (index, value) in (0u32..).zip(&message).filter(|(index, _)| index % 1000 != 0) {
        decoder.add_source(index, &[*value]);
    }
    let mut symbols = vec![0; 30_000];
    encoder.write(0, &mut symbols);
    (0..).zip(&symbols).for_each(|(index, value)| decoder.add(index, &[*value]));
    decoder.missing() == 0 && decoder.message() == message
}

/// Symbols of a row, by number: the first of them, decoded from a number each.
fn symbols_from_a_number() -> bool {
    let code = SparseCode::lt(400, Distribution::RobustSoliton { c: 0.1, delta: 0.5 });
    let message = message(400);
    let encoder = SparseEncoder::new(&code, 1, &message);
    let mut decoder = SparseDecoder::new(&code, 1, 400);
    let mut symbol = [0];
    for index in (0..3000).rev().step_by(2) {
        encoder.write(index, &mut symbol);
        decoder.add(index, &symbol);
    }
    decoder.missing() == 0 && decoder.message() == message
}

/// Symbols can be made without end, and the later ones are as good as the first.
fn rateless() -> bool {
    overhead(&SparseCode::PROTOTYPE, 1_000_000) < 0.06
}

/// The overhead at which a message is known from encoded symbols that come from number `first` on.
fn overhead(code: &SparseCode, first: u32) -> f64 {
    let message = message(code.message);
    let encoder = SparseEncoder::new(code, 1, &message);
    let mut decoder = SparseDecoder::new(code, 1, message.len());
    let (mut index, mut chunk) = (first, [0; 64]);
    while decoder.missing() > 0 {
        encoder.write(index, &mut chunk);
        for value in &chunk {
            if decoder.missing() > 0 {
                decoder.add(index, &[*value]);
                index += 1;
            }
        }
        if index - first > 4 * code.message as u32 {
            return f64::INFINITY;
        }
    }
    f64::from(index - first) / code.message as f64 - 1.0
}

/// The most source symbols that our RaptorQ takes in a block.
fn most_symbols() -> u32 {
    let fits = |k: u32| fontis_codes::BlockShape::new(fontis_codes::Code::RaptorQ, k, 1).is_ok();
    let (mut low, mut high) = (1u32, 1 << 20);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// The work of encoding for each of this number of source symbols of RaptorQ: bytes of its plan,
/// which lists all operations on symbols.
fn work(k: u32) -> f64 {
    EncodingPlan::new(k).map_or(f64::NAN, |plan| plan.memory() as f64 / f64::from(k))
}

/// Returns true if receivers that lose 1 %, 10 % and 30 % of one row of symbols, without
/// repetition, all decode the same message from it.
fn broadcast() -> bool {
    const K: u32 = 1000;
    let message = Bytes::from(message(16 * K as usize));
    let Ok(shape) = BlockShape::new(Code::RaptorQ, 16 * K, 16) else { return false };
    let mut encoder = BlockEncoder::new(shape, message.clone());
    encoder.set_repair(encoder.repair_job().run());
    [0.01, 0.1, 0.3].into_iter().all(|loss| {
        let mut drops = Stream::new(1, &format!("receiver that loses {loss}"));
        let mut decoder = BlockDecoder::new(shape);
        for esi in 0..2 * K {
            let Some(symbol) = encoder.symbol(esi).filter(|_| drops.unit() >= loss) else {
                continue;
            };
            if decoder.add(esi, &symbol).is_err() {
                return false;
            }
            if decoder.needed() == 0 {
                match decoder.decode_job().run() {
                    Decoded::Block(block) => return block == message,
                    Decoded::Failed(more) => decoder = more,
                }
            }
        }
        false
    })
}

/// Decodings that make a probability of one in a million show.
const TRIALS: u32 = 3_000_000;

/// The number of sets of k + 2 symbols of RaptorQ that do not suffice. A set loses a random share
/// of the source symbols; repair symbols from a random place replace them.
fn failures(k: u32, trials: u32) -> u32 {
    let message = Bytes::from(message(k as usize));
    let Ok(shape) = BlockShape::new(Code::RaptorQ, k, 1) else { return trials };
    let mut encoder = BlockEncoder::new(shape, message.clone());
    encoder.set_repair(encoder.repair_job().run());
    let mut stream = Stream::new(u64::from(k), "sets of symbols");
    let mut failed = 0;
    for _ in 0..trials {
        let loss = stream.unit();
        let mut set: Vec<u32> = (0..k).filter(|_| stream.unit() >= loss).collect();
        let mut next = k + stream.below(1 << 20) as u32;
        while set.len() < k as usize + 2 {
            set.push(next);
            next += 1 + stream.below(3) as u32;
        }
        // Symbols beyond those that suffice cannot make it fail: most sets are done with k of them.
        let mut decoder = BlockDecoder::new(shape);
        let known = set.into_iter().any(|esi| {
            let Some(symbol) = encoder.symbol(esi) else { return false };
            if decoder.add(esi, &symbol).is_err() || decoder.needed() > 0 {
                return false;
            }
            let tried = core::mem::replace(&mut decoder, BlockDecoder::new(shape));
            match tried.decode_job().run() {
                Decoded::Block(block) => block == message,
                Decoded::Failed(more) => {
                    decoder = more;
                    false
                }
            }
        });
        failed += u32::from(!known);
    }
    failed
}

/// The share of a message that the sparse LT code restores without a precode from 5 % more symbols
/// than it has.
fn lt_fraction() -> f64 {
    let code = SparseCode::lt(65_536, Distribution::Shokrollahi);
    let message = message(code.message);
    let encoder = SparseEncoder::new(&code, 1, &message);
    let mut decoder = SparseDecoder::new(&code, 1, message.len());
    let mut symbols = vec![0; code.message * 105 / 100];
    encoder.write(0, &mut symbols);
    (0..).zip(&symbols).for_each(|(index, value)| decoder.add(index, &[*value]));
    1.0 - decoder.missing() as f64 / code.message as f64
}

/// Returns true if a decoder that stalls continues with the next symbols, without the earlier ones.
fn resumed() -> bool {
    let code = SparseCode::PROTOTYPE;
    let message = message(code.message);
    let encoder = SparseEncoder::new(&code, 1, &message);
    let mut decoder = SparseDecoder::new(&code, 1, message.len());
    let mut symbols = vec![0; 70_000];
    encoder.write(0, &mut symbols);
    let (first, more) = symbols.split_at(64_500);
    (0..).zip(first).for_each(|(index, value)| decoder.add(index, &[*value]));
    let stalled = decoder.missing() > 0;
    (64_500..).zip(more).for_each(|(index, value)| decoder.add(index, &[*value]));
    stalled && decoder.missing() == 0
}

/// An hour of web pages over a link of 3 Mbit/s that varies by a fifth.
fn hour(seed: u64, estimator: Estimator) -> Estimate {
    let link = Cellular::varying(seed, 3e6, 0.2, 3600.0);
    let (probes, traffic) = link.carry(seed, &Web::default(), estimator.distance);
    estimator.estimate(&probes, &traffic)
}

/// Estimates of five hours, in Mbit/s.
fn hours(form: EstimatorForm) -> Vec<f64> {
    let estimates = (1..=5).map(|seed| hour(seed, Estimator { form, ..Estimator::default() }));
    estimates.filter_map(|estimate| estimate.rate).map(|rate| rate * 1e-6).collect()
}

fn by_threshold() -> Vec<Estimate> {
    static FOUND: OnceLock<Vec<Estimate>> = OnceLock::new();
    let of = |threshold: f64| hour(1, Estimator { threshold, ..Estimator::default() });
    FOUND.get_or_init(|| [0.05, 0.1, 0.15, 0.2, 0.25, 0.3].into_iter().map(of).collect()).clone()
}

/// The largest deviation of probes' distances without other traffic, in seconds.
fn jitter() -> f64 {
    let link = Cellular::varying(1, 3e6, 0.2, 300.0);
    let silent = Web { think: 1e6, ..Web::default() };
    let (probes, _) = link.carry(1, &silent, 0.1);
    probes.windows(2).map(|pair| (pair[1] - pair[0] - 0.1).abs()).fold(0.0, f64::max)
}
