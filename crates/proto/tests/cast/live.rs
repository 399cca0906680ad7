//! A stream that is cast while it is made, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fontis_base::{Duration, Rate, Stream, Time};
use fontis_codes::BlockEncoder;
use fontis_proto::cast::{
    CastReport, CastState, GateKept, LiveConfig, LiveEvent, LiveReceiver, LiveSender, LiveSymbol,
    LiveTransmit, live_block_time, live_shape,
};

/// The way of a receiver: the share of packets that it loses in each direction, the time of one
/// direction, and when it joins.
#[derive(Clone, Copy, Debug)]
struct Way {
    loss: f64,
    delay: Duration,
    joins: Time,
}

/// A stream of so many bytes a second for so long, over a link of this rate.
#[derive(Clone, Copy, Debug)]
struct Cast {
    stream: Rate,
    link: Rate,
    latency: Duration,
    lasts: Duration,
}

#[derive(Clone)]
enum Event {
    Read,
    Sender,
    Join(usize),
    Symbol(usize, u64, LiveSymbol),
    State(usize, u64, CastState),
    Report(usize, CastReport),
    Look(usize),
}

#[derive(Debug, Default, Clone)]
struct Got {
    blocks: u32,
    gaps: u32,
    wrong: u32,
    /// The longest time from the reading of a byte until it was handed over, without the path's.
    latest: Duration,
    is_over: bool,
}

struct Outcome {
    got: Vec<Got>,
    /// Symbols that left, and source symbols.
    sent: u64,
    needed: u64,
    reports: u64,
}

fn content(block: u32, len: u32) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ block.wrapping_mul(7919)) as u8).collect()
}

struct Play {
    sender: LiveSender,
    receivers: Vec<LiveReceiver>,
    encoders: BTreeMap<u32, (BlockEncoder, Time)>,
    events: BTreeMap<u64, Event>,
    times: BinaryHeap<Reverse<(Time, u64)>>,
    order: u64,
    stream: Stream,
    outcome: Outcome,
    ways: Vec<Way>,
}

impl Play {
    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert(self.order, event);
        self.times.push(Reverse((at, self.order)));
    }

    /// A copy for each receiver that hears it.
    fn spread(&mut self, now: Time, event: impl Fn(usize) -> Event) {
        for i in 0..self.ways.len() {
            let Way { loss, delay, joins } = self.ways[i];
            if now >= joins && self.stream.unit() >= loss {
                self.push(now + delay, event(i));
            }
        }
    }

    fn send(&mut self, now: Time) {
        while let Some((number, transmit)) = self.sender.poll(now) {
            match transmit {
                LiveTransmit::State(state) => {
                    self.spread(now, |i| Event::State(i, number, state.clone()));
                }
                LiveTransmit::Symbol { block, esi, len, at, age } => {
                    let (encoder, _) = self.encoders.get_mut(&block).unwrap();
                    if esi >= encoder.shape().source_symbols() && !encoder.has_repair() {
                        let repair = encoder.repair_job().run();
                        encoder.set_repair(repair);
                    }
                    let data = encoder.symbol(esi).unwrap();
                    let symbol = LiveSymbol { block, esi, len, at, age, data };
                    self.spread(now, |i| Event::Symbol(i, number, symbol.clone()));
                }
            }
        }
        let at = self.sender.timeout();
        if at < Time::MAX {
            self.push(at.max(now + Duration::from_micros(1)), Event::Sender);
        }
    }

    fn look(&mut self, i: usize, now: Time) {
        let (receiver, got) = (&mut self.receivers[i], &mut self.outcome.got[i]);
        let before = got.blocks + got.gaps;
        while let Some(event) = receiver.take(now) {
            match event {
                LiveEvent::Data(data) => {
                    got.blocks += 1;
                    // A block of its own length, read at a time of its own, holds its number.
                    let number = u32::from_be_bytes(data[..4].try_into().unwrap());
                    let (encoder, at) = &self.encoders[&number];
                    got.wrong += u32::from(encoder.data() != &data);
                    let late = now.since(*at + self.ways[i].delay);
                    got.latest = got.latest.max(late);
                }
                LiveEvent::Gap(blocks) => got.gaps += blocks,
                LiveEvent::End => got.is_over = true,
            }
        }
        assert!(got.blocks + got.gaps - before < 2000, "{i}");
        if let Some(report) = receiver.poll(now) {
            self.outcome.reports += 1;
            if self.stream.unit() >= self.ways[i].loss {
                self.push(now + self.ways[i].delay, Event::Report(i, report));
            }
        }
        let at = self.receivers[i].timeout();
        if at < Time::MAX && !self.receivers[i].is_over() {
            self.push(at.max(now + Duration::from_millis(1)), Event::Look(i));
        }
    }
}

