//! What a connection does, event by event, over a path whose losses are chosen.

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    CloseReason, ConnectionId, DEADLINE_PASSED, DfcpConfig, DfcpConnection, DfcpEvent, DfcpPacket,
    Frame, Live, LiveKind, ObjectShape, Open, ParamFields, Params, Redundancy, SendOptions,
    SymbolsFrame, Timers, VERSION, wire,
};
use fontis_proto::rate::RateKind;

use crate::pair::{Pair, Side};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A side that announces these parameters.
fn with(fields: ParamFields) -> DfcpConfig {
    let params = Params::new(fields).expect("parameters within their limits");
    DfcpConfig { params, ..DfcpConfig::default() }
}

fn lonely(config: DfcpConfig) -> (Vec<u64>, Pair) {
    let mut pair = Pair::new(config, DfcpConfig::default(), millis(10), None);
    pair.loss = Box::new(|_, _| true);
    pair.run_for(Duration::from_secs(200));
    let times = pair.sent.iter().map(|sent| sent.at.since(Time::ZERO).as_millis()).collect();
    (times, pair)
}

#[test]
fn syn_copies_leave_at_the_stated_times_and_then_the_attempt_ends() {
    let (times, pair) = lonely(DfcpConfig::default());
    assert_eq!(times, [0, 30, 90, 270, 1270, 3270, 7270, 15_270, 31_270]);
    assert_eq!(pair.events_of(Side::Client), [&DfcpEvent::Closed(CloseReason::NoAnswer)]);
}

#[test]
fn published_timers_begin_at_a_second_and_double_five_times() {
    let (times, pair) = lonely(DfcpConfig { timers: Timers::Published, ..DfcpConfig::default() });
    assert_eq!(times, [0, 1000, 3000, 7000, 15_000, 31_000]);
    assert_eq!(pair.events_of(Side::Client), [&DfcpEvent::Closed(CloseReason::NoAnswer)]);
    assert!(pair.now >= Time::ZERO + Duration::from_secs(63));
}

#[test]
fn an_unproved_address_gets_at_most_three_times_what_it_sent() {
    let mut pair =
        Pair::new(DfcpConfig::default(), DfcpConfig::default(), millis(10), Some(b"ask"));
    pair.loss = Box::new(|_, sent| sent.from == Side::Server);
    for _ in 0..500 {
        pair.run_for(millis(100));
        let bytes = |side| -> u64 {
            pair.sent.iter().filter(|sent| sent.from == side).map(|sent| u64::from(sent.size)).sum()
        };
        assert!(bytes(Side::Server) <= 3 * bytes(Side::Client));
    }
    assert!(pair.sent.iter().any(|sent| sent.from == Side::Server));
}

#[test]
fn a_message_in_the_syn_arrives_once_and_is_marked_as_replayable() {
    let mut pair =
        Pair::new(DfcpConfig::default(), DfcpConfig::default(), millis(10), Some(b"ask"));
    pair.run_for(Duration::from_secs(1));
    let messages: Vec<_> = pair
        .events_of(Side::Server)
        .into_iter()
        .filter(|event| matches!(event, DfcpEvent::Message { .. }))
        .collect();
    let expected = DfcpEvent::Message { channel: 0, data: Bytes::from_static(b"ask"), early: true };
    assert_eq!(messages, [&expected]);
    assert!(pair.events_of(Side::Client).contains(&&DfcpEvent::Delivered { channel: 0 }));
}

