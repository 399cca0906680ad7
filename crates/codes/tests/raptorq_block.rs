//! RaptorQ and R10 blocks: the symbols of RFC 6330 and RFC 5053.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockEncoder, BlockShape, Code};

/// An encoder of k random symbols, with all that its repair symbols need.
fn encoder(code: Code, k: u32, symbol_size: u16, stream: &mut Stream) -> BlockEncoder {
    let mut data = vec![0; k as usize * usize::from(symbol_size)];
    stream.fill(&mut data);
    let shape = BlockShape::new(code, data.len() as u32, symbol_size).unwrap();
    let mut encoder = BlockEncoder::new(shape, Bytes::from(data));
    encoder.set_repair(encoder.repair_job().run());
    encoder
}

#[test]
fn symbols_are_the_same_however_they_are_asked_for() {
    let mut stream = Stream::new(3, "ways");
    for (k, symbol_size) in [(1, 1), (10, 63), (101, 64), (700, 1000), (40_000, 7)] {
        let encoder = encoder(Code::RaptorQ, k, symbol_size, &mut stream);
        let esis = k + 5..k + 45;
        let mut kept = vec![0; 40 * usize::from(symbol_size)];
        assert!(encoder.write_repair(esis.clone(), &mut kept));
        let mut once = vec![0; kept.len()];
        encoder.repair_job().write(esis.clone(), &mut once);
        let single: Vec<u8> = esis.flat_map(|esi| encoder.symbol(esi).unwrap()).collect();
        assert!(kept == once && kept == single, "k = {k}");
    }
}

/// FNV-1a of the first twenty repair symbols. The tests in `peers` compare the symbols with those
/// of the crates `raptorq` and `raptor-code`.
#[test]
fn repair_symbols_keep_their_bytes() {
    let golden = [
        (Code::RaptorQ, 1, 0xc878_6a36_550a_7545),
        (Code::RaptorQ, 10, 0x1756_801a_4398_f5f2),
        (Code::RaptorQ, 100, 0xe0cc_bb78_b4df_c0a7),
        (Code::RaptorQ, 1000, 0x2531_7d09_fb1b_adc6),
        (Code::RaptorQ, 10_000, 0x4438_1796_ee51_887d),
        (Code::Raptor10, 10, 0xe241_637f_8ca8_f040),
        (Code::Raptor10, 1000, 0x65ad_be30_6982_cbf3),
    ];
    let mut stream = Stream::new(5, "golden");
    let made = golden.map(|(code, k, _)| {
        let encoder = encoder(code, k, 4, &mut stream);
        let bytes = (k..k + 20).flat_map(|esi| encoder.symbol(esi).unwrap());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (code, k, hash)
    });
    assert_eq!(made, golden);
}
