//! What a receiver refuses, and how its peer learns of it.

use bytes::Bytes;
use fontis_base::Duration;
use fontis_codes::Code;
use fontis_proto::dfcp::{
    CloseReason, DfcpConfig, DfcpEvent, DfcpPacket, Frame, Kept, MemoryBudget, NO_ROOM,
    NOT_ASKED_FOR, ObjectShape, SendOptions, TOO_LONG,
};

use super::pair::{Pair, Side};

/// A connected pair whose server has this configuration.
fn connected(server: DfcpConfig) -> Pair {
    let mut pair = Pair::new(DfcpConfig::default(), server, Duration::from_millis(10), None);
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.is_established() && pair.server().is_established());
    pair.events.clear();
    pair
}

fn messages(pair: &Pair) -> usize {
    let events = pair.events_of(Side::Server);
    events.iter().filter(|event| matches!(event, DfcpEvent::Message { .. })).count()
}

#[test]
fn a_message_that_is_too_long_is_refused_and_its_sender_learns_why() {
    let mut pair = connected(DfcpConfig { longest_message: 1 << 20, ..DfcpConfig::default() });
    let fits = vec![1; 1 << 20];
    let long = vec![1; (1 << 20) + 1];
    pair.client.send_message(fits.into(), SendOptions { ordered: true, ..Default::default() });
    let ordered = SendOptions { ordered: true, ..SendOptions::default() };
    let refused = [
        pair.client.send_message(long.clone().into(), ordered),
        pair.client.send_message(long.into(), SendOptions::default()),
    ];
    pair.client.send_message("after".into(), ordered);
    pair.run_for(Duration::from_secs(3));
    for channel in refused {
        let abandoned = DfcpEvent::Abandoned { channel, code: TOO_LONG };
        assert!(pair.events_of(Side::Client).contains(&&abandoned), "{:?}", pair.client.stats());
    }
    assert_eq!(messages(&pair), 2, "those before and after it");
    assert_eq!(pair.server().stats().refused, 2);
}

#[test]
fn a_request_that_an_endpoint_has_no_memory_for_is_refused_and_its_sender_learns_why() {
    let budget = MemoryBudget::new(600_000);
    let config = DfcpConfig { budget: Some(budget.clone()), ..DfcpConfig::default() };
    let mut pair = connected(config);
    let message = pair.client.send_message(vec![1; 250_000].into(), SendOptions::default());
    let stream = pair.client.open_stream(SendOptions::default());
    pair.client.write(stream, vec![1; 250_000].into());
    let now = pair.now;
    let shape = ObjectShape::partition(1 << 20, 1192, Code::RaptorQ);
    let object = pair.client.send_object(now, shape, Bytes::new(), SendOptions::default());
    pair.client.send_message("short".into(), SendOptions::default());
    pair.run_for(Duration::from_secs(1));
    for channel in [message, stream, object.unwrap()] {
        let abandoned = DfcpEvent::Abandoned { channel, code: NO_ROOM };
        assert!(pair.events_of(Side::Client).contains(&&abandoned), "channel {channel}");
    }
    assert_eq!(messages(&pair), 1, "the short one");
    assert_eq!(budget.used(), 0);
}

#[test]
fn who_has_asked_for_an_object_that_there_is_no_memory_for_is_told() {
    let budget = Some(MemoryBudget::new(600_000));
    let mut pair = connected(DfcpConfig { budget, ..DfcpConfig::default() });
    pair.server().expect_object("asked for".into(), Kept::default());
    let (now, shape) = (pair.now, ObjectShape::partition(1 << 20, 1192, Code::RaptorQ));
    let channels = ["asked for", "another"].map(|label| {
        let object = pair.client.send_object(now, shape, label.into(), SendOptions::default());
        object.unwrap()
    });
    pair.run_for(Duration::from_secs(1));
    let told = channels.map(|channel| {
        let abandoned = DfcpEvent::Abandoned { channel, code: NO_ROOM };
        pair.events_of(Side::Server).contains(&&abandoned)
    });
    assert_eq!(told, [true, false]);
}

