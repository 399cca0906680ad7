//! Demands of RFC 4340 that no other test shows. `docs/dccp-conformance.md` names them.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Time};
use fontis_proto::dccp::{
    Carrier, Ccid, DccpBody, DccpConfig, DccpConnection, DccpData, DccpEvent, DccpOption,
    DccpPacket, DccpSeq, FeatureOption, FeatureStep, ResetCode,
};

use super::pair::Pair;

const SECOND: Duration = Duration::from_secs(1);

fn config(ccid: Ccid) -> DccpConfig {
    DccpConfig { ccid, service: 7, queue: 100, ..DccpConfig::default() }
}

fn open(ccid: Ccid) -> Pair {
    let mut pair = Pair::of(&config(ccid));
    pair.client.send(text("one")).expect("it fits");
    pair.run(SECOND * 2);
    pair
}

fn text(text: &'static str) -> DccpData {
    DccpData::Bytes(Bytes::from_static(text.as_bytes()))
}

fn feature(step: FeatureStep, feature: u8, values: &[u8]) -> DccpOption {
    DccpOption::Feature(FeatureOption { step, feature, values: values.into() })
}

/// The next packet of the client, with another content.
fn next_of_client(pair: &Pair, body: DccpBody, options: Vec<DccpOption>) -> DccpPacket {
    let last = pair.sent[0].last().expect("it has sent");
    DccpPacket { seq: last.seq.next(), body, options, data: DccpData::NONE, ..last.clone() }
}

fn ack_of(pair: &Pair) -> DccpBody {
    DccpBody::Ack { ack: pair.sent[1].last().expect("it has sent").seq }
}

/// What the server says to a packet.
fn answer(pair: &mut Pair, packet: &DccpPacket) -> Option<DccpPacket> {
    let now = pair.now;
    pair.server().handle(now, packet, false);
    pair.server().poll(now)
}

#[test]
fn the_service_code_that_stands_for_none_is_refused() {
    let none = DccpConfig { service: u32::MAX, ..config(Ccid::Two) };
    let mut pair = Pair::of(&none);
    pair.run(SECOND);
    assert_eq!(pair.events[0], [DccpEvent::Aborted(ResetCode::BadServiceCode)]);
}

#[test]
fn short_numbers_that_were_not_agreed_are_ignored() {
    let mut pair = open(Ccid::Two);
    let mut short = next_of_client(&pair, DccpBody::Data, Vec::new());
    (short.is_short, short.data) = (true, text("short"));
    assert_eq!(answer(&mut pair, &short), None);
    assert_eq!(pair.server().receive(), None);
}

#[test]
fn a_client_that_is_partly_open_returns_all_cookies_in_order() {
    let mut client = DccpConnection::connect(Time::ZERO, config(Ccid::Two), 9);
    let request = client.poll(Time::ZERO).expect("a Request");
    let cookies = [vec![1, 2], vec![3]].map(DccpOption::InitCookie);
    let response = DccpPacket {
        source: request.destination,
        destination: request.source,
        seq: DccpSeq::new(50),
        body: DccpBody::Response { ack: request.seq, service: 7 },
        options: cookies.to_vec(),
        ..request.clone()
    };
    client.handle(Time::ZERO, &response, false);
    let body = DccpBody::Sync { ack: request.seq };
    let sync = DccpPacket { seq: DccpSeq::new(51), body, options: Vec::new(), ..response };
    client.handle(Time::ZERO, &sync, false);
    for kind in [9, 3] {
        let packet = client.poll(Time::ZERO).expect("a packet");
        assert_eq!(packet.body.number(), kind);
        let has = |option: &&DccpOption| matches!(option, DccpOption::InitCookie(_));
        let found: Vec<_> = packet.options.iter().filter(has).cloned().collect();
        assert_eq!(found, cookies);
    }
}

#[test]
fn packets_without_data_are_counted_if_the_peer_asks_for_it() {
    let mut pair = open(Ccid::Three);
    let ask = vec![feature(FeatureStep::ChangeR, 7, &[1])];
    let packet = next_of_client(&pair, ack_of(&pair), ask);
    let confirm = answer(&mut pair, &packet).expect("a Confirm");
    assert!(
        confirm.options.contains(&feature(FeatureStep::ConfirmL, 7, &[1, 0, 1])),
        "{confirm:?}"
    );
    pair.server().send(text("two")).expect("it fits");
    pair.server().send(text("three")).expect("it fits");
    let now = pair.now + SECOND * 10;
    let (first, second) = (pair.server().poll(now), pair.server().poll(now + SECOND * 10));
    let count = |packet: Option<DccpPacket>| {
        let options = packet.expect("data").options.into_iter();
        options.filter(|option| matches!(option, DccpOption::NdpCount(_))).collect::<Vec<_>>()
    };
    assert!(matches!(count(first)[..], [DccpOption::NdpCount(1..)]));
    assert_eq!(count(second), []);
}

