//! Symbols, true and false ones, into a decoder.
//!
//! The input is a head of seven bytes (flags, length of the block, symbol size) and commands of
//! four: the identifier of the next symbol, what is wrong with it, and whether to decode ahead.

use bytes::Bytes;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};

/// More symbols would only cost time.
const MAX_SYMBOLS: u32 = 200;
/// Decoding is what costs; a few are enough to see a decoder resume.
const MAX_DECODINGS: usize = 4;

/// Whatever comes in, nothing panics; if all of it was true, what comes out is the block.
pub(crate) fn run(data: &[u8]) {
    let Some((head, commands)) = data.split_first_chunk::<7>() else { return };
    let code = match head[0] & 0x0f {
        0 => Code::RaptorQ,
        1 => Code::Counting,
        2 => Code::Raptor10,
        3 => Code::Lt,
        4 => Code::ReedSolomon,
        5 => Code::CountingRaptor10,
        6 => Code::LtIdeal,
        _ => return,
    };
    let len = u32::from_be_bytes([0, head[1], head[2], head[3]]);
    let symbol_size = u16::from_be_bytes([head[4], head[5]]);
    let Ok(shape) = BlockShape::new(code, len, symbol_size) else { return };
    if shape.source_symbols() > MAX_SYMBOLS || len > 1 << 16 {
        return;
    }
    let block: Bytes = if code.carries_bytes() {
        (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ head[6]).collect()
    } else {
        Bytes::new()
    };
    let mut encoder = BlockEncoder::new(shape, block.clone());
    let repair = encoder.repair_job().run();
    encoder.set_repair(repair);

    let mut decoder = BlockDecoder::new(shape);
    let (mut decodings, mut true_so_far) = (0, true);
    for command in commands.chunks_exact(4).take(1000) {
        let esi = u32::from_be_bytes([0, command[1], command[2], command[3]]);
        // The upper bits reach beyond the code's limit; most identifiers are small, as on a path.
        let esi = match command[0] >> 6 {
            0 | 1 => esi & 0xff,
            2 => esi,
            _ => esi | 0x0100_0000,
        };
        // One LT symbol comes after another, so far ones would only cost time.
        let esi = if matches!(code, Code::Lt | Code::LtIdeal) { esi & 0x0100_ffff } else { esi };
        let mut symbol = encoder.symbol(esi).unwrap_or_default().to_vec();
        match command[0] & 0x0f {
            1 => symbol.push(0),
            2 => drop(symbol.pop()),
            3 if !symbol.is_empty() => {
                symbol[0] ^= 0xff;
                true_so_far = false;
            }
            _ => {}
        }
        let before = decoder.needed();
        let useful = decoder.add(esi, &symbol) == Ok(true);
        assert!(useful || decoder.needed() == before, "a refused symbol changes nothing");
        if command[0] & 0x20 != 0 {
            let needed = decoder.needed();
            decoder.advance();
            assert_eq!(decoder.needed(), needed, "what is done early changes nothing");
        }
        if decoder.needed() > 0 {
            continue;
        }
        decodings += 1;
        match decoder.decode_job().run() {
            Decoded::Block(decoded) => {
                assert!(!true_so_far || decoded == block, "true symbols give the true block");
                return;
            }
            Decoded::Failed(again) if decodings < MAX_DECODINGS => decoder = again,
            Decoded::Failed(_) => return,
        }
    }
}