#[test]
fn messages_arrive_whole_whatever_is_lost() {
    for seed in 0..20u64 {
        let mut pair = Pair::connected();
        let mut state = seed;
        pair.loss = Box::new(move |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % 10 < 3
        });
        let messages: Vec<Bytes> = [0, 1, 1192, 5000, 300_000]
            .iter()
            .map(|len| Bytes::from(vec![*len as u8; *len]))
            .collect();
        for message in &messages {
            pair.client.send_message(
                message.clone(),
                SendOptions { ordered: true, ..SendOptions::default() },
            );
        }
        pair.run_for(Duration::from_secs(30));
        let arrived: Vec<_> = pair
            .events_of(Side::Server)
            .into_iter()
            .filter_map(|event| match event {
                DfcpEvent::Message { data, .. } => Some(data.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(arrived, messages, "seed {seed}");
    }
}

#[test]
fn sides_that_cut_blocks_into_symbols_of_their_own_size_understand_each_other() {
    let coarse = with(ParamFields { symbol_size: 1024, ..ParamFields::default() });
    let mut pair = Pair::new(DfcpConfig::default(), coarse, millis(10), Some(&[7; 900]));
    pair.run_for(millis(100));
    let long = Bytes::from(vec![5; 100_000]);
    pair.client.send_message(long.clone(), SendOptions::default());
    pair.server().send_message(long.clone(), SendOptions::default());
    pair.loss = Box::new(|number, _| number % 9 == 3);
    pair.run_for(Duration::from_secs(2));
    for side in [Side::Client, Side::Server] {
        let arrived =
            |event: &&DfcpEvent| matches!(event, DfcpEvent::Message { data, .. } if *data == long);
        assert_eq!(pair.events_of(side).into_iter().filter(arrived).count(), 1, "{side:?}");
    }
}

#[test]
fn an_urgent_message_overtakes_a_long_one() {
    let mut pair = Pair::connected();
    pair.client.send_message(vec![1; 2_000_000].into(), SendOptions::default());
    pair.run_for(millis(30));
    pair.client
        .send_message(vec![2; 100].into(), SendOptions { priority: 0, ..SendOptions::default() });
    pair.run_for(Duration::from_secs(20));
    let order: Vec<_> = pair
        .events_of(Side::Server)
        .into_iter()
        .filter_map(|event| match event {
            DfcpEvent::Message { data, .. } => Some(data[0]),
            _ => None,
        })
        .collect();
    assert_eq!(order, [2, 1]);
}

#[test]
fn a_passed_deadline_gives_a_message_up_and_frees_those_behind_it() {
    let mut pair = Pair::connected();
    pair.loss = Box::new(|_, _| true);
    let deadline = Some(pair.now + millis(50));
    let ordered = SendOptions { ordered: true, ..SendOptions::default() };
    let late = pair.client.send_message("late".into(), SendOptions { deadline, ..ordered });
    pair.client.send_message("next".into(), ordered);
    pair.run_for(millis(100));
    pair.loss = Box::new(|_, _| false);
    pair.run_for(Duration::from_secs(10));
    let given_up = DfcpEvent::Abandoned { channel: late, code: DEADLINE_PASSED };
    assert!(pair.events_of(Side::Client).contains(&&given_up));
    let messages: Vec<_> = pair
        .events_of(Side::Server)
        .into_iter()
        .filter(|e| matches!(e, DfcpEvent::Message { .. }))
        .collect();
    assert!(
        matches!(messages[..], [DfcpEvent::Message { data, .. }] if data == "next"),
        "{messages:?}"
    );
}

#[test]
fn a_stream_is_read_in_order_and_holds_back_a_sender_whose_reader_sleeps() {
    let window = 1 << 20;
    let server = with(ParamFields { window, max_block: 256 << 10, ..ParamFields::default() });
    let mut pair = Pair::new(DfcpConfig::default(), server, millis(10), None);
    pair.run_for(millis(100));
    let stream = pair.client.open_stream(SendOptions::default());
    let data: Vec<u8> = (0..4_000_000u32).map(|i| (i / 7) as u8).collect();
    pair.client.write(stream, Bytes::from(data.clone()));
    pair.client.finish_stream(stream);
    pair.run_for(Duration::from_secs(20));
    let held = data.len() as u64 - pair.client.buffered(stream);
    assert!(
        held <= u64::from(window) + (256 << 10),
        "{held} bytes were taken by a reader that sleeps"
    );
    let mut read = Vec::new();
    for _ in 0..1000 {
        let now = pair.now;
        while let Some(piece) = pair.server().read(now, stream) {
            read.extend_from_slice(&piece);
        }
        if pair.server().is_read(stream) {
            break;
        }
        pair.run_for(millis(50));
    }
    assert!(read == data);
}

#[test]
fn either_side_may_abandon_an_object() {
    for side in [Side::Client, Side::Server] {
        let mut pair = Pair::connected();
        let shape = ObjectShape::partition(10_000_000, 1192, Code::RaptorQ);
        let now = pair.now;
        let channel =
            pair.client.send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
        pair.run_for(millis(50));
        let now = pair.now;
        match side {
            Side::Client => pair.client.abandon(now, channel, 7),
            Side::Server => pair.server().abandon(now, channel, 7),
        }
        pair.run_for(millis(200));
        let other = if side == Side::Client { Side::Server } else { Side::Client };
        assert!(
            pair.events_of(other).contains(&&DfcpEvent::Abandoned { channel, code: 7 }),
            "{side:?}"
        );
    }
}

#[test]
fn a_rejected_block_is_sent_again() {
    let mut pair = Pair::connected();
    let shape = ObjectShape::partition(5000, 1192, Code::RaptorQ);
    let now = pair.now;
    let channel =
        pair.client.send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
    pair.run_for(millis(50));
    let data = Bytes::from(vec![9; 5000]);
    assert!(pair.client.supply_block(channel, 0, data.clone()));
    let blocks = |pair: &Pair| {
        pair.events
            .iter()
            .filter(|(_, e)| matches!(e, DfcpEvent::Block { data: d, .. } if *d == data))
            .count()
    };
    pair.run_for(millis(200));
    assert_eq!(blocks(&pair), 1);
    let now = pair.now;
    pair.server().reject_block(now, channel, 0);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(blocks(&pair), 2);
    let now = pair.now;
    pair.server().release_block(now, channel, 0);
    pair.run_for(millis(200));
    assert!(pair.events_of(Side::Client).contains(&&DfcpEvent::Delivered { channel }));
}

#[test]
fn replayed_packets_change_nothing() {
    let mut pair = Pair::connected();
    pair.client.send_message("once".into(), SendOptions::default());
    pair.run_for(millis(200));
    let recorded: Vec<_> =
        pair.sent.iter().filter(|sent| sent.from == Side::Client).cloned().collect();
    let before = pair.events.len();
    for sent in recorded {
        let at = pair.now;
        pair.inject(Side::Server, at, sent.packet, sent.size);
    }
    pair.run_for(millis(500));
    assert_eq!(pair.events.len(), before, "{:?}", &pair.events[before..]);
    assert!(pair.server().stats().duplicates > 0);
}

#[test]
fn closing_tells_the_peer_why_even_over_a_lossy_path() {
    let mut pair = Pair::connected();
    pair.loss = Box::new(|count, _| count % 2 == 0);
    let now = pair.now;
    pair.client.close(now, 42, "enough");
    pair.run_for(Duration::from_secs(3));
    let reason = CloseReason::Peer { code: 42, reason: "enough".into() };
    assert!(pair.events_of(Side::Server).contains(&&DfcpEvent::Closed(reason)));
    assert!(pair.events_of(Side::Client).contains(&&DfcpEvent::Closed(CloseReason::Local)));
    assert!(pair.client.is_closed() && pair.server().is_closed());
}

#[test]
fn both_sides_finish_when_everything_has_been_delivered() {
    let mut pair = Pair::connected();
    pair.client.send_message(vec![1; 500_000].into(), SendOptions::default());
    pair.client.finish();
    pair.server().finish();
    pair.run_for(Duration::from_secs(20));
    assert!(pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })));
    for side in [Side::Client, Side::Server] {
        assert!(
            pair.events_of(side).contains(&&DfcpEvent::Closed(CloseReason::Finished)),
            "{side:?}"
        );
    }
}

