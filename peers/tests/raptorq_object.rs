//! Objects of several source blocks and sub-blocks, in both directions with the crate `raptorq`.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::raptorq::{ObjectDecoder, Oti, SourceBlockEncoder};
use raptorq::{Decoder, Encoder, EncodingPacket, ObjectTransmissionInformation};

#[test]
fn objects_cross_in_both_directions() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "object");
        let alignment = [1u8, 2, 4, 8][stream.below(4) as usize];
        let symbol_size = u16::from(alignment) * (1 + stream.below(40) as u16);
        let sub_blocks =
            1 + stream.below(u64::from(symbol_size / u16::from(alignment)).min(5)) as u16;
        let len = 1 + stream.below(u64::from(symbol_size) * 300);
        let symbols = len.div_ceil(u64::from(symbol_size));
        let source_blocks = 1 + stream.below(symbols.min(6)) as u8;
        let oti = Oti::new(len, symbol_size, source_blocks, sub_blocks, alignment).unwrap();
        let config = ObjectTransmissionInformation::new(
            len,
            symbol_size,
            source_blocks,
            sub_blocks,
            alignment,
        );
        assert_eq!(oti.to_bytes(), config.serialize());
        let mut data = vec![0; len as usize];
        stream.fill(&mut data);

        let mut ours = ObjectDecoder::new(oti);
        let mut peer = Decoder::new(config);
        let (mut done_here, mut done_there) = (false, None);
        for packet in Encoder::new(&data, config).get_encoded_packets(40) {
            if stream.below(10) > 0 {
                ours.add(&packet.serialize()).unwrap();
            }
        }
        for number in 0..source_blocks {
            let range = oti.block(number).unwrap().range;
            let bytes = Bytes::copy_from_slice(&data[range.start as usize..range.end as usize]);
            let encoder = SourceBlockEncoder::new(oti, number, bytes).unwrap();
            let k = oti.block(number).unwrap().symbols;
            for esi in 0..k + k / 4 + 10 {
                if stream.below(10) == 0 {
                    continue;
                }
                let mut packet = encoder.packet(esi).unwrap().to_vec();
                // The crate wants the padding.
                packet.resize(4 + usize::from(symbol_size), 0);
                done_there = done_there.or(peer.decode(EncodingPacket::deserialize(&packet)));
            }
        }
        if let Ok(blocks) = ours.finish() {
            assert!(blocks.concat() == data);
            done_here = true;
        }
        assert!(done_here, "forty more symbols a block replace a tenth of 300");
        assert!(done_there.is_some_and(|decoded| decoded == data));
    }
}
