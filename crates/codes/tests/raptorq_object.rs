//! Objects of several source blocks and sub-blocks, and hostile packets.

use bytes::Bytes;
use fontis_base::Stream;
use fontis_codes::raptorq::{ObjectDecoder, Oti, PayloadId, SourceBlockEncoder};

fn object(len: usize, stream: &mut Stream) -> Vec<u8> {
    let mut data = vec![0; len];
    stream.fill(&mut data);
    data
}

#[test]
fn objects_of_several_blocks_and_sub_blocks_are_restored() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut stream = Stream::new(seed, "object");
        let alignment = [1u8, 2, 4, 8][stream.below(4) as usize];
        let symbol_size = u16::from(alignment) * (1 + stream.below(40) as u16);
        let sub_blocks =
            1 + stream.below(u64::from(symbol_size / u16::from(alignment)).min(5)) as u16;
        let len = 1 + stream.below(u64::from(symbol_size) * 300);
        let source_blocks = 1 + stream.below(len.div_ceil(u64::from(symbol_size)).min(6)) as u8;
        let oti = Oti::new(len, symbol_size, source_blocks, sub_blocks, alignment).unwrap();
        let data = object(len as usize, &mut stream);
        let mut decoder = ObjectDecoder::new(oti);
        for number in 0..source_blocks {
            let block = oti.block(number).unwrap();
            let range = block.range.start as usize..block.range.end as usize;
            let bytes = Bytes::copy_from_slice(&data[range]);
            let encoder = SourceBlockEncoder::new(oti, number, bytes).unwrap();
            for esi in 0..block.symbols + block.symbols / 4 + 10 {
                if stream.below(10) > 0 {
                    decoder.add(&encoder.packet(esi).unwrap()).unwrap();
                }
            }
        }
        assert!(decoder.finish().is_ok_and(|blocks| blocks.concat() == data));
    }
}

#[test]
fn packets_may_carry_several_symbols() {
    let data = object(950, &mut Stream::new(1, "several"));
    let oti = Oti::new(950, 100, 1, 1, 1).unwrap();
    let mut decoder = ObjectDecoder::new(oti);
    assert!(!decoder.add(&[&[0, 0, 0, 0], &data[..500]].concat()).unwrap());
    assert_eq!(decoder.needed(), 5);
    assert!(decoder.add(&[&[0, 0, 0, 5], &data[500..]].concat()).unwrap());
    assert!(decoder.finish().is_ok_and(|blocks| blocks.concat() == data));
}

#[test]
fn hostile_packets_are_errors() {
    let oti = Oti::new(10_000, 100, 2, 1, 1).unwrap();
    let mut decoder = ObjectDecoder::new(oti);
    let packet = |block, esi: u32, len: usize| {
        let mut packet = PayloadId { block, esi }.to_bytes().unwrap().to_vec();
        packet.resize(4 + len, 7);
        packet
    };
    for bad in [
        vec![],
        vec![0, 0, 0],
        packet(0, 0, 0),
        packet(2, 0, 100),
        packet(0, 0, 99),
        packet(0, 50, 99),
        packet(0, (1 << 24) - 1, 200),
        packet(0, 10, 150),
    ] {
        assert!(decoder.add(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn an_empty_object_is_complete_at_once() {
    let decoder = ObjectDecoder::new(Oti::new(0, 100, 1, 1, 1).unwrap());
    assert!(decoder.finish().is_ok_and(|blocks| blocks.is_empty()));
}