#[test]
fn only_the_true_token_resets() {
    let token = [3; 16];
    let server = with(ParamFields { reset_token: token, ..ParamFields::default() });
    let mut pair = Pair::new(DfcpConfig::default(), server, millis(10), None);
    pair.run_for(millis(100));
    let destination = ConnectionId([2; 8]);
    let now = pair.now;
    pair.client.handle(
        now,
        DfcpPacket::Reset { destination, token: [4; 16] },
        53,
        fontis_base::Ecn::NotEct,
    );
    assert!(pair.client.is_established());
    pair.client.handle(now, DfcpPacket::Reset { destination, token }, 53, fontis_base::Ecn::NotEct);
    pair.run_for(millis(1));
    assert!(pair.events_of(Side::Client).contains(&&DfcpEvent::Closed(CloseReason::Reset)));
}

#[test]
fn a_foreign_version_ends_the_attempt() {
    let mut client =
        DfcpConnection::connect(Time::ZERO, DfcpConfig::default(), ConnectionId([1; 8]), None);
    let destination = ConnectionId([1; 8]);
    let same = DfcpPacket::VersionNegotiation { destination, versions: vec![VERSION] };
    client.handle(Time::ZERO, same, 50, fontis_base::Ecn::NotEct);
    assert!(!client.is_closed(), "a list that has our version is a lie");
    let other = DfcpPacket::VersionNegotiation { destination, versions: vec![VERSION + 1] };
    client.handle(Time::ZERO, other, 50, fontis_base::Ecn::NotEct);
    assert_eq!(client.event(), Some(DfcpEvent::Closed(CloseReason::Version)));
}

