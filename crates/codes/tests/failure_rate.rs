//! How often k + h symbols do not suffice, against what the code's documentation says: a sample
//! here, and 10⁵ trials a point with `FONTIS_RUNS=100000` (`make soak`). The crate `raptorq` is
//! given the same sets.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder};

fn runs(default: u32) -> u32 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

/// Of `trials` sets of k + h random symbols, how many did not suffice for h = 0, 1, 2; and how many
/// of k the crate `raptorq` could not decode.
fn failures(k: u32, trials: u32) -> ([u32; 3], u32) {
    let mut stream = Stream::new(u64::from(k), "failure rate");
    let mut data = vec![0; k as usize];
    stream.fill(&mut data);
    let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
    let mut encoder = BlockEncoder::new(shape, Bytes::from(data.clone()));
    encoder.set_repair(encoder.repair_job().run());
    let config = ObjectTransmissionInformation::new(u64::from(k), 1, 1, 1, 1);
    let (mut failures, mut failures_of_peer) = ([0; 3], 0);
    for _ in 0..trials {
        let loss = stream.unit();
        let mut packets = Vec::new();
        let mut decoder = BlockDecoder::new(shape);
        for esi in 0..k {
            if stream.unit() >= loss {
                let symbol = encoder.symbol(esi).unwrap();
                decoder.add(esi, &symbol).unwrap();
                packets.push((esi, symbol));
            }
        }
        let mut esi = k + stream.below(1 << 20) as u32;
        for (extra, failure) in failures.iter_mut().enumerate() {
            while decoder.needed() > 0 {
                let symbol = encoder.symbol(esi).unwrap();
                decoder.add(esi, &symbol).unwrap();
                packets.push((esi, symbol));
                esi += 1 + stream.below(3) as u32;
            }
            if extra == 0 {
                let packets = packets.drain(..).map(|(esi, symbol)| {
                    EncodingPacket::new(PayloadId::new(0, esi), symbol.to_vec())
                });
                let decoded = SourceBlockDecoder::new(0, &config, u64::from(k)).decode(packets);
                failures_of_peer += u32::from(decoded.is_none());
            }
            match decoder.decode_job().run() {
                Decoded::Block(block) => {
                    assert!(block == data);
                    break;
                }
                Decoded::Failed(again) => {
                    *failure += 1;
                    decoder = again;
                }
            }
        }
    }
    (failures, failures_of_peer)
}

#[test]
fn raptorq_fails_as_seldom_as_documented() {
    let trials = runs(3000);
    for k in [10, 100] {
        let (failures, of_peer) = failures(k, trials);
        let n = f64::from(trials);
        let p = f64::from(failures[0]) / n;
        println!(
            "K = {k}: {failures:?} of {trials} failed with 0, 1, 2 extra symbols (with none {p:.2e} ± {:.2e}); \
             {of_peer} with none in the crate raptorq",
            1.96 * (p * (1.0 - p) / n).sqrt()
        );
        assert_eq!(failures[0], of_peer, "what fails is a property of the code");
        for (extra, limit) in [(0, 6e-3), (1, 5e-5), (2, 0.0)] {
            // Three standard deviations above the limit is chance, and with it one failure where
            // few are expected.
            let bound = n * limit + 3.0 * (n * limit).sqrt() + f64::from(u8::from(limit > 0.0));
            assert!(
                f64::from(failures[extra as usize]) <= bound,
                "K = {k}, {extra} extra: {failures:?} of {trials}"
            );
        }
        // A decoder that never fails would be too good to be true.
        assert!(n * 5e-3 < 10.0 || failures[0] > 0, "K = {k}");
    }
}

#[test]
fn counted_lt_codes_need_as_many_symbols_as_real_ones() {
    for (k, trials) in [(100, 400), (1000, 200)] {
        let needed = |code: Code| {
            let shape = BlockShape::new(code, k, 1).unwrap();
            let data = if code.carries_bytes() { vec![7; k as usize] } else { Vec::new() };
            let mut encoder = BlockEncoder::new(shape, Bytes::from(data));
            encoder.set_repair(encoder.repair_job().run());
            let mut stream = Stream::new(u64::from(k), "lt");
            let one = |_| {
                let mut decoder = BlockDecoder::new(shape);
                let first = k + stream.below(100_000) as u32;
                let mut esi = first;
                loop {
                    while decoder.needed() > 0 {
                        decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
                        esi += 1;
                    }
                    match decoder.decode_job().run() {
                        Decoded::Block(_) => return esi - first - k,
                        Decoded::Failed(again) => decoder = again,
                    }
                }
            };
            let mut extra: Vec<u32> = (0..trials).map(one).collect();
            extra.sort_unstable();
            [trials / 10, trials / 2, trials * 9 / 10].map(|place| f64::from(extra[place]))
        };
        for (code, counting) in
            [(Code::Lt, Code::CountingLt), (Code::LtIdeal, Code::CountingLtIdeal)]
        {
            let (real, counted) = (needed(code), needed(counting));
            println!("{code}, k = {k}: {real:?} symbols beyond k, counted {counted:?}");
            for (real, counted) in real.into_iter().zip(counted) {
                assert!((counted / real - 1.0).abs() < 0.35, "{code} {k}: {real} and {counted}");
            }
        }
    }
}