#[test]
fn what_this_end_does_not_do_is_not_agreed_to() {
    // Check Data Checksum of both, Ack Vectors of a rate, the Loss Event Rate of a window.
    for (ccid, number) in [(Ccid::Two, 9), (Ccid::Three, 9), (Ccid::Three, 6), (Ccid::Two, 192)] {
        let mut pair = open(ccid);
        let ask = vec![feature(FeatureStep::ChangeR, number, &[1])];
        let packet = next_of_client(&pair, ack_of(&pair), ask);
        let confirm = answer(&mut pair, &packet).expect("a Confirm");
        let kept = feature(FeatureStep::ConfirmL, number, &[0, 0]);
        assert!(confirm.options.contains(&kept), "{ccid:?} {number}: {confirm:?}");
        // If it must be, that ends the connection.
        let ask = vec![DccpOption::Mandatory, feature(FeatureStep::ChangeR, number, &[1])];
        let mut packet = next_of_client(&pair, ack_of(&pair), ask);
        packet.seq = packet.seq.next();
        let reset = answer(&mut pair, &packet).expect("a Reset").body;
        assert!(matches!(reset, DccpBody::Reset { code: ResetCode::MandatoryError, .. }));
    }
}

#[test]
fn a_mandatory_before_padding_is_padding() {
    let mut pair = open(Ccid::Two);
    let unknown = DccpOption::Other { kind: 77, content: vec![1] };
    let packet = next_of_client(&pair, ack_of(&pair), vec![DccpOption::Mandatory, unknown]);
    let mut bytes = Vec::new();
    packet.encode(Carrier::Udp, &mut bytes);
    // Mandatory, then three bytes of the option: the padding takes their place.
    let read = |bytes: &[u8]| DccpPacket::decode(Carrier::Udp, bytes).expect("a packet");
    let last = bytes.len() - 4;
    assert_eq!(bytes[last..], [1, 77, 3, 1]);
    bytes[last + 1..].fill(0);
    assert_eq!(read(&bytes).options, []);
    assert!(answer(&mut pair, &read(&bytes)).is_none_or(|reply| reply.body.number() != 7));
    let reset =
        answer(&mut pair, &DccpPacket { seq: packet.seq.next(), ..packet }).expect("a Reset");
    assert!(matches!(reset.body, DccpBody::Reset { code: ResetCode::MandatoryError, .. }));
}

#[test]
fn options_that_have_no_place_on_data_are_ignored_there() {
    let mut pair = open(Ccid::Two);
    let options = vec![
        DccpOption::Mandatory,
        feature(FeatureStep::ChangeL, 99, &[1]),
        DccpOption::InitCookie(vec![1]),
        DccpOption::AckVector { nonce: false, runs: vec![0xff; 9] },
        DccpOption::DataDropped(vec![0xff]),
        DccpOption::ReceiveRate(1),
    ];
    let mut packet = next_of_client(&pair, DccpBody::Data, options);
    packet.data = text("two");
    let path = pair.server().path();
    let reply = answer(&mut pair, &packet);
    assert!(reply.is_none_or(|reply| reply.body.number() == 3 && reply.options.len() < 3));
    assert_eq!(pair.server().receive(), Some(text("two")));
    assert_eq!(pair.server().path(), path);
}

#[test]
fn the_sequence_window_follows_the_packets_of_a_round_trip() {
    let mut pair = Pair::of(&config(Ccid::Two));
    pair.is_greedy = true;
    (pair.rate, pair.buffer) = (Rate::from_mbps(100), 2000);
    // Two bursts of losses that are longer than three quarters of the first window.
    let mut count = 0u32;
    pair.loses = Box::new(move |from, packet| {
        count += u32::from(from == 0 && packet.body.carries_data());
        from == 0 && ((2000..2090).contains(&count) || (6000..6090).contains(&count))
    });
    pair.run(SECOND * 5);
    let is_change = |option: &DccpOption| match option {
        DccpOption::Feature(FeatureOption { step: FeatureStep::ChangeL, feature: 3, values }) => {
            values.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) > 100
        }
        _ => false,
    };
    assert!(pair.sent[0].iter().any(|packet| packet.options.iter().any(is_change)));
    assert!(pair.got.len() > 6100, "{}", pair.got.len());
    assert_eq!(pair.server().stats().invalid, 0);
    assert_eq!(pair.client.stats().invalid, 0);
}