#[test]
fn sending_until_acknowledged_never_waits_for_feedback() {
    let config = DfcpConfig {
        redundancy: Redundancy::UntilAcknowledged,
        rate: RateKind::Fixed(fontis_base::Rate::from_mbps(10)),
        ..DfcpConfig::default()
    };
    let mut pair = Pair::new(config, DfcpConfig::default(), millis(50), None);
    pair.run_for(millis(300));
    pair.client.send_message(vec![1; 10_000].into(), SendOptions::default());
    pair.run_for(Duration::from_secs(2));
    assert!(pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })));
    // Nine symbols would do; a hundred milliseconds at 10 Mbit/s are a hundred packets.
    let stats = pair.client.stats();
    assert!(stats.symbols_sent > 60, "{}", stats.symbols_sent);
}

#[test]
fn a_clean_path_carries_no_repair_symbols() {
    let mut pair = Pair::connected();
    pair.client.send_message(vec![1; 3_000_000].into(), SendOptions::default());
    pair.run_for(Duration::from_secs(20));
    assert!(pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })));
    assert_eq!(pair.client.stats().repair_symbols_sent, 0);
    assert_eq!(pair.server().stats().blocks_decoded, 0);
}

#[test]
fn an_idle_connection_ends_and_one_with_work_is_kept_alive() {
    let idle = with(ParamFields { idle_timeout_ms: 5_000, ..ParamFields::default() });
    let mut pair = Pair::new(idle.clone(), idle.clone(), millis(10), None);
    pair.run_for(Duration::from_secs(20));
    let timeout = DfcpEvent::Closed(CloseReason::IdleTimeout);
    assert!(pair.events_of(Side::Client).contains(&&timeout));
    let mut pair = Pair::new(idle.clone(), idle.clone(), millis(10), None);
    pair.client.stay();
    pair.run_for(Duration::from_secs(100));
    let closed = |event: &&DfcpEvent| matches!(event, DfcpEvent::Closed(_));
    for side in [Side::Client, Side::Server] {
        assert!(!pair.events_of(side).iter().any(closed));
    }
    pair.loss = Box::new(|_, _| true);
    pair.run_for(Duration::from_secs(20));
    assert!(pair.events_of(Side::Client).contains(&&timeout), "the peer has gone");
    let mut pair = Pair::new(idle.clone(), idle, millis(10), None);
    pair.run_for(millis(100));
    let shape = ObjectShape::partition(5000, 1192, Code::RaptorQ);
    let now = pair.now;
    pair.client.send_object(now, shape, Bytes::new(), SendOptions::default());
    // The application takes its time to supply the block.
    pair.run_for(Duration::from_secs(60));
    assert!(pair.client.is_established() && pair.server().is_established());
}

