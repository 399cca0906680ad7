//! RaptorQ beside the crates `raptorq` and `reed-solomon-simd`, in one process and one thread, in
//! turn. `cargo bench --manifest-path peers/Cargo.toml --bench raptorq [-- word…]` runs the lines
//! that have every word.
//!
//! Each figure is megabytes of source data a second of the processor's time, the median of the
//! runs; the ratio is the median of the ratios of runs that followed each other. `FONTIS_BENCH_MS`
//! is how long a line may take (2000).
//!
//! A line "DFCP block" is all that the two ends of a DFCP transfer ask of the codec for one block
//! of 1 MiB: repair symbols as they are wanted, and decoding from what came. Its ratio says how
//! much less of it there is than with the crate `raptorq` in our codec's place.
#![allow(clippy::disallowed_types, reason = "a benchmark measures time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::raptorq::EncodingPlan;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use fontis_codes::{SparseCode, SparseDecoder, SparseEncoder};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!(
        "{:44} {:>8} {:>8} {:>6} {:>8} {:>8}",
        "work", "fontis", "raptorq", "ratio", "target", "rs-simd"
    );
    let run = |name: &str, target: &str, line: &mut dyn FnMut() -> Line| {
        if words.iter().all(|word| name.contains(word.as_str())) {
            line().print(name, target);
        }
    };
    for (k, target) in
        [(10, ""), (100, "4 (6)"), (1000, "4 (6)"), (10_000, "1.8 (2.5)"), (50_000, "1.3 (2)")]
    {
        run(&format!("encode +10% plan K={k} T=1280"), target, &mut || encode(k, 1280, false));
    }
    for (k, target) in [(100, ""), (1000, "3 (5)"), (10_000, "")] {
        run(&format!("encode +10% cold K={k} T=1280"), target, &mut || encode(k, 1280, true));
    }
    for (loss, k, target) in [
        (1, 100, ""),
        (1, 1000, "6"),
        (1, 10_000, ""),
        (10, 100, "3 (5)"),
        (10, 1000, "3 (5)"),
        (10, 10_000, "1.5 (2.5)"),
        (10, 50_000, "1.5"),
        (50, 100, "3 (5)"),
        (50, 1000, "3 (5)"),
        (50, 10_000, "1.5 (2.5)"),
        (50, 50_000, "1.5"),
    ] {
        run(&format!("decode {loss}% lost K={k} T=1280"), target, &mut || decode(k, 1280, loss, 0));
    }
    for (loss, target) in [(1, "5 (8)"), (10, "5 (8)"), (50, "5 (8)")] {
        run(&format!("decode {loss}% lost K=1000 T=64"), target, &mut || decode(1000, 64, loss, 0));
    }
    for loss in [1, 3, 10, 30] {
        run(&format!("DFCP block {loss}% lost K=880 T=1192"), "> 1", &mut || transfer(loss));
    }
    run("encode +10% 2015 code, K=63536 T=1", "40 MB/s", &mut || prototype(false));
    run("decode 2015 code, K=63536 T=1", "10 MB/s", &mut || prototype(true));
    for (loss, k) in [(1, 1000), (3, 1000), (10, 100), (10, 1000), (1, 10_000), (10, 10_000)] {
        let name = format!("last symbol {loss}% lost K={k} T=1280");
        run(&name, "> 1", &mut || last_symbol(k, 1280, loss));
    }
    run("decode 10% lost, 5% extra K=1000 T=1280", "", &mut || decode(1000, 1280, 10, 50));
    for (k, target) in [(1000, ""), (50_000, "0.8 x memcpy")] {
        run(&format!("decode nothing lost K={k} T=1280"), target, &mut || {
            without_loss(k, 1280, |data| data.to_vec())
        });
        run(&format!("copy symbol by symbol K={k} T=1280"), "", &mut || {
            without_loss(k, 1280, |data| {
                let mut copy = Vec::with_capacity(data.len());
                data.chunks_exact(1280).for_each(|symbol| copy.extend_from_slice(symbol));
                copy
            })
        });
    }
}

