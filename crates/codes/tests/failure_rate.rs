//! The share of sets of k + h symbols that do not suffice, against the code's documentation.
//!
//! A sample here, and 10⁵ trials a point with `FONTIS_RUNS=100000` (`make soak`).
//! `peers/tests/failure_rate.rs` compares with the crate `raptorq`.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};

fn runs(default: u32) -> u32 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

/// The number of sets of k + h random symbols, of `trials`, that did not suffice for h = 0, 1, 2.
fn failures(k: u32, trials: u32) -> [u32; 3] {
    let mut stream = Stream::new(u64::from(k), "failure rate");
    let mut data = vec![0; k as usize];
    stream.fill(&mut data);
    let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
    let mut encoder = BlockEncoder::new(shape, Bytes::from(data.clone()));
    encoder.set_repair(encoder.repair_job().run());
    let mut failures = [0; 3];
    for _ in 0..trials {
        let loss = stream.unit();
        let mut decoder = BlockDecoder::new(shape);
        for esi in 0..k {
            if stream.unit() >= loss {
                decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
            }
        }
        let mut esi = k + stream.below(1 << 20) as u32;
        for failure in &mut failures {
            while decoder.needed() > 0 {
                decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
                esi += 1 + stream.below(3) as u32;
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
    failures
}

#[test]
fn raptorq_fails_as_seldom_as_documented() {
    let trials = runs(3000);
    for k in [10, 100] {
        let failures = failures(k, trials);
        let n = f64::from(trials);
        let p = f64::from(failures[0]) / n;
        println!(
            "K = {k}: {failures:?} of {trials} failed with 0, 1, 2 extra symbols (with none {p:.2e} ± {:.2e})",
            1.96 * (p * (1.0 - p) / n).sqrt()
        );
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