#[test]
fn a_sender_that_is_not_heard_stops_at_its_allowance() {
    let mut pair = Pair::connected();
    pair.client.send_message(vec![1; 20_000_000].into(), SendOptions::default());
    pair.run_for(millis(500));
    pair.loss = Box::new(|_, _| true);
    let before = pair.client.stats().data_packets_sent;
    let allowed = pair.client.stats().rate.bytes_in(millis(60)) / 1257 + 60;
    pair.run_for(Duration::from_secs(10));
    let sent = pair.client.stats().data_packets_sent - before;
    assert!(sent <= allowed, "{sent} data packets into silence, {allowed} expected at most");
}

#[test]
fn hostile_frames_are_counted_and_survived() {
    let mut pair = Pair::connected();
    let destination = ConnectionId([2; 8]);
    let frames = [
        Frame::Done { channel: 1 },
        Frame::Done { channel: 4_000_000_000 },
        Frame::Abandon { channel: u32::MAX, code: 0, sequence: Some(u32::MAX) },
        Frame::FinAck,
        Frame::Open(Box::new(fontis_proto::dfcp::Open {
            channel: 8,
            object: ObjectShape { size: u64::MAX, block_size: 0, symbol_size: 0, code: 1 },
            label: Bytes::new(),
        })),
        Frame::Feedback(Box::new(fontis_proto::dfcp::Feedback {
            largest: u64::MAX >> 2,
            runs: [u32::MAX; 8].into_iter().collect(),
            ..Default::default()
        })),
        Frame::Blocks(Box::new(fontis_proto::dfcp::BlockStatus {
            channel: 0,
            sequence: u32::MAX,
            floor: u32::MAX,
            limit: u32::MAX,
            blocks: Vec::new(),
        })),
    ];
    for (number, frame) in (1000..).zip(frames) {
        let packet = DfcpPacket::Sealed {
            destination,
            path: 0,
            number,
            frames: [frame].into_iter().collect(),
        };
        let now = pair.now;
        pair.server().handle(now, packet, 100, fontis_base::Ecn::Ce);
        pair.run_for(millis(10));
    }
    assert!(pair.server().is_established());
    assert!(pair.server().stats().violations >= 2);
    pair.client.send_message("still here".into(), SendOptions::default());
    pair.run_for(millis(500));
    assert!(pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })));
}

#[test]
fn symbols_fill_the_packets_of_the_path_and_become_smaller_when_the_path_does() {
    const SIZE: usize = 6_000_000;
    let config = DfcpConfig { rate: RateKind::Auto, ..DfcpConfig::default() };
    let mut pair = Pair::new(config.clone(), config, millis(10), Some(b"ask"));
    pair.run_for(millis(60));
    assert_eq!(pair.server().stats().packet_size, 1500, "the first packets probe for it");
    let shape = ObjectShape::partition(SIZE as u64, 1192, Code::RaptorQ);
    let now = pair.now;
    let channel =
        pair.server().send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
    let byte = |block: u32| block as u8 + 1;
    // Some packets are lost at random; after a while a tunnel takes all that are large.
    pair.loss = Box::new(|number, sent| {
        number % 11 == 5 || sent.size > 1500 || (number > 2000 && sent.size > 1400)
    });
    let (mut handled, mut received) = (0, 0);
    for _ in 0..2000 {
        pair.run_for(millis(10));
        let fresh = pair.events[handled..].to_vec();
        handled += fresh.len();
        for (side, event) in fresh {
            match (side, event) {
                (Side::Server, DfcpEvent::BlockWanted { block, .. }) => {
                    let data = vec![byte(block); shape.block_len(block) as usize];
                    assert!(pair.server().supply_block(channel, block, data.into()));
                }
                (Side::Client, DfcpEvent::Block { block, data, .. }) => {
                    assert!(data.iter().all(|b| *b == byte(block)));
                    received += data.len();
                    let now = pair.now;
                    pair.client.release_block(now, channel, block);
                }
                _ => {}
            }
        }
    }
    assert_eq!(received, SIZE);
    assert!(pair.events_of(Side::Server).contains(&&DfcpEvent::Delivered { channel }));
    let sizes = |whole| {
        pair.sent.iter().any(|sent| match &sent.packet {
            DfcpPacket::Sealed { frames, .. } => frames
                .iter()
                .any(|f| matches!(f, Frame::Symbols(s) if s.whole == whole && s.live.is_none())),
            _ => false,
        })
    };
    assert!(sizes(true), "a packet of 1500 bytes is filled");
    assert!(sizes(false), "a smaller path gets what fits it");
    let stats = pair.server().stats();
    assert!(stats.packet_size < 1500);
    assert!(stats.symbols_sent < 2 * stats.symbols_needed, "{stats:?}");
}

