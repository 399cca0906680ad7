//! Window codes: what is lost comes back, in order, and hostile symbols do no harm.

use bytes::Bytes;
use fontis_base::{Probability, Stream};
use fontis_codes::window::{RepairSymbol, WindowCode, WindowDecoder, WindowEncoder, WindowError};

fn symbol(id: u32, size: u16) -> Bytes {
    let mut bytes = vec![0; usize::from(size)];
    Stream::new(u64::from(id), "symbol").fill(&mut bytes);
    Bytes::from(bytes)
}

/// Delivers what can be, checks it, and counts it.
fn deliver(decoder: &mut WindowDecoder, size: u16, from: &mut u32) {
    while let Some((id, bytes)) = decoder.pop() {
        assert_eq!(id, *from);
        assert!(bytes == symbol(id, size), "symbol {id}");
        *from += 1;
    }
}

#[test]
fn on_the_fly_coding_brings_back_every_symbol() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "tetrys");
        let size = 1 + stream.below(200) as u16;
        let code = WindowCode::tetrys(64).unwrap();
        let loss = Probability::new(stream.unit() * 0.2);
        let mut encoder = WindowEncoder::new(code, size);
        let mut decoder = WindowDecoder::new(code, size);
        let mut delivered = 0;
        for id in 0..500 {
            assert_eq!(encoder.add(symbol(id, size)).unwrap(), id);
            if !stream.chance(loss) {
                decoder.add_source(id, &symbol(id, size)).unwrap();
            }
            // Two repair symbols for five source symbols are more than is lost.
            if id % 5 < 2 && !stream.chance(loss) {
                decoder.add_repair(&encoder.repair().unwrap()).unwrap();
            }
            deliver(&mut decoder, size, &mut delivered);
            if id % 20 == 0 {
                encoder.retire(decoder.waits_for());
            }
        }
        while delivered < 500 {
            decoder.add_repair(&encoder.repair().unwrap()).unwrap();
            deliver(&mut decoder, size, &mut delivered);
        }
    }
}

#[test]
fn as_many_repair_symbols_as_losses_suffice_almost_always() {
    let code = WindowCode::tetrys(32).unwrap();
    let mut stream = Stream::new(9, "rank");
    let mut failures = 0;
    let trials = 2000;
    for _ in 0..trials {
        let mut encoder = WindowEncoder::new(code, 4);
        let mut decoder = WindowDecoder::new(code, 4);
        let lost: Vec<u32> = (0..32).filter(|_| stream.below(4) == 0).collect();
        for id in 0..32 {
            encoder.add(symbol(id, 4)).unwrap();
            if !lost.contains(&id) {
                decoder.add_source(id, &symbol(id, 4)).unwrap();
            }
        }
        for _ in 0..stream.below(1000) {
            encoder.repair();
        }
        for _ in &lost {
            decoder.add_repair(&encoder.repair().unwrap()).unwrap();
        }
        let mut delivered = 0;
        deliver(&mut decoder, 4, &mut delivered);
        failures += u32::from(delivered < 32);
    }
    // A random matrix over GF(256) is singular once in 254; four standard deviations more are
    // chance.
    let expected = f64::from(trials) / 254.0;
    assert!(f64::from(failures) < expected + 4.0 * expected.sqrt(), "{failures} of {trials}");
}

#[test]
fn a_convolutional_code_repairs_bursts_within_its_memory() {
    let code: WindowCode = "conv:6,4,5".parse().unwrap();
    let mut encoder = WindowEncoder::new(code, 50);
    let mut decoder = WindowDecoder::new(code, 50);
    let mut delivered = 0;
    for id in 0..400 {
        encoder.add(symbol(id, 50)).unwrap();
        // Eight symbols in a row, every forty: twice as much as a group repairs by itself.
        if id % 40 < 32 {
            decoder.add_source(id, &symbol(id, 50)).unwrap();
        }
        for _ in 0..encoder.due() {
            decoder.add_repair(&encoder.repair().unwrap()).unwrap();
        }
        deliver(&mut decoder, 50, &mut delivered);
    }
    assert!(delivered >= 392, "{delivered}");
}

