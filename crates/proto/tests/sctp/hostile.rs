//! Peers that take more than their share of memory.

use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::sctp::{DataChunk, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpPacket};

use super::pair::{Pair, Way, address, plain};

/// A server with small buffers, and the first TSN of its client.
fn connected() -> (Pair, u32) {
    let config = SctpConfig { receive_buffer: 64 << 10, max_message: 64 << 10, ..plain() };
    let mut pair = Pair::new(1, &config, vec![Way::of(50, 10.0)]);
    let up = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(Duration::from_secs(5), up));
    let first = pair.end(0).init().tsn;
    (pair, first)
}

/// A packet with a chunk of one byte.
fn packet(tag: u32, tsn: u32, message: u32, is_whole: bool, fragment: u32) -> SctpPacket {
    let chunk = DataChunk {
        tsn,
        stream: 0,
        message,
        fragment,
        protocol: 0,
        is_interleaved: true,
        is_first: is_whole || fragment == 0,
        is_last: is_whole,
        is_unordered: false,
        is_immediate: false,
        data: SctpData::Bytes(Bytes::from_static(b"x")),
    };
    SctpPacket { source: 5000, destination: 5000, tag, chunks: vec![SctpChunk::Data(chunk)] }
}

fn ends() -> [IpAddr; 2] {
    [address(1, 0), address(0, 0)]
}

#[test]
fn messages_of_a_byte_count_as_the_memory_that_they_take() {
    let (mut pair, first) = connected();
    let (now, server) = (pair.now, pair.end(1));
    let tag = server.tag();
    for number in 0..60_000 {
        let tsn = first.wrapping_add(number);
        server.handle(now, ends(), &packet(tag, tsn, number, true, 0), false);
        while server.poll(now).is_some() {}
    }
    let held = server.stats().messages_received;
    assert!((1000..6000).contains(&held), "{held} messages wait");
    assert!(!server.is_closed(), "the application may yet take them");
    while server.receive(now).is_some() {}
    let next = held as u32;
    let tsn = first.wrapping_add(next);
    server.handle(now, ends(), &packet(tag, tsn, next, true, 0), false);
    assert_eq!(server.stats().messages_received, held + 1, "there is room again");
}

#[test]
fn fragments_of_a_byte_are_an_end_when_nothing_can_free_their_memory() {
    let (mut pair, first) = connected();
    let (now, server) = (pair.now, pair.end(1));
    let tag = server.tag();
    let mut sent = 0;
    while !server.is_closed() && sent < 60_000 {
        let tsn = first.wrapping_add(sent);
        server.handle(now, ends(), &packet(tag, tsn, 0, false, sent), false);
        while server.poll(now).is_some() {}
        sent += 1;
    }
    assert!((1000..6000).contains(&sent), "{sent} fragments");
}

#[test]
fn gaps_without_end_are_not_kept() {
    let (mut pair, first) = connected();
    let (mut now, server) = (pair.now, pair.end(1));
    let tag = server.tag();
    // Every other TSN, each the first fragment of a message of its own.
    for number in 0..30_000 {
        let tsn = first.wrapping_add(1 + 2 * number);
        server.handle(now, ends(), &packet(tag, tsn, number, false, 0), false);
        now = Time::from_nanos(now.as_nanos() + 1000);
        while server.poll(now).is_some() {}
    }
    assert!(server.stats().chunks_received <= 4096 + 8, "{}", server.stats().chunks_received);
    assert!(!server.is_closed());
}
