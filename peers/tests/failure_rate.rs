//! The sets of symbols that do not suffice are the same for both decoders: a property of the code.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder};

use crate::runs;

#[test]
fn sets_of_symbols_that_fail_here_fail_in_the_crate_raptorq() {
    let trials = runs(3000);
    for k in [10, 100] {
        println!("K = {k}");
        let mut stream = Stream::new(u64::from(k), "failure rate");
        let mut data = vec![0; k as usize];
        stream.fill(&mut data);
        let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
        let mut encoder = BlockEncoder::new(shape, Bytes::from(data.clone()));
        encoder.set_repair(encoder.repair_job().run());
        let config = ObjectTransmissionInformation::new(u64::from(k), 1, 1, 1, 1);
        let mut failures = 0;
        for trial in 0..trials {
            let loss = stream.unit();
            let mut esis: Vec<u32> = (0..k).filter(|_| stream.unit() >= loss).collect();
            let mut esi = k + stream.below(1 << 20) as u32;
            while esis.len() < k as usize {
                esis.push(esi);
                esi += 1 + stream.below(3) as u32;
            }
            let mut decoder = BlockDecoder::new(shape);
            let mut packets = Vec::new();
            for esi in esis {
                let symbol = encoder.symbol(esi).unwrap();
                decoder.add(esi, &symbol).unwrap();
                packets.push(EncodingPacket::new(PayloadId::new(0, esi), symbol.to_vec()));
            }
            let fails = matches!(decoder.decode_job().run(), Decoded::Failed(_));
            let peer = SourceBlockDecoder::new(0, &config, u64::from(k)).decode(packets);
            assert_eq!(fails, peer.is_none(), "K = {k}, trial {trial}");
            failures += u64::from(fails);
        }
        println!("{failures} of {trials} sets of K symbols fail");
        assert!(trials < 3000 || failures > 0, "a comparison of failures needs failures");
    }
}