#[test]
fn what_cannot_be_restored_can_be_skipped() {
    let code = WindowCode::tetrys(8).unwrap();
    let mut decoder = WindowDecoder::new(code, 1);
    for id in 1..40 {
        decoder.add_source(id, &symbol(id, 1)).unwrap();
    }
    // The first one fell out of every window; its place is not held for ever.
    let mut delivered = decoder.waits_for();
    assert!(delivered > 0);
    deliver(&mut decoder, 1, &mut delivered);
    assert_eq!(delivered, 40);
    decoder.add_source(42, &symbol(42, 1)).unwrap();
    decoder.skip(42);
    assert_eq!(decoder.pop(), Some((42, symbol(42, 1))));
}

#[test]
fn hostile_symbols_are_errors() {
    let code = WindowCode::tetrys(16).unwrap();
    let mut decoder = WindowDecoder::new(code, 8);
    let repair =
        |first, count, len| RepairSymbol { first, count, id: 7, data: vec![1; len].into() };
    assert!(matches!(decoder.add_source(0, &[0; 7]), Err(WindowError::Length { .. })));
    assert!(matches!(decoder.add_source(u32::MAX, &[0; 8]), Err(WindowError::Ahead(_))));
    assert!(matches!(decoder.add_source(1000, &[0; 8]), Err(WindowError::Ahead(_))));
    assert!(matches!(decoder.add_repair(&repair(0, 0, 8)), Err(WindowError::Window { .. })));
    assert!(matches!(decoder.add_repair(&repair(0, 17, 8)), Err(WindowError::Window { .. })));
    assert!(matches!(decoder.add_repair(&repair(u32::MAX, 2, 8)), Err(WindowError::Window { .. })));
    assert!(matches!(decoder.add_repair(&repair(0, 4, 9)), Err(WindowError::Length { .. })));
    let mut stream = Stream::new(3, "hostile");
    for _ in 0..20_000 {
        let at = decoder.waits_for() + stream.below(40) as u32;
        if stream.below(3) == 0 {
            let _ = decoder.add_source(at, &[at as u8; 8]);
        } else {
            let mut lie = repair(at, stream.below(18) as u16, 8);
            lie.id = stream.next_u64() as u32;
            let _ = decoder.add_repair(&lie);
        }
        if stream.below(4) == 0 {
            decoder.pop();
        }
    }
}

#[test]
fn what_only_counts_restores_the_same_at_the_same_time() {
    for text in ["tetrys:24", "conv:5,4,3"] {
        let code: WindowCode = text.parse().unwrap();
        let mut stream = Stream::new(3, text);
        let (mut encoder, mut decoder) =
            (WindowEncoder::new(code, 40), WindowDecoder::new(code, 40));
        let (mut counts, mut counter) = (WindowEncoder::new(code, 0), WindowDecoder::new(code, 0));
        let mut restored = 0;
        for id in 0..5000 {
            encoder.add(symbol(id, 40)).unwrap();
            counts.add(Bytes::new()).unwrap();
            let is_lost = stream.below(100) < 15;
            if !is_lost {
                decoder.add_source(id, &symbol(id, 40)).unwrap();
                counter.add_source(id, &[]).unwrap();
            }
            let due = if id % 4 == 3 { 1 + u32::from(id % 8 == 3) } else { 0 };
            for _ in 0..due {
                let (repair, counted) = (encoder.repair().unwrap(), counts.repair().unwrap());
                assert_eq!(
                    (repair.first, repair.count, repair.id),
                    (counted.first, counted.count, counted.id)
                );
                let is_of_use = decoder.add_repair(&repair).unwrap();
                assert_eq!(counter.add_repair(&counted).unwrap(), is_of_use, "{text} {id}");
            }
            while let Some((id, bytes)) = decoder.pop() {
                assert!(bytes == symbol(id, 40));
                assert_eq!(counter.pop(), Some((id, Bytes::new())));
                restored += 1;
            }
            assert_eq!((counter.pop(), counter.needed()), (None, decoder.needed()));
            if id % 64 == 0 {
                let behind = id.saturating_sub(20);
                decoder.skip(behind);
                counter.skip(behind);
                encoder.retire(decoder.waits_for());
                counts.retire(counter.waits_for());
            }
        }
        assert!(restored > 2000, "{text}: {restored}");
    }
}
