//! Any bytes as object transmission information, and any as packets for it.
//!
//! The input is twelve bytes of transmission information and packets, each behind a byte that says
//! how long it is.

use fontis_codes::raptorq::{ObjectDecoder, Oti};

/// Decoding larger objects would only cost time.
const MAX_LENGTH: u64 = 1 << 16;
const MAX_SYMBOLS: u32 = 200;

/// Whatever comes in, nothing panics; transmission information that is accepted is what was
/// written.
pub(crate) fn run(data: &[u8]) {
    let Some((head, mut packets)) = data.split_first_chunk::<12>() else { return };
    let Ok(oti) = Oti::from_bytes(head) else { return };
    let mut written = oti.to_bytes();
    // The reserved byte is not read.
    written[5] = head[5];
    assert_eq!(&written, head);
    let mut end = 0;
    for number in 0..oti.source_blocks() {
        let block = oti.block(number).expect("the object has this block");
        assert_eq!(block.range.start, end);
        end = block.range.end;
    }
    assert_eq!(end, oti.transfer_length());
    assert!(oti.sub_symbols().sum::<usize>() == usize::from(oti.symbol_size()));
    let largest = oti.block(0).map_or(0, |block| block.symbols);
    if oti.transfer_length() > MAX_LENGTH || largest > MAX_SYMBOLS {
        return;
    }
    let mut decoder = ObjectDecoder::new(oti);
    while let Some((len, rest)) = packets.split_first() {
        let (packet, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        packets = rest;
        let before = decoder.needed();
        let refused = decoder.add(packet).is_err();
        // Of several symbols the first ones may have been taken.
        if refused && packet.len() <= 4 + usize::from(oti.symbol_size()) {
            assert_eq!(decoder.needed(), before, "a refused packet changes nothing");
        }
    }
    if let Ok(blocks) = decoder.finish() {
        let len: usize = blocks.iter().map(|block| block.len()).sum();
        assert!(blocks.is_empty() || len as u64 == oti.transfer_length());
    }
}
