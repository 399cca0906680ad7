//! R10 against the crate `raptor-code`: the same symbols, in both directions.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use raptor_code::{SourceBlockDecoder, SourceBlockEncoder};

#[test]
fn random_blocks_cross_in_both_directions() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "r10");
        let k = 4 + stream.below(if seed % 10 == 0 { 1500 } else { 120 }) as u32;
        let size = 1 + stream.below(100) as usize;
        let mut data = vec![0; k as usize * size];
        stream.fill(&mut data);
        let data = Bytes::from(data);
        let shape = BlockShape::new(Code::Raptor10, data.len() as u32, size as u16).unwrap();
        let mut ours = BlockEncoder::new(shape, data.clone());
        ours.set_repair(ours.repair_job().run());
        let mut peer = SourceBlockEncoder::new(&data, k as usize).unwrap();

        let loss = stream.unit() * 0.9;
        let mut our_decoder = BlockDecoder::new(shape);
        let mut peer_decoder = SourceBlockDecoder::new(k as usize);
        let mut esi = 0;
        let block = loop {
            while our_decoder.needed() > 0 {
                let symbol = ours.symbol(esi).unwrap();
                assert!(symbol == peer.fountain(esi), "k = {k}, symbol {esi}");
                if stream.unit() >= loss {
                    our_decoder.add(esi, &symbol).unwrap();
                    peer_decoder.push_encoding_symbol(&symbol, esi);
                }
                esi += 1;
            }
            match our_decoder.decode_job().run() {
                Decoded::Block(block) => break block,
                Decoded::Failed(again) => our_decoder = again,
            }
        };
        assert!(block == data);
        assert!(peer_decoder.fully_specified(), "what suffices here suffices there");
        assert!(peer_decoder.decode(data.len()).is_some_and(|decoded| decoded == data));
    }
}