fn play(cast: Cast, ways: &[Way], seed: u64) -> Outcome {
    let config = LiveConfig::new(cast.link, cast.latency);
    let all = ways.len();
    let receiver = |i| LiveReceiver::new(cast.latency, 64 << 20, i as u32, seed + i as u64);
    let mut play = Play {
        sender: LiveSender::new(config),
        receivers: (0..all).map(receiver).collect(),
        encoders: BTreeMap::new(),
        events: BTreeMap::new(),
        times: BinaryHeap::new(),
        order: 0,
        stream: Stream::new(seed, "live"),
        outcome: Outcome { got: vec![Got::default(); all], sent: 0, needed: 0, reports: 0 },
        ways: ways.to_vec(),
    };
    for (i, way) in ways.iter().enumerate() {
        play.push(way.joins, Event::Join(i));
    }
    let every = live_block_time(cast.latency);
    let start = Duration::from_secs(1);
    play.push(Time::ZERO + start + every, Event::Read);
    let end = Time::ZERO + start + cast.lasts;
    while let Some(Reverse((now, order))) = play.times.pop() {
        let event = play.events.remove(&order).unwrap();
        match event {
            Event::Read if now >= end => play.sender.end(now),
            Event::Read => {
                let mut left = cast.stream.bytes_in(every).max(4) as u32;
                while left > 0 {
                    let len = left.min(play.sender.block_bytes()).max(4);
                    left = left.saturating_sub(len);
                    let at = now - every;
                    let block = play.sender.push(len, at).unwrap();
                    let mut bytes = content(block, len);
                    bytes[..4].copy_from_slice(&block.to_be_bytes());
                    let encoder = BlockEncoder::new(live_shape(len).unwrap(), bytes.into());
                    play.encoders.insert(block, (encoder, at));
                }
                play.push(now + every, Event::Read);
            }
            Event::Sender => {}
            Event::Join(i) => play.sender.join(i as u32, now),
            Event::Report(i, report) => play.sender.report(i as u32, &report, now),
            Event::Symbol(i, number, symbol) => {
                play.receivers[i].symbol(number, &symbol, now);
                play.look(i, now);
                continue;
            }
            Event::State(i, number, state) => {
                play.receivers[i].state(number, state, now);
                play.look(i, now);
                continue;
            }
            Event::Look(i) => {
                play.look(i, now);
                continue;
            }
        }
        if play.sender.is_over(now) {
            break;
        }
        play.send(now);
    }
    play.outcome.sent = play.sender.symbols_sent();
    play.outcome.needed = play.sender.needed();
    play.outcome
}

#[test]
fn streams_come_in_time() {
    let seed = std::env::var("FONTIS_SEED").map_or(7, |seed| seed.parse().unwrap());
    let runs = std::env::var("FONTIS_RUNS").map_or(8, |runs| runs.parse().unwrap());
    // Runs, gaps and blocks where repairs come in time, and where they must be sent unasked.
    let mut sums = [[0_u32; 3]; 2];
    for seed in seed..seed + runs {
        let mut stream = Stream::new(seed, "class");
        let between = |stream: &mut Stream, low: f64, high: f64| low + stream.unit() * (high - low);
        let bits = 10f64.powf(between(&mut stream, 4.5, 7.0));
        let receivers = 1 + stream.below(20) as usize;
        let ways: Vec<Way> = (0..receivers)
            .map(|_| Way {
                loss: between(&mut stream, 0.0, 0.2),
                delay: Duration::from_secs_f64(between(&mut stream, 0.002, 0.1)),
                joins: Time::ZERO + Duration::from_secs_f64(between(&mut stream, 0.0, 4.0)),
            })
            .collect();
        let longest = ways.iter().map(|way| way.delay).max().unwrap();
        // Repairs come in time, or must be sent unasked.
        let is_short = stream.below(2) == 0;
        let latency = match is_short {
            true => longest * (1 + stream.below(5)) + Duration::from_millis(80),
            false => longest * 2 * (4 + stream.below(6)) + Duration::from_millis(300),
        };
        let cast = Cast {
            stream: Rate::from_bps(bits as u64),
            link: Rate::from_bps((bits * between(&mut stream, 1.6, 4.0)) as u64 + 400_000),
            latency,
            lasts: Duration::from_secs(20),
        };
        let outcome = play(cast, &ways, seed);
        let gaps: u32 = outcome.got.iter().map(|got| got.gaps).sum();
        let blocks: u32 = outcome.got.iter().map(|got| got.blocks).sum();
        let times = outcome.sent as f64 / outcome.needed as f64;
        let worst = ways.iter().map(|way| way.loss).fold(0.0, f64::max);
        let latest = outcome.got.iter().map(|got| got.latest).max().unwrap();
        println!(
            "seed {seed}, short {is_short}: {:.2} Mbit/s to {receivers}, {:.0} % lost at worst, {latency}: {gaps} gaps of \
             {} blocks, {times:.2} symbols each ({:.2} at least), {} reports, {latest} at the latest",
            bits / 1e6,
            worst * 100.0,
            blocks + gaps,
            1.0 / (1.0 - worst),
            outcome.reports,
        );
        let sum = &mut sums[usize::from(is_short)];
        *sum = [sum[0] + 1, sum[1] + gaps, sum[2] + gaps + blocks];
        assert!(latest < latency + Duration::from_millis(5), "seed {seed}: {latest}");
        for got in &outcome.got {
            assert!(got.is_over && got.blocks > 0 && got.wrong == 0, "seed {seed}: {got:?}");
        }
    }
    println!("runs, gaps and blocks, repaired and short: {sums:?}");
    assert!(sums[0][1] * 1000 <= sums[0][2] && sums[1][1] * 200 <= sums[1][2], "{sums:?}");
}