#[test]
fn data_that_was_dropped_and_a_slow_receiver_halve_the_window() {
    for option in [DccpOption::DataDropped(vec![0xa0]), DccpOption::SlowReceiver] {
        let mut pair = Pair::of(&config(Ccid::Two));
        pair.is_greedy = true;
        pair.run(SECOND);
        let before = pair.client.path().window;
        let ack = pair.sent[0].iter().rev().find(|packet| packet.body.carries_data());
        let body = DccpBody::Ack { ack: ack.expect("data").seq };
        let last = pair.sent[1].last().expect("it has sent");
        let seq = last.seq.next();
        let packet = DccpPacket { seq, body, options: vec![option], ..last.clone() };
        let now = pair.now;
        pair.client.handle(now, &packet, false);
        let after = pair.client.path().window;
        assert!(before > 8 && after <= before / 2 + 1, "{before} {after}");
    }
}

#[test]
fn an_application_that_does_not_read_makes_its_end_say_that_it_is_slow() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let mut pair = open(ccid);
        let is_slow = |pair: &Pair| {
            let mut packets = pair.sent[1].iter();
            packets.any(|packet| packet.options.contains(&DccpOption::SlowReceiver))
        };
        pair.client.send(text("two")).expect("it fits");
        pair.run(SECOND);
        assert!(!is_slow(&pair), "{ccid:?}");
        pair.server().on_slow();
        pair.client.send(text("three")).expect("it fits");
        pair.run(SECOND);
        assert!(is_slow(&pair), "{ccid:?}");
    }
}

#[test]
fn proposals_are_sent_again_ever_more_seldom_until_they_are_answered() {
    let mut pair = open(Ccid::Two);
    // The server never hears of the wider window that the client asks for.
    pair.loses = Box::new(|from, packet| {
        from == 0 && packet.options.iter().any(|option| matches!(option, DccpOption::Feature(_)))
    });
    pair.is_greedy = true;
    pair.run(SECOND * 3);
    pair.is_greedy = false;
    let count = |pair: &Pair| {
        let is_proposal = |option: &DccpOption| {
            let DccpOption::Feature(feature) = option else { return true };
            feature.step == FeatureStep::ChangeL
        };
        // Answers to the server's own proposals are not counted.
        let packets = pair.sent[0].iter().filter(|packet| packet.body.number() == 3);
        packets.filter(|packet| packet.options.iter().all(is_proposal)).count()
    };
    // What waited has left; a minute and four seconds are the longest time between two.
    pair.run(SECOND * 1000);
    let before = count(&pair);
    pair.run(SECOND * 640);
    assert_eq!(count(&pair) - before, 10);
}

#[test]
fn a_sync_to_a_client_that_asks_gets_a_reset() {
    let mut client = DccpConnection::connect(Time::ZERO, config(Ccid::Two), 9);
    let request = client.poll(Time::ZERO).expect("a Request");
    let (source, destination) = (request.destination, request.source);
    let body = DccpBody::Sync { ack: request.seq };
    let sync = DccpPacket { source, destination, seq: DccpSeq::new(5), body, ..request };
    client.handle(Time::ZERO, &sync, false);
    let reset = client.poll(Time::ZERO).expect("a Reset").body;
    assert!(matches!(reset, DccpBody::Reset { code: ResetCode::PacketError, .. }), "{reset:?}");
    assert_eq!(client.event(), None, "it goes on asking");
}

#[test]
fn a_server_that_is_asked_to_close_answers_with_a_sync() {
    let mut pair = open(Ccid::Two);
    let DccpBody::Ack { ack } = ack_of(&pair) else { unreachable!("an Ack") };
    let packet = next_of_client(&pair, DccpBody::CloseReq { ack }, Vec::new());
    let reply = answer(&mut pair, &packet).expect("a Sync");
    assert_eq!(reply.body, DccpBody::Sync { ack: packet.seq });
    assert!(pair.server().is_connected());
}

#[test]
fn marks_are_asked_for_only_where_both_ends_know_them() {
    let mut pair = open(Ccid::Two);
    assert!(pair.client.may_be_marked() && pair.server().may_be_marked());
    let deaf = DccpConfig { ecn: false, ..config(Ccid::Two) };
    let mut pair = Pair::new(config(Ccid::Two), deaf);
    pair.client.send(text("one")).expect("it fits");
    pair.run(SECOND * 2);
    assert!(!pair.client.may_be_marked() && !pair.server().may_be_marked());
}
