//! How associations begin and end.

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::sctp::{
    AbortReason, SctpAssociation, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpPacket, SctpSend,
    respond_without_state,
};

use super::pair::{Pair, Way, address, plain};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn connected() -> Pair {
    let mut pair = Pair::new(1, &plain(), vec![Way::of(50, 10.0)]);
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(secs(5), both));
    pair
}

fn text(text: &'static str) -> SctpData {
    SctpData::Bytes(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_handshake_takes_two_round_trips_and_a_shutdown_one_and_a_half() {
    let mut pair = connected();
    // A packet of 60 bytes takes 48 microseconds beyond the delay.
    assert!(pair.now.since(Time::ZERO) < Duration::from_millis(202), "{:?}", pair.now);
    let (now, begin) = (pair.now, pair.now);
    pair.end(0).close(now);
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Closed));
    assert!(pair.run(secs(5), both));
    assert!(pair.now.since(begin) < Duration::from_millis(152));
    assert!(pair.events[1].contains(&SctpEvent::PeerFinished));
}

#[test]
fn data_that_go_with_the_cookie_come_a_round_trip_earlier() {
    for (early_data, millis) in [(true, 150), (false, 250)] {
        let config = SctpConfig { early_data, ..plain() };
        let mut pair = Pair::new(1, &config, vec![Way::of(50, 10.0)]);
        let now = pair.now;
        pair.end(0).send(now, SctpSend::default(), text("first")).unwrap();
        assert!(pair.run(secs(5), |pair| pair.got[1].len() == 1));
        let took = pair.now.since(Time::ZERO);
        let about = Duration::from_millis(millis);
        assert!(took >= about && took < about + Duration::from_millis(2), "{took:?}");
    }
}

#[test]
fn what_was_sent_before_the_close_arrives() {
    let mut pair = connected();
    let now = pair.now;
    for _ in 0..100 {
        pair.end(0).send(now, SctpSend::default(), text("last words")).unwrap();
    }
    pair.end(0).close(now);
    assert!(pair.end(0).send(now, SctpSend::default(), text("too late")).is_err());
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Closed));
    assert!(pair.run(secs(5), both));
    assert_eq!(pair.got[1].len(), 100);
}

#[test]
fn an_abort_ends_both() {
    let mut pair = connected();
    pair.end(1).abort();
    pair.run(secs(1), |_| false);
    assert_eq!(pair.events[1].last(), Some(&SctpEvent::Aborted(AbortReason::Application)));
    assert!(matches!(
        pair.events[0].last(),
        Some(SctpEvent::Aborted(AbortReason::Peer(causes))) if causes[0].code == 12
    ));
    assert!(pair.end(0).is_closed() && pair.end(1).is_closed());
}

#[test]
fn a_peer_that_is_silent_is_given_up() {
    let mut pair = connected();
    pair.ways[0].is_down = true;
    let now = pair.now;
    pair.end(0).send(now, SctpSend::default(), text("hello?")).unwrap();
    pair.run(secs(1000), |_| false);
    assert_eq!(pair.events[0].last(), Some(&SctpEvent::Aborted(AbortReason::Silence)));
    // The other end's heartbeats have no answers either.
    assert_eq!(pair.events[1].last(), Some(&SctpEvent::Aborted(AbortReason::Silence)));
}

#[test]
fn a_client_that_gets_no_answer_gives_up() {
    let way = Way { is_down: true, ..Way::of(50, 10.0) };
    let mut pair = Pair::new(1, &plain(), vec![way]);
    pair.run(secs(1000), |_| false);
    assert_eq!(pair.events[0], [SctpEvent::Aborted(AbortReason::Silence)]);
    assert!(pair.end(0).is_closed());
}

