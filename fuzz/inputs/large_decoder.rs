//! Decoders of blocks of any size, up to K = 56,403 symbols, with all symbols that somebody likes
//! to send.
//!
//! The input is a head of five bytes (code and scale, source symbols, symbol size, seed) and runs
//! of symbols of four bytes: the first identifier, the number, and the step to the next.

use bytes::Bytes;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};

/// Nothing panics, and if all symbols are true, what comes out is the block. The budget of a
/// decoding, whatever symbols somebody chose for it, is the fuzzer's time limit for an input
/// (`scripts/fuzz.sh`).
pub(crate) fn run(data: &[u8]) {
    let Some((&[code, high, low, size, seed], runs)) = data.split_first_chunk::<5>() else {
        return;
    };
    // Large ones cost most: of 128 scales one has all sizes, two have a quarter of them, four a
    // sixteenth, and so on. The seed takes part, because a fuzzer prefers small bytes.
    let scale = (code / 2) ^ (seed.wrapping_mul(0x9d) >> 1);
    let shift = 2 * (u32::from(scale) + 1).ilog2();
    let code = if code & 1 == 0 { Code::RaptorQ } else { Code::Raptor10 };
    let symbols = (u32::from(u16::from_be_bytes([high, low])) % 56_404) >> shift;
    let symbol_size = u16::from(size % 4) + 1;
    let Ok(shape) = BlockShape::new(code, symbols * u32::from(symbol_size), symbol_size) else {
        return;
    };
    let block: Bytes =
        (0..shape.len()).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect();
    let mut encoder = BlockEncoder::new(shape, block.clone());
    let mut decoder = BlockDecoder::new(shape);
    // Source symbols need no code; repair symbols take an encoding.
    let mut has_repair = false;
    let (mut taken, mut is_true) = (0, true);
    // More would only cost time.
    let most = 2 * shape.source_symbols() + 64;
    for run in runs.as_chunks::<4>().0.iter().take(64) {
        if decoder.needed() == 0 || taken > most {
            break;
        }
        let [first, spread, count, step] = run.map(u32::from);
        let first = (first << 8 | spread) * if step & 0x40 == 0 { 1 } else { 251 };
        for i in 0..count * 64 {
            let esi = first + i * (1 + (step & 0x0f));
            if esi >= shape.source_symbols() && !has_repair {
                let repair = encoder.repair_job().run();
                encoder.set_repair(repair);
                has_repair = true;
            }
            let mut symbol = encoder.symbol(esi).unwrap_or_default().to_vec();
            if step & 0x80 != 0 && !symbol.is_empty() {
                symbol[0] ^= 0xff;
                is_true = false;
            }
            let _ = decoder.add(esi, &symbol);
            taken += 1;
            if decoder.needed() == 0 || taken > most {
                break;
            }
        }
    }
    if decoder.needed() > 0 {
        return;
    }
    if let Decoded::Block(decoded) = decoder.decode_job().run() {
        assert!(!is_true || decoded == block, "true symbols give the true block");
    }
}
