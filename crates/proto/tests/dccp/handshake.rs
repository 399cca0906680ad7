//! Beginning and end of connections, and packets that do not belong.

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::dccp::{
    COOKIE_CODE, Ccid, DccpBody, DccpConfig, DccpConnection, DccpData, DccpEvent, DccpOption,
    DccpPacket, DccpSeq, FeatureStep, ResetCode, accept_with_cookie, no_connection,
    respond_without_state,
};

use super::pair::Pair;

const SECOND: Duration = Duration::from_secs(1);
const CCIDS: [Ccid; 3] = [Ccid::Two, Ccid::Three, Ccid::Four];

fn config(ccid: Ccid) -> DccpConfig {
    DccpConfig { ccid, service: 7, queue: 100, ..DccpConfig::default() }
}

fn text(text: &'static str) -> DccpData {
    DccpData::Bytes(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_connection_opens_carries_datagrams_both_ways_and_closes() {
    for ccid in CCIDS {
        let mut pair = Pair::of(&config(ccid));
        assert_eq!(pair.client.send(text("one")), Ok(true));
        assert_eq!(pair.client.send(text("two")), Ok(true));
        pair.run(SECOND * 4);
        assert_eq!(pair.got, [text("one"), text("two")], "{ccid:?}");
        assert_eq!(pair.client.ccid(), Some(ccid));
        assert_eq!(pair.server().send(text("three")), Ok(true));
        pair.client.close();
        pair.run(SECOND * 4);
        assert_eq!(pair.events[0], [DccpEvent::Connected, DccpEvent::Closed], "{ccid:?}");
        assert_eq!(pair.events[1], [DccpEvent::Connected, DccpEvent::Closed], "{ccid:?}");
        assert!(pair.server().is_closed());
        // The client remembers for two maximum segment lifetimes.
        assert!(!pair.client.is_closed());
        pair.run(SECOND * 240);
        assert!(pair.client.is_closed());
    }
}

#[test]
fn a_server_that_closes_lets_the_client_remember() {
    let mut pair = Pair::of(&config(Ccid::Two));
    pair.client.send(text("one")).expect("it fits");
    pair.run(SECOND);
    pair.server().close();
    pair.run(SECOND);
    let types: Vec<u8> = pair.sent[1].iter().map(|packet| packet.body.number()).collect();
    assert!(types.contains(&5) && types.last() == Some(&7), "{types:?}");
    assert!(pair.server().is_closed() && !pair.client.is_closed());
}

#[test]
fn a_connection_survives_the_loss_of_any_one_packet() {
    for ccid in CCIDS {
        for side in 0..2 {
            for lost in 0..6 {
                let mut pair = Pair::of(&config(ccid));
                let mut count = 0;
                pair.loses = Box::new(move |from, _| {
                    count += usize::from(from == side);
                    from == side && count == lost + 1
                });
                pair.client.send(text("one")).expect("it fits");
                pair.client.send(text("two")).expect("it fits");
                pair.run(SECOND * 10);
                pair.client.close();
                pair.run(SECOND * 30);
                let case = format!("{ccid:?}, packet {lost} of end {side}");
                assert_eq!(pair.events[0], [DccpEvent::Connected, DccpEvent::Closed], "{case}");
                assert!(!pair.got.is_empty(), "{case}");
                assert!(pair.server().is_closed(), "{case}");
            }
        }
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let mut pair = Pair::of(&config(Ccid::Two));
    pair.loses = Box::new(|_, _| true);
    pair.run(SECOND * 600);
    assert_eq!(pair.events[0], [DccpEvent::Aborted(ResetCode::Aborted)]);
    let requests = pair.sent[0].iter().filter(|packet| packet.body.number() == 0);
    assert_eq!(requests.count(), 8);
}

#[test]
fn another_service_and_another_congestion_control_are_refused() {
    let other = DccpConfig { service: 8, ..config(Ccid::Two) };
    for (server, code) in
        [(other, ResetCode::BadServiceCode), (config(Ccid::Three), ResetCode::MandatoryError)]
    {
        let mut pair = Pair::new(config(Ccid::Two), server);
        pair.run(SECOND * 2);
        assert_eq!(pair.events[0], [DccpEvent::Aborted(code)]);
        assert!(!pair.server().is_connected() && !pair.client.is_connected());
    }
}

#[test]
fn a_packet_outside_the_window_gets_a_sync_and_does_no_harm() {
    let mut pair = Pair::of(&config(Ccid::Two));
    pair.client.send(text("one")).expect("it fits");
    pair.run(SECOND);
    let last = pair.sent[0].last().expect("it has sent").clone();
    let forged = DccpPacket {
        seq: last.seq.plus(1_000_000),
        body: DccpBody::Reset { ack: DccpSeq::new(5), code: ResetCode::Aborted, details: [0; 3] },
        ..last
    };
    let now = pair.now;
    pair.server().handle(now, &forged, false);
    let answer = pair.server().poll(now).expect("a Sync");
    assert!(matches!(answer.body, DccpBody::Sync { .. }), "{answer:?}");
    // Only so many in a second.
    pair.server().handle(now, &forged, false);
    assert_eq!(pair.server().poll(now), None);
    pair.client.send(text("two")).expect("it fits");
    pair.run(SECOND);
    assert_eq!(pair.got, [text("one"), text("two")]);
}

#[test]
fn ends_that_lost_more_than_a_window_find_together_again() {
    let mut pair = Pair::of(&DccpConfig { queue: 1000, ..config(Ccid::Three) });
    // The server never hears that its window should be wider.
    let widens = |packet: &DccpPacket| {
        packet.options.iter().any(|option| match option {
            DccpOption::Feature(step) => step.feature == 3 && step.step == FeatureStep::ChangeL,
            _ => false,
        })
    };
    pair.loses = Box::new(move |from, packet| from == 0 && widens(packet));
    pair.is_greedy = true;
    pair.run(SECOND * 3);
    pair.loses = Box::new(|from, _| from == 0);
    pair.run(SECOND * 2);
    let sent = pair.client.stats().data_sent;
    pair.loses = Box::new(|_, _| false);
    pair.run(SECOND * 60);
    assert!(pair.server().stats().syncs > 0);
    assert!(pair.got.len() as u64 > sent + 100, "{} after {sent}", pair.got.len());
}

#[test]
fn a_packet_without_a_connection_gets_a_reset_and_a_reset_gets_nothing() {
    let mut client = DccpConnection::connect(Time::ZERO, config(Ccid::Two), 9);
    let request = client.poll(Time::ZERO).expect("a Request");
    let reset = no_connection(&request).expect("a Reset");
    assert_eq!((reset.source, reset.destination), (request.destination, request.source));
    assert_eq!(no_connection(&reset), None);
    client.handle(Time::ZERO, &reset, false);
    assert_eq!(client.event(), Some(DccpEvent::Aborted(ResetCode::NoConnection)));
}

#[test]
fn short_numbers_are_used_where_they_are_agreed() {
    let mut pair = Pair::of(&DccpConfig { short_numbers: true, ..config(Ccid::Two) });
    pair.is_greedy = true;
    pair.run(SECOND * 2);
    let count = |is_short| pair.sent[0].iter().filter(|packet| packet.is_short == is_short).count();
    assert!(count(true) > 10 * count(false), "{} {}", count(true), count(false));
    assert!(pair.got.len() > 100);
}

/// A code for tests: any change of the content changes it.
fn code(secret: u8) -> impl Fn(&[u8]) -> [u8; COOKIE_CODE] {
    move |content| {
        let mut sum = [secret; COOKIE_CODE];
        for (place, byte) in content.iter().enumerate() {
            let at = place % COOKIE_CODE;
            sum[at] = sum[at].wrapping_mul(31).wrapping_add(*byte) ^ place as u8;
        }
        sum
    }
}

#[test]
fn a_server_with_cookies_keeps_nothing_until_the_client_answers() {
    for ccid in CCIDS {
        let config = config(ccid);
        let (now, secret) = (Time::ZERO + SECOND, code(7));
        let mut client = DccpConnection::connect(now, config.clone(), 99);
        let request = client.poll(now).expect("a Request");
        let response = respond_without_state(now, &config, 5, &request, &secret);
        client.handle(now, &response.expect("a Response"), false);
        assert_eq!(client.event(), Some(DccpEvent::Connected));
        client.send(text("one")).expect("it fits");
        let answer = client.poll(now).expect("data");
        let accept = |packet: &DccpPacket, now, secret: u8| {
            accept_with_cookie(now, &config, packet, &code(secret))
        };
        assert!(accept(&answer, now + SECOND * 121, 7).is_none(), "too old");
        assert!(accept(&answer, now, 8).is_none(), "of another server");
        let other = DccpPacket { source: 1, ..answer.clone() };
        assert!(accept(&other, now, 7).is_none(), "of another client");
        let mut server = accept(&answer, now, 7).expect("it is right");
        assert_eq!(server.receive(), Some(text("one")));
        assert_eq!(server.ccid(), Some(ccid));
        // The client sends the cookie until it has heard from an open server.
        let reply = server.poll(now + SECOND).expect("an acknowledgement");
        client.handle(now + SECOND, &reply, false);
        client.send(text("two")).expect("it fits");
        let next = client.poll(now + SECOND * 5).expect("data");
        let has_cookie = |packet: &DccpPacket| {
            packet.options.iter().any(|option| matches!(option, DccpOption::InitCookie(_)))
        };
        assert_eq!((has_cookie(&answer), has_cookie(&next)), (true, false));
    }
}
