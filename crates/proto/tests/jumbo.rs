//! Objects in packets that hold several symbols.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Serializer, Stream};
use fontis_codes::Code;
use fontis_proto::dfcp::{DfcpEvent, ObjectShape, SendOptions};

use crate::pair::Pair;

#[test]
fn an_object_in_packets_of_several_wide_symbols_is_whole_after_losses() {
    let content: Bytes =
        (0..1u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut pair = Pair::connected();
    pair.bottleneck = Some([(); 2].map(|()| Serializer::new(Rate::from_mbps(30))));
    let mut random = Stream::new(5, "losses");
    pair.loss = Box::new(move |_, _| random.below(10) == 0);
    let shape = ObjectShape::partition(8 << 20, 1192, Code::RaptorQ);
    let now = pair.now;
    pair.client.send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
    let mut left = shape.blocks().unwrap();
    while left > 0 {
        pair.run_for(Duration::from_millis(1));
        let now = pair.now;
        for (_, event) in core::mem::take(&mut pair.events) {
            match event {
                DfcpEvent::BlockWanted { channel, block } => {
                    assert!(pair.client.supply_block(channel, block, content.clone()));
                }
                DfcpEvent::Block { channel, block, data } => {
                    assert!(data == content, "block {block} is another");
                    pair.server().release_block(now, channel, block);
                    left -= 1;
                }
                _ => {}
            }
        }
    }
    let sent = pair.sent.iter().map(|sent| sent.size).max();
    assert!(sent > Some(8000), "packets were no larger than {sent:?}");
}