#[test]
fn a_peer_that_lost_its_state_begins_anew() {
    let mut pair = connected();
    let now = pair.now;
    pair.end(0).send(now, SctpSend::default(), text("old")).unwrap();
    pair.run(secs(1), |_| false);
    // The client forgets everything.
    let ends = [address(0, 0), address(1, 0)];
    let config = pair.configs[0].clone();
    pair.ends[0] = Some(SctpAssociation::connect(pair.now, config, ends));
    pair.events = Default::default();
    let restarted = |pair: &Pair| pair.events[1].contains(&SctpEvent::Restarted);
    assert!(pair.run(secs(5), restarted));
    let now = pair.now;
    pair.end(1).send(now, SctpSend::default(), text("to the new one")).unwrap();
    pair.run(secs(1), |_| false);
    let now = pair.now;
    pair.end(0).send(now, SctpSend::default(), text("new")).unwrap();
    pair.run(secs(1), |_| false);
    assert_eq!(pair.got[1].last().unwrap().data, text("new"));
    assert_eq!(pair.got[0].last().unwrap().data, text("to the new one"));
}

#[test]
fn two_ends_that_connect_at_once_get_one_association() {
    let mut pair = Pair::new(5, &plain(), vec![Way::of(50, 10.0)]);
    let ends = [address(1, 0), address(0, 0)];
    pair.ends[1] = Some(SctpAssociation::connect(pair.now, pair.configs[1].clone(), ends));
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(secs(5), both));
    for end in 0..2 {
        let now = pair.now;
        pair.end(end).send(now, SctpSend::default(), text("both ways")).unwrap();
    }
    pair.run(secs(2), |_| false);
    assert_eq!((pair.got[0].len(), pair.got[1].len()), (1, 1));
}

#[test]
fn no_state_is_kept_before_the_cookie_and_a_forged_one_makes_none() {
    let pair = Pair::new(1, &plain(), vec![Way::of(50, 10.0)]);
    let config = &pair.configs[1];
    let ends = [address(0, 0), address(1, 0)];
    let mut client = SctpAssociation::connect(pair.now, pair.configs[0].clone(), ends);
    let init = client.poll(pair.now).unwrap().packet;
    let back = [ends[1], ends[0]];
    assert!(SctpAssociation::accept(pair.now, config.clone(), back, &init).is_err());
    let answer = respond_without_state(pair.now, config, back, &init).unwrap();
    client.handle(pair.now, ends, &answer, false);
    let echo = client.poll(pair.now).unwrap().packet;
    assert!(SctpAssociation::accept(pair.now, config.clone(), back, &echo).is_ok());
    let SctpChunk::CookieEcho(cookie) = &echo.chunks[0] else { panic!("{echo:?}") };
    for at in 0..cookie.len() {
        let mut forged = cookie.to_vec();
        forged[at] ^= 1;
        let chunks = vec![SctpChunk::CookieEcho(forged.into())];
        let packet = SctpPacket { chunks, ..echo.clone() };
        let made = SctpAssociation::accept(pair.now, config.clone(), back, &packet);
        assert!(matches!(made, Err(None)), "byte {at}");
    }
    // An old one gets an error, so that the client asks anew.
    let late = pair.now + secs(61);
    let Err(Some(stale)) = SctpAssociation::accept(late, config.clone(), back, &echo) else {
        panic!("an old cookie is refused with an error")
    };
    client.handle(late, ends, &stale, false);
    let again = client.poll(late).unwrap().packet;
    assert!(matches!(again.chunks[0], SctpChunk::Init(_)), "{again:?}");
}

#[test]
fn packets_without_an_association_are_answered_as_section_8_4_says() {
    let pair = Pair::new(1, &plain(), vec![Way::of(50, 10.0)]);
    let ends = [address(1, 0), address(0, 0)];
    let answer = |chunk: SctpChunk| {
        let packet = SctpPacket { source: 9, destination: 8, tag: 77, chunks: vec![chunk] };
        respond_without_state(pair.now, &pair.configs[1], ends, &packet)
    };
    let abort = answer(SctpChunk::Heartbeat(Bytes::from_static(b"x"))).unwrap();
    assert_eq!((abort.tag, abort.source, abort.destination), (77, 8, 9));
    assert!(matches!(abort.chunks[0], SctpChunk::Abort { is_reflected: true, .. }));
    let complete = answer(SctpChunk::ShutdownAck).unwrap();
    assert_eq!(complete.chunks, [SctpChunk::ShutdownComplete { is_reflected: true }]);
    assert_eq!(answer(SctpChunk::CookieAck), None);
    assert_eq!(answer(SctpChunk::Abort { is_reflected: false, causes: Vec::new() }), None);
}