/// The 2015 code, whole blocks: what encodes a message and a tenth more, and what decodes it from
/// encoded symbols alone.
fn prototype(decodes: bool) -> Line {
    let code = SparseCode::PROTOTYPE;
    let message = block(code.message as u32, 1);
    let mut encoded = vec![0; code.message * 11 / 10];
    SparseEncoder::new(&code, 1, &message).write(0, &mut encoded);
    let packets = encoded.clone();
    let work: Box<dyn FnMut() -> Duration> = if decodes {
        Box::new(|| {
            timed(|| {
                let mut decoder = SparseDecoder::new(&code, 1, message.len());
                for (index, symbol) in (0..).zip(packets.chunks(1)) {
                    if decoder.missing() > 0 {
                        decoder.add(index, symbol);
                    }
                }
                assert!(decoder.message() == message, "decoded wrongly");
            })
        })
    } else {
        Box::new(|| timed(|| SparseEncoder::new(&code, 1, &message).write(0, &mut encoded)))
    };
    measure(message.len(), vec![work])
}

/// Times of runs in turn: ours, the peer's, and a third one's.
struct Line {
    bytes: usize,
    times: [Vec<Duration>; 3],
}

impl Line {
    fn print(mut self, name: &str, target: &str) {
        let mut ratios: Vec<f64> = self.times[1]
            .iter()
            .zip(&self.times[0])
            .map(|(a, b)| a.as_secs_f64() / b.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios.get(ratios.len() / 2).map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let bytes = self.bytes;
        let rates = self.times.each_mut().map(|times| {
            times.sort_unstable();
            let median = times.get(times.len() / 2);
            median.map_or("-".into(), |time| {
                format!("{:.0}", bytes as f64 / 1e6 / time.as_secs_f64())
            })
        });
        println!(
            "{name:44} {:>8} {:>8} {ratio:>6} {target:>8} {:>8}",
            rates[0], rates[1], rates[2]
        );
    }
}

/// Runs all in turn for as long as a line may take.
fn measure(bytes: usize, mut works: Vec<Box<dyn FnMut() -> Duration + '_>>) -> Line {
    let budget =
        std::env::var("FONTIS_BENCH_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(2000);
    let mut times = [const { Vec::new() }; 3];
    for work in &mut works {
        work();
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(budget) || times[0].len() < 5 {
        for (work, times) in works.iter_mut().zip(&mut times) {
            times.push(work());
        }
    }
    Line { bytes, times }
}

/// How long the processor took: other work on the machine does not count.
fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let start = now();
    let result = black_box(work());
    let time = now() - start;
    drop(result);
    time
}

fn block(k: u32, symbol_size: u16) -> Bytes {
    let mut data = vec![0; k as usize * usize::from(symbol_size)];
    Stream::new(7, "block").fill(&mut data);
    Bytes::from(data)
}

fn config(k: u32, symbol_size: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(u64::from(k) * u64::from(symbol_size), symbol_size, 1, 1, 1)
}

fn encode(k: u32, symbol_size: u16, cold: bool) -> Line {
    let (data, repair) = (block(k, symbol_size), k / 10);
    let shape = BlockShape::new(Code::RaptorQ, data.len() as u32, symbol_size).unwrap();
    let plan = Arc::new(EncodingPlan::new(k).unwrap());
    let peer_plan = SourceBlockEncodingPlan::generate(k as u16);
    let config = config(k, symbol_size);
    let mut out = vec![0; repair as usize * usize::from(symbol_size)];
    let ours = || {
        timed(|| {
            let plan =
                if cold { Arc::new(EncodingPlan::new(k).unwrap()) } else { Arc::clone(&plan) };
            let job = BlockEncoder::new(shape, data.clone()).repair_job();
            job.write_with(&plan, k..k + repair, &mut out);
        })
    };
    let peer = || {
        timed(|| {
            let fresh = cold.then(|| SourceBlockEncodingPlan::generate(k as u16));
            let plan = fresh.as_ref().unwrap_or(&peer_plan);
            SourceBlockEncoder::with_encoding_plan(0, &config, &data, plan)
                .repair_packets(0, repair)
        })
    };
    let blocks = || {
        timed(|| {
            reed_solomon_simd::encode(
                k as usize,
                repair.max(1) as usize,
                data.chunks_exact(usize::from(symbol_size)),
            )
            .unwrap()
        })
    };
    measure(data.len(), vec![Box::new(ours), Box::new(peer), Box::new(blocks)])
}

/// The source symbols that are left when some percent of them are lost, and how many that are.
fn survivors(k: u32, loss: u32) -> (Vec<u32>, u32) {
    let lost = (k * loss / 100).max(1);
    let mut stream = Stream::new(u64::from(k * 100 + loss), "loss");
    let mut esis: Vec<u32> = (0..k).collect();
    for i in (1..esis.len()).rev() {
        esis.swap(i, stream.below(i as u64 + 1) as usize);
    }
    esis.truncate((k - lost) as usize);
    esis.sort_unstable();
    (esis, lost)
}

/// One block of a DFCP transfer: source symbols are the block's own bytes; repair symbols are made
/// one at a time until the other end has the block.
fn transfer(loss: u32) -> Line {
    const SYMBOL_SIZE: u16 = 1192;
    let k = (1u32 << 20).div_ceil(u32::from(SYMBOL_SIZE));
    let data = block(k, SYMBOL_SIZE);
    let shape = BlockShape::new(Code::RaptorQ, data.len() as u32, SYMBOL_SIZE).unwrap();
    let (esis, _) = survivors(k, loss);
    let ours = || {
        timed(|| {
            let mut encoder = BlockEncoder::new(shape, data.clone());
            encoder.set_repair(encoder.repair_job().run());
            let mut decoder = BlockDecoder::new(shape);
            for esi in &esis {
                decoder.add(*esi, &data[shape.source_range(*esi)]).unwrap();
            }
            let mut repair = k..;
            loop {
                while decoder.needed() > 0 {
                    let esi = repair.next().unwrap();
                    decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
                }
                match decoder.decode_job().run() {
                    Decoded::Block(block) => break block,
                    Decoded::Failed(again) => decoder = again,
                }
            }
        })
    };
    let (config, plan) = (config(k, SYMBOL_SIZE), SourceBlockEncodingPlan::generate(k as u16));
    let peer = || {
        // It owns its packets; what came of the source is not counted.
        let mut packets: Vec<_> = esis
            .iter()
            .map(|esi| {
                let symbol = data[shape.source_range(*esi)].to_vec();
                EncodingPacket::new(PayloadId::new(0, *esi), symbol)
            })
            .collect();
        timed(|| {
            let encoder = SourceBlockEncoder::with_encoding_plan(0, &config, &data, &plan);
            let mut decoder = SourceBlockDecoder::new(0, &config, data.len() as u64);
            let lost = k - esis.len() as u32;
            packets.extend((0..lost).flat_map(|number| encoder.repair_packets(number, 1)));
            // One symbol more for each attempt that lacks rank.
            let more = (lost..).flat_map(|number| encoder.repair_packets(number, 1));
            let first = decoder.decode(std::mem::take(&mut packets));
            first.or_else(|| more.filter_map(|packet| decoder.decode([packet])).next()).unwrap()
        })
    };
    measure(data.len(), vec![Box::new(ours), Box::new(peer)])
}

/// What is left of the source symbols, and the first repair symbols that suffice with them, so that
/// all decode at the first attempt.
fn sufficient(
    data: &Bytes,
    k: u32,
    symbol_size: u16,
    loss: u32,
    extra: u32,
) -> (BlockShape, Vec<(u32, Bytes)>) {
    let shape = BlockShape::new(Code::RaptorQ, data.len() as u32, symbol_size).unwrap();
    let mut encoder = BlockEncoder::new(shape, data.clone());
    encoder.set_repair(encoder.repair_job().run());
    let (esis, lost) = survivors(k, loss);
    let mut first = k;
    loop {
        let all = esis.iter().copied().chain(first..first + lost + extra);
        let symbols: Vec<(u32, Bytes)> =
            all.map(|esi| (esi, encoder.symbol(esi).unwrap())).collect();
        let mut decoder = BlockDecoder::new(shape);
        symbols.iter().for_each(|(esi, symbol)| decoder.add(*esi, symbol).map(drop).unwrap());
        match decoder.decode_job().run() {
            Decoded::Block(block) => {
                assert!(block == *data, "decoded wrongly");
                return (shape, symbols);
            }
            Decoded::Failed(_) => first += lost,
        }
    }
}

/// From the last symbol to the block, with what can be done before done before, and in the peer's
/// place the same without that. What counts as a megabyte a second is the block's size over that
/// time.
fn last_symbol(k: u32, symbol_size: u16, loss: u32) -> Line {
    let data = block(k, symbol_size);
    let (shape, symbols) = sufficient(&data, k, symbol_size, loss, 0);
    let (last, others) = symbols.split_last().unwrap();
    let run = |ahead: bool| {
        let mut decoder = BlockDecoder::new(shape);
        for (esi, symbol) in others {
            decoder.add(*esi, symbol).unwrap();
            if ahead {
                decoder.advance();
            }
        }
        timed(|| {
            decoder.add(last.0, &last.1).unwrap();
            let Decoded::Block(block) = decoder.decode_job().run() else { panic!("it did before") };
            block
        })
    };
    measure(data.len(), vec![Box::new(|| run(true)), Box::new(|| run(false))])
}

fn decode(k: u32, symbol_size: u16, loss: u32, extra: u32) -> Line {
    let data = block(k, symbol_size);
    let size = usize::from(symbol_size);
    let (esis, lost) = survivors(k, loss);
    let (shape, symbols) = sufficient(&data, k, symbol_size, loss, extra);
    let config = config(k, symbol_size);
    let ours = || {
        timed(|| {
            let mut decoder = BlockDecoder::new(shape);
            for (esi, symbol) in &symbols {
                decoder.add(*esi, symbol).unwrap();
            }
            let Decoded::Block(block) = decoder.decode_job().run() else { panic!("it did before") };
            block
        })
    };
    let peer = || {
        let packets: Vec<_> = symbols
            .iter()
            .map(|(esi, symbol)| EncodingPacket::new(PayloadId::new(0, *esi), symbol.to_vec()))
            .collect();
        timed(|| {
            let mut decoder = SourceBlockDecoder::new(0, &config, data.len() as u64);
            decoder.decode(packets).expect("ours could, too")
        })
    };
    // It has not every shape.
    let recovery = reed_solomon_simd::encode(k as usize, lost as usize, data.chunks_exact(size));
    let Ok(recovery) = recovery else {
        return measure(data.len(), vec![Box::new(ours), Box::new(peer)]);
    };
    let blocks = || {
        timed(|| {
            let originals = esis.iter().map(|esi| {
                (*esi as usize, &data[*esi as usize * size..(*esi as usize + 1) * size])
            });
            reed_solomon_simd::decode(
                k as usize,
                lost as usize,
                originals,
                recovery.iter().enumerate(),
            )
            .unwrap()
        })
    };
    measure(data.len(), vec![Box::new(ours), Box::new(peer), Box::new(blocks)])
}

/// Ours, with a copy of the block to fresh memory in place of the peer: the ratio is the copy's
/// time over ours. For a large block fresh memory costs more than copying; a decoder asks for huge
/// pages, the copies take what they get.
fn without_loss(k: u32, symbol_size: u16, copied: fn(&[u8]) -> Vec<u8>) -> Line {
    let data = block(k, symbol_size);
    let shape = BlockShape::new(Code::RaptorQ, data.len() as u32, symbol_size).unwrap();
    let symbols: Vec<Bytes> = (0..k).map(|esi| data.slice(shape.source_range(esi))).collect();
    let ours = || {
        timed(|| {
            let mut decoder = BlockDecoder::new(shape);
            for (esi, symbol) in (0..).zip(&symbols) {
                decoder.add(esi, symbol).unwrap();
            }
            let Decoded::Block(block) = decoder.decode_job().run() else { panic!("all is there") };
            block
        })
    };
    let copy = || timed(|| copied(black_box(&data[..])));
    measure(data.len(), vec![Box::new(ours), Box::new(copy)])
}