/// All that a client sends that has an object and messages for its server, over a path with losses.
fn sent_by_a_busy_client(again: bool) -> Vec<(Time, DfcpPacket)> {
    let config = DfcpConfig { rate: RateKind::Auto, ..DfcpConfig::default() };
    let mut pair = Pair::new(config.clone(), config, millis(10), None);
    (pair.again, pair.tick) = (again, millis(10));
    pair.run_for(millis(60));
    let shape = ObjectShape::partition(20_000_000, 1192, Code::RaptorQ);
    let now = pair.now;
    let channel =
        pair.client.send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
    pair.loss = Box::new(|number, _| number % 37 == 5);
    let mut handled = 0;
    for round in 0..400 {
        if round % 7 == 0 {
            pair.client.send_message(vec![round as u8; 5000].into(), SendOptions::default());
        }
        pair.run_for(millis(10));
        let fresh = pair.events[handled..].to_vec();
        handled += fresh.len();
        for (side, event) in fresh {
            let now = pair.now;
            match (side, event) {
                (Side::Client, DfcpEvent::BlockWanted { block, .. }) => {
                    let data = vec![block as u8; shape.block_len(block) as usize];
                    assert!(pair.client.supply_block(channel, block, data.into()));
                }
                (Side::Server, DfcpEvent::Block { block, .. }) => {
                    pair.server().release_block(now, channel, block);
                }
                _ => {}
            }
        }
    }
    assert!(pair.events_of(Side::Client).contains(&&DfcpEvent::Delivered { channel }));
    let client = pair.sent.into_iter().filter(|sent| sent.from == Side::Client);
    client.map(|sent| (sent.at, sent.packet)).collect()
}

#[test]
fn asking_for_another_packet_gives_what_asking_for_the_next_gives() {
    let (next, another) = (sent_by_a_busy_client(false), sent_by_a_busy_client(true));
    assert!(next.len() > 14_000, "{} packets", next.len());
    for (at, (next, another)) in next.iter().zip(&another).enumerate() {
        assert_eq!(next, another, "packet {at}");
    }
    assert_eq!(next.len(), another.len());
}

#[test]
fn what_is_kept_of_a_packet_does_not_keep_the_packet() {
    let mut pair = Pair::connected();
    let symbols = |channel, live| {
        let (count, data) = (1, Bytes::from(vec![3; 1192]));
        Frame::Symbols(SymbolsFrame {
            channel,
            block: 0,
            esi: 0,
            count,
            live,
            whole: false,
            long: false,
            len: 1192,
            data,
        })
    };
    let object = ObjectShape::partition(6_000_000, 1192, Code::RaptorQ);
    let message = Live { kind: LiveKind::Message, block_len: 1192, fin: true };
    let kept = [
        ("symbols whose channel is not open yet", symbols(40, None)),
        (
            "an object's label",
            Frame::Open(Box::new(Open { channel: 42, object, label: "l".into() })),
        ),
        ("symbols of an object", symbols(42, None)),
        ("a message", symbols(44, Some(message))),
        ("a token", Frame::Token("token".into())),
    ];
    for (number, (what, frame)) in (1000..).zip(kept) {
        let mut packet = Vec::new();
        wire::encode_frames(&[frame], &mut packet);
        let packet = Bytes::from(packet);
        let frames = wire::decode_frames(packet.clone()).unwrap();
        let now = pair.now;
        for side in [&mut pair.client, pair.server.as_mut().unwrap()] {
            side.handle_frames(now, 0, number, &frames, 1300, Ecn::NotEct);
        }
        drop(frames);
        // Whoever reads datagrams joined into 64 KiB would otherwise lend all of them to one small
        // frame.
        assert!(packet.is_unique(), "{what} refers to the packet's memory");
    }
    assert_eq!(pair.server().stats().violations, 0);
}
