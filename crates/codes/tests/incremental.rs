//! Symbols one at a time: what is decoded early, and what a decoder goes on with, changes neither
//! the block nor how many symbols it takes.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};

/// The number of symbols that each of the decoders takes: one that decodes ahead, one that goes on
/// where it failed, and one that starts over each time.
fn taken(code: Code, k: u32, symbol_size: u16, seed: u64) -> [u32; 3] {
    let mut stream = Stream::new(seed, "one at a time");
    let mut data = vec![0; (k * u32::from(symbol_size)) as usize - 1];
    stream.fill(&mut data);
    let shape = BlockShape::new(code, data.len() as u32, symbol_size).unwrap();
    let mut encoder = BlockEncoder::new(shape, Bytes::from(data.clone()));
    encoder.set_repair(encoder.repair_job().run());
    // Most source symbols, then repair symbols with some source symbols that were delayed among
    // them.
    let (loss, delay) = (stream.unit() * 0.6, stream.unit() * 0.1);
    let (mut order, mut delayed) = (Vec::new(), Vec::new());
    for esi in 0..k {
        let draw = stream.unit();
        if draw >= loss + delay {
            order.push(esi);
        } else if draw >= loss {
            delayed.push(esi);
        }
    }
    let mut repair = k + stream.below(30) as u32..;
    let mut symbols = Vec::new();
    let mut next = move |index: usize, stream: &mut Stream| {
        while symbols.len() <= index {
            let esi = if !order.is_empty() {
                order.remove(0)
            } else if !delayed.is_empty() && stream.unit() < 0.3 {
                delayed.remove(0)
            } else {
                repair.next().unwrap()
            };
            symbols.push(esi);
        }
        symbols[index]
    };
    let mut taken = [0; 3];
    for (way, taken) in taken.iter_mut().enumerate() {
        let mut decoder = BlockDecoder::new(shape);
        let mut esis = Vec::new();
        let block = loop {
            while decoder.needed() > 0 {
                let esi = next(esis.len(), &mut stream);
                esis.push(esi);
                assert!(decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap());
                if way == 0 && stream.unit() < 0.8 {
                    decoder.advance();
                }
            }
            if way == 2 && code != Code::Lt {
                // Nothing is left of what was tried before.
                decoder = fresh(shape, &encoder, &esis);
            }
            match decoder.decode_job().run() {
                Decoded::Block(block) => break block,
                Decoded::Failed(again) => decoder = again,
            }
        };
        assert!(block == data, "{code}, k = {k}, seed {seed}");
        *taken = esis.len() as u32;
    }
    taken
}

/// A decoder that was given the same symbols, and has tried nothing with them.
fn fresh(shape: BlockShape, encoder: &BlockEncoder, esis: &[u32]) -> BlockDecoder {
    // It takes no more repair symbols than it needs, so those come first.
    let (repair, source): (Vec<u32>, Vec<u32>) =
        esis.iter().partition(|esi| **esi >= shape.source_symbols());
    let mut decoder = BlockDecoder::new(shape);
    for esi in repair.iter().chain(&source) {
        assert!(decoder.add(*esi, &encoder.symbol(*esi).unwrap()).unwrap());
    }
    decoder
}

#[test]
fn what_is_done_early_changes_nothing() {
    for code in [Code::RaptorQ, Code::Raptor10, Code::Lt] {
        for seed in 0..12 {
            let [ahead, resumed, again] = taken(code, 60 + 7 * seed as u32, 1280, seed);
            assert_eq!((ahead, resumed), (resumed, again), "{code}, seed {seed}");
        }
    }
    // Large enough that equations are solved before the last symbol comes.
    let [ahead, resumed, _] = taken(Code::RaptorQ, 900, 64, 99);
    assert_eq!(ahead, resumed);
}

#[test]
fn codes_that_cannot_decode_ahead_ignore_it() {
    for code in [Code::ReedSolomon, Code::Counting] {
        let shape = BlockShape::new(code, 1000, 100).unwrap();
        let len = if code == Code::Counting { 0 } else { 100 };
        let mut decoder = BlockDecoder::new(shape);
        for esi in [1, 2, 3, 12] {
            decoder.add(esi, &vec![0; len]).unwrap();
            decoder.advance();
        }
        assert_eq!(decoder.needed(), 6);
    }
}