#[test]
fn an_object_that_nobody_asked_for_is_refused_and_its_sender_learns_why() {
    let shape = ObjectShape::partition(5000, 1192, Code::RaptorQ);
    let mut pair = Pair::connected();
    let offer = |pair: &mut Pair, label: &'static str| {
        let (now, label) = (pair.now, Bytes::from(label));
        pair.client.send_object(now, shape, label, SendOptions::default()).unwrap()
    };
    let early = [offer(&mut pair, "early"), offer(&mut pair, "asked for early")];
    pair.run_for(Duration::from_millis(50));
    pair.server().expect_object("asked for early".into(), Kept::default());
    let now = pair.now;
    pair.server().refuse_unasked(now);
    pair.server().expect_object("asked for".into(), Kept::default());
    let late = [offer(&mut pair, "asked for"), offer(&mut pair, "not")];
    // What was asked for once is given once.
    let again = offer(&mut pair, "asked for");
    pair.run_for(Duration::from_millis(200));
    let refused = |pair: &Pair, channel| {
        let abandoned = DfcpEvent::Abandoned { channel, code: NOT_ASKED_FOR };
        pair.events_of(Side::Client).contains(&&abandoned)
    };
    assert_eq!(early.map(|channel| refused(&pair, channel)), [true, false]);
    assert_eq!(late.map(|channel| refused(&pair, channel)), [false, true]);
    assert!(refused(&pair, again));
    let events = pair.events_of(Side::Server);
    let ended = DfcpEvent::Abandoned { channel: early[0], code: NOT_ASKED_FOR };
    assert!(events.contains(&&ended), "the application that was told of it is told of its end");
}

#[test]
fn many_long_messages_at_once_all_arrive_although_they_do_not_fit_together() {
    // Four windows of the least that counts are 64 MiB; these are 160 MiB, and cost twice that.
    let fields = fontis_proto::dfcp::ParamFields {
        window: 1 << 20,
        max_block: 1 << 20,
        ..Default::default()
    };
    let params = fontis_proto::dfcp::Params::new(fields).unwrap();
    let rate = fontis_proto::rate::RateKind::Fixed(fontis_base::Rate::from_mbps(2000));
    let client = DfcpConfig { rate, ..DfcpConfig::default() };
    let server = DfcpConfig { params, ..client.clone() };
    let mut pair = Pair::new(client, server, Duration::from_millis(1), None);
    pair.run_for(Duration::from_millis(100));
    let message = Bytes::from(vec![7; 4 << 20]);
    for _ in 0..40 {
        pair.client.send_message(message.clone(), SendOptions::default());
    }
    for second in 0..60 {
        pair.run_for(Duration::from_secs(1));
        pair.sent.clear();
        if messages(&pair) == 40 {
            println!("all after {second} s");
            break;
        }
    }
    assert_eq!(messages(&pair), 40, "{:?}", pair.server().stats());
}

#[test]
fn who_offers_on_and_on_and_takes_no_answer_is_left() {
    for hears in [true, false] {
        let mut pair = connected(DfcpConfig::default());
        let now = pair.now;
        pair.server().refuse_unasked(now);
        pair.alter = Box::new(move |side, packet| {
            if let (false, Side::Client, DfcpPacket::Sealed { frames, .. }) = (hears, side, packet)
            {
                frames.retain(|frame| !matches!(frame, Frame::Feedback(_)));
            }
        });
        let shape = ObjectShape::partition(1 << 20, 1192, Code::RaptorQ);
        for _ in 0..1000 {
            let now = pair.now;
            pair.client.send_object(now, shape, Bytes::new(), SendOptions::default());
            pair.run_for(Duration::from_millis(5));
        }
        pair.run_for(Duration::from_secs(5));
        let overrun = DfcpEvent::Closed(CloseReason::Overrun);
        assert_eq!(pair.events_of(Side::Server).contains(&&overrun), !hears);
        let refused = pair.server().stats().refused;
        assert!(if hears { refused == 1000 } else { refused <= 256 }, "{refused} were refused");
        let told = pair.events_of(Side::Client).into_iter().find_map(|event| match event {
            DfcpEvent::Closed(CloseReason::Peer { code, .. }) => Some(*code),
            _ => None,
        });
        assert_eq!(told, if hears { None } else { Some(7) });
    }
}
