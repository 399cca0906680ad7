//! What a peer that asks much gets.

use bytes::Bytes;
use fontis_base::{Duration, Ecn};
use fontis_proto::dfcp::{
    ConnectionId, DfcpPacket, Feedback, Frame, Frames, Live, LiveKind, SymbolsFrame,
};

use super::pair::Pair;

/// Gives the server a packet by its client with these frames.
fn give(pair: &mut Pair, number: u64, frames: Frames) {
    let destination = ConnectionId([2; 8]);
    let packet = DfcpPacket::Sealed { destination, path: 0, number, frames };
    let now = pair.now;
    pair.server().handle(now, packet, 1280, Ecn::NotEct);
}

/// A pair whose server has this many messages that lack something, and has said so.
fn with_channels(count: u32) -> Pair {
    let mut pair = Pair::connected();
    for number in 0..count {
        let live = Some(Live { kind: LiveKind::Message, block_len: 5000, fin: true });
        let data = Bytes::from(vec![1; 1192]);
        let symbols = Frame::Symbols(SymbolsFrame {
            channel: 2 * number,
            block: 0,
            esi: 0,
            count: 1,
            live,
            whole: false,
            long: false,
            len: 1192,
            data,
        });
        give(&mut pair, 1000 + u64::from(number), [symbols].into_iter().collect());
    }
    // The client is not told of them: it has never sent them.
    let end = pair.now + Duration::from_millis(300);
    while pair.now < end {
        let now = pair.now;
        while pair.server().poll(now).is_some() {}
        pair.now += Duration::from_millis(1);
    }
    pair
}

/// Packets of the server in the next milliseconds, one number for each, and the channels that it
/// tells of.
fn answers(pair: &mut Pair, milliseconds: usize) -> (Vec<usize>, usize) {
    let (mut packets, mut told) = (Vec::new(), std::collections::BTreeSet::new());
    for _ in 0..milliseconds {
        let (now, mut count) = (pair.now, 0);
        while let Some(outgoing) = pair.server().poll(now) {
            count += 1;
            let DfcpPacket::Sealed { frames, .. } = outgoing.packet else { continue };
            told.extend(frames.iter().filter_map(|frame| match frame {
                Frame::Blocks(status) => Some(status.channel),
                _ => None,
            }));
        }
        packets.push(count);
        pair.now += Duration::from_millis(1);
    }
    (packets, told.len())
}

#[test]
fn a_ping_is_answered_at_once_with_the_status_of_some_channels() {
    let mut pair = with_channels(1000);
    give(&mut pair, 5000, [Frame::Ping].into_iter().collect());
    let (packets, told) = answers(&mut pair, 20);
    println!("{packets:?} packets for a ping, {told} channels");
    assert!(packets[0] >= 1 && packets.iter().sum::<usize>() <= 3, "{packets:?}");
    assert!((1..=16).contains(&told), "{told}");

    // Who asks again hears of the others.
    let mut pair = with_channels(25);
    give(&mut pair, 5000, [Frame::Ping].into_iter().collect());
    let (_, first) = answers(&mut pair, 20);
    give(&mut pair, 5001, [Frame::Ping].into_iter().collect());
    let (_, second) = answers(&mut pair, 20);
    assert_eq!((first, second), (16, 16), "9 of those that were left, and again the first 7");
}

#[test]
fn many_pings_are_answered_at_the_pace_of_feedback() {
    let mut pair = with_channels(1000);
    let before = pair.server().stats().packets_sent;
    for number in 0..1000 {
        give(&mut pair, 5000 + number, [Frame::Ping].into_iter().collect());
        let now = pair.now;
        let mut count = 0;
        while pair.server().poll(now).is_some() {
            count += 1;
        }
        assert!(count <= 8, "{count} packets for a ping");
    }
    let sent = pair.server().stats().packets_sent - before;
    println!("{sent} packets for a thousand pings");
    assert!(sent <= 20, "{sent} packets at the same time");
    let mut pair = with_channels(1000);
    give(&mut pair, 5000, std::iter::repeat_n(Frame::Ping, 1200).collect());
    let (packets, _) = answers(&mut pair, 1);
    assert!(packets[0] <= 9, "{packets:?}");
}

#[test]
fn a_packet_has_one_feedback_frame_that_counts() {
    let mut pair = Pair::connected();
    let feedback = || Frame::Feedback(Box::new(Feedback { largest: 0, ..Feedback::default() }));
    let before = pair.server().stats().violations;
    give(&mut pair, 1000, (0..100).map(|_| feedback()).collect());
    assert_eq!(pair.server().stats().violations - before, 99);
}
