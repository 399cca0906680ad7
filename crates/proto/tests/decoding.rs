//! What a peer can make a connection decode.

use bytes::Bytes;
use fontis_base::{Duration, Ecn};
use fontis_proto::dfcp::{
    ConnectionId, DfcpEvent, DfcpPacket, Frame, Live, LiveKind, ObjectShape, Open, SYMBOL_SIZE,
    SymbolsFrame,
};

use super::pair::{Pair, Side};

/// Gives the server a packet by its client with this frame.
fn give(pair: &mut Pair, number: u64, frame: Frame) {
    let destination = ConnectionId([2; 8]);
    let frames = [frame].into_iter().collect();
    let packet = DfcpPacket::Sealed { destination, path: 0, number, frames };
    let now = pair.now;
    pair.server().handle(now, packet, 1280, Ecn::NotEct);
}

fn symbols(
    channel: u32,
    block: u32,
    esi: u32,
    count: u16,
    live: Option<Live>,
    whole: bool,
    data: Vec<u8>,
) -> Frame {
    let (len, long) = (data.len() as u16, false);
    let data = Bytes::from(data);
    Frame::Symbols(SymbolsFrame { channel, block, esi, count, live, whole, long, len, data })
}

fn open(channel: u32, block_size: u32, symbol_size: u16) -> Frame {
    let object = ObjectShape { size: u64::from(block_size), block_size, symbol_size, code: 1 };
    Frame::Open(Box::new(Open { channel, object, label: Bytes::new() }))
}

#[test]
fn blocks_of_many_tiny_symbols_are_refused() {
    let mut pair = Pair::connected();
    give(&mut pair, 1000, open(100, 56_403, 1));
    give(&mut pair, 1001, open(102, 56_403, 63));
    assert_eq!(pair.server().stats().violations, 2);
    give(&mut pair, 1002, open(104, 56_403, 1192));
    give(&mut pair, 1003, symbols(104, 0, 0, 100, None, true, vec![1; 100]));
    assert_eq!(pair.server().stats().violations, 3, "symbols of one byte in their own frame");
    give(&mut pair, 1004, open(106, 1, 1));
    pair.run_for(Duration::from_millis(1));
    let events = pair.events_of(Side::Server);
    let opened = events.iter().filter_map(|event| match event {
        DfcpEvent::ObjectOpened { channel, .. } => Some(*channel),
        _ => None,
    });
    assert_eq!(opened.collect::<Vec<_>>(), [104, 106], "one symbol may be small");
}

#[test]
fn a_peer_has_a_few_blocks_decoded_at_once_and_the_others_wait() {
    let mut pair = Pair::connected();
    let size = u32::from(SYMBOL_SIZE);
    for block in 0..40 {
        let live = Some(Live { kind: LiveKind::Message, block_len: 2 * size, fin: true });
        let channel = 100 + 2 * block;
        let data = || vec![1; usize::from(SYMBOL_SIZE)];
        give(
            &mut pair,
            u64::from(1000 + 2 * block),
            symbols(channel, 0, 0, 1, live, false, data()),
        );
        give(
            &mut pair,
            u64::from(1001 + 2 * block),
            symbols(channel, 0, 2, 1, live, false, data()),
        );
    }
    let server = pair.server.as_mut().unwrap();
    let mut jobs: Vec<_> = core::iter::from_fn(|| server.job()).collect();
    assert_eq!(jobs.len(), 8);
    let mut done = 0;
    while let Some(job) = jobs.pop() {
        server.job_done(pair.now, job.run());
        done += 1;
        jobs.extend(server.job());
        assert!(jobs.len() <= 8);
    }
    assert_eq!(done, 40);
}

#[test]
fn jobs_of_a_channel_that_is_given_up_are_forgotten() {
    let mut pair = Pair::connected();
    let size = u32::from(SYMBOL_SIZE);
    let live = Some(Live { kind: LiveKind::Message, block_len: 2 * size, fin: true });
    for (number, esi) in [(1000, 0), (1001, 2)] {
        let data = vec![1; usize::from(SYMBOL_SIZE)];
        give(&mut pair, number, symbols(100, 0, esi, 1, live, false, data));
    }
    give(&mut pair, 1002, Frame::Abandon { channel: 100, code: 7, sequence: None });
    assert!(pair.server().job().is_none());
}
