//! RaptorQ against the crate `raptorq`: the same symbols, and the same sets of them decode.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder,
};

use crate::runs;

struct Case {
    shape: BlockShape,
    data: Bytes,
    ours: BlockEncoder,
    peer: SourceBlockEncoder,
    config: ObjectTransmissionInformation,
    padded: u64,
}

impl Case {
    fn new(k: u32, symbol_size: u16, stream: &mut Stream) -> Self {
        let short = stream.below(u64::from(symbol_size)) as u32;
        let len = k * u32::from(symbol_size) - short;
        let mut data = vec![0; len as usize];
        stream.fill(&mut data);
        let data = Bytes::from(data);
        let shape = BlockShape::new(Code::RaptorQ, len, symbol_size).unwrap();
        assert_eq!(shape.source_symbols(), k);
        let mut ours = BlockEncoder::new(shape, data.clone());
        let repair = ours.repair_job().run();
        ours.set_repair(repair);
        let padded = u64::from(k) * u64::from(symbol_size);
        let config = ObjectTransmissionInformation::new(padded, symbol_size, 1, 1, 1);
        let mut padded_data = data.to_vec();
        padded_data.resize(padded as usize, 0);
        let peer = SourceBlockEncoder::new(0, &config, &padded_data);
        Self { shape, data, ours, peer, config, padded }
    }

    fn peer_symbol(&self, esi: u32) -> Vec<u8> {
        let k = self.shape.source_symbols();
        if esi < k {
            let range = self.shape.source_range(esi);
            return self.data[range].to_vec();
        }
        self.peer.repair_packets(esi - k, 1).remove(0).split().1
    }
}

/// Symbols that survive a loss, then repair symbols from anywhere, `count` in all.
fn arriving(k: u32, count: usize, stream: &mut Stream) -> Vec<u32> {
    let loss = stream.unit();
    let mut esis: Vec<u32> = (0..k).filter(|_| stream.unit() >= loss).collect();
    while esis.len() < count {
        let esi = if stream.below(4) == 0 {
            k + stream.below(u64::from((1 << 24) - k - 60_000)) as u32
        } else {
            k + stream.below(2 * u64::from(k) + 10) as u32
        };
        if !esis.contains(&esi) {
            esis.push(esi);
        }
    }
    for i in (1..esis.len()).rev() {
        esis.swap(i, stream.below(i as u64 + 1) as usize);
    }
    esis
}

#[test]
fn random_blocks_cross_in_both_directions() {
    let base = std::env::var("FONTIS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    for seed in base..base + runs(150) {
        println!("FONTIS_SEED={seed}");
        let mut stream = Stream::new(seed, "peer");
        let k = match stream.below(10) {
            0 => 1 + stream.below(12),
            9 => 500 + stream.below(1500),
            _ => 1 + stream.below(300),
        } as u32;
        let symbol_size = match stream.below(4) {
            0 => 1 + stream.below(8),
            1 => 64 * (1 + stream.below(10)),
            _ => 1 + stream.below(600),
        } as u16;
        let case = Case::new(k, symbol_size, &mut stream);
        let extra = stream.below(3) as usize;
        let esis = arriving(k, k as usize + extra, &mut stream);

        let mut ours = BlockDecoder::new(case.shape);
        let mut peer = SourceBlockDecoder::new(0, &case.config, case.padded);
        let mut ours_needs_more = false;
        let packets: Vec<_> = esis
            .iter()
            .map(|esi| {
                let symbol = case.ours.symbol(*esi).unwrap();
                assert_eq!(symbol, case.peer_symbol(*esi), "symbol {esi}");
                ours.add(*esi, &symbol).unwrap();
                let mut symbol = symbol.to_vec();
                symbol.resize(usize::from(symbol_size), 0);
                EncodingPacket::new(PayloadId::new(0, *esi), symbol)
            })
            .collect();
        let decoded = match ours.decode_job().run() {
            Decoded::Block(block) => Some(block),
            Decoded::Failed(mut again) => {
                // The decoder may have refused what was beyond its need at the time.
                for esi in esis.iter() {
                    again.add(*esi, &case.ours.symbol(*esi).unwrap()).unwrap();
                }
                ours_needs_more = again.needed() > 0;
                match again.decode_job().run() {
                    Decoded::Block(block) => Some(block),
                    Decoded::Failed(_) => None,
                }
            }
        };
        let from_peer = peer.decode(packets);
        assert_eq!(
            decoded.is_some(),
            from_peer.is_some(),
            "both succeed or neither: k = {k}, {extra} extra, needs more: {ours_needs_more}"
        );
        if let Some(block) = decoded {
            assert_eq!(block, case.data);
            assert!(from_peer.unwrap()[..block.len()] == block);
        }
    }
}

#[test]
fn every_tabulated_size_makes_the_peers_symbols() {
    // Every K' costs minutes; a sample of them, and all with FONTIS_RUNS=477.
    let mut stream = Stream::new(5, "sizes");
    let mut sizes: Vec<u32> = Vec::new();
    let mut k = 1;
    while k <= 56_403 {
        let padded = fontis_codes::raptorq::EncodingPlan::new(k).unwrap().extended_symbols() as u32;
        sizes.push(padded);
        k = padded + 1;
        if k > 2000 && runs(0) < 477 {
            k += 6000;
        }
    }
    sizes.push(56_403);
    let step = if runs(0) < 477 { 7 } else { 1 };
    for k in sizes.into_iter().rev().step_by(step) {
        println!("k = {k}");
        let case = Case::new(k, 2, &mut stream);
        for esi in (k..k + 20).chain((1 << 24) - 60_000..(1 << 24) - 59_990) {
            assert_eq!(
                case.ours.symbol(esi).unwrap(),
                case.peer_symbol(esi),
                "k = {k}, symbol {esi}"
            );
        }
    }
}
