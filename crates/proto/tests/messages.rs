//! How often the symbols of messages leave.

use bytes::Bytes;
use fontis_base::Duration;
use fontis_proto::dfcp::{DfcpEvent, SendOptions};

use crate::pair::{Pair, Side};

/// Sends so many messages of 172 bytes over a path that loses every twentieth packet of the
/// client. Returns how many arrived, and the symbols that left for each.
fn send(count: u8, options: SendOptions) -> (usize, f64) {
    let mut pair = Pair::connected();
    let mut packets = 0;
    pair.loss = Box::new(move |_, sent| {
        packets += u64::from(sent.from == Side::Client);
        sent.from == Side::Client && packets % 20 == 0
    });
    let before = pair.client.stats().symbols_sent;
    for number in 0..count {
        pair.client.send_message(Bytes::from(vec![number; 172]), options);
        pair.run_for(Duration::from_millis(20));
    }
    pair.run_for(Duration::from_secs(5));
    let arrived = pair.events_of(Side::Server);
    let arrived =
        arrived.into_iter().filter(|event| matches!(event, DfcpEvent::Message { .. })).count();
    let symbols = pair.client.stats().symbols_sent - before;
    (arrived, symbols as f64 / f64::from(count))
}

#[test]
fn a_sparing_message_leaves_once_and_again_only_if_it_was_lost() {
    let (arrived, symbols) = send(200, SendOptions { sparing: true, ..SendOptions::default() });
    assert_eq!(arrived, 200);
    assert!((1.0..1.25).contains(&symbols), "{symbols} symbols a message");
    let (arrived, symbols) = send(200, SendOptions::default());
    assert_eq!(arrived, 200);
    assert!(symbols > 1.5, "{symbols} symbols a message: copies go with each");
}

#[test]
fn what_belongs_to_messages_travels_together() {
    let mut pair = Pair::connected();
    pair.one_way = Duration::from_millis(50);
    let mut random = fontis_base::Stream::new(0x6d65_7373, "messages");
    pair.loss = Box::new(move |_, _| random.unit() < 0.05);
    let options = SendOptions { sparing: true, ..SendOptions::default() };
    let talk = |pair: &mut Pair, count: u64| {
        for number in 0..count {
            let message = || Bytes::from(vec![number as u8; 172]);
            pair.client.send_message(message(), options);
            pair.server().send_message(message(), options);
            pair.run_for(Duration::from_millis(20));
        }
    };
    // The round trip is not known yet.
    talk(&mut pair, 100);
    let before = pair.client.stats();
    talk(&mut pair, 1000);
    let after = pair.client.stats();
    let packets = after.packets_sent - before.packets_sent;
    let bytes = after.bytes_sent - before.bytes_sent;
    // A packet for each message, and one for what the other side's messages ask for. The message
    // and its headers have 240 bytes.
    assert!(packets < 2400, "{packets} packets for a thousand messages each way");
    assert!(bytes < 380_000, "{bytes} bytes");
}

#[test]
fn messages_that_are_given_up_cost_few_packets() {
    let mut pair = Pair::connected();
    // Nothing that the client sends arrives for ten seconds.
    pair.loss = Box::new(|_, sent| sent.from == Side::Client);
    let before = pair.client.stats().packets_sent;
    for number in 0..1000_u32 {
        let deadline = Some(pair.now + Duration::from_millis(200));
        let options = SendOptions { deadline, ..SendOptions::default() };
        pair.client.send_message(Bytes::copy_from_slice(&number.to_be_bytes()), options);
        pair.run_for(Duration::from_millis(10));
    }
    let packets = pair.client.stats().packets_sent - before;
    assert!(packets < 1500, "{packets} packets for 1000 messages");
    pair.loss = Box::new(|_, _| false);
    pair.run_for(Duration::from_secs(4));
    pair.events.clear();
    pair.client.send_message(Bytes::from_static(b"after"), SendOptions::default());
    pair.run_for(Duration::from_millis(500));
    let arrived = pair.events_of(Side::Server);
    assert!(arrived.iter().any(|event| matches!(event, DfcpEvent::Message { .. })));
}
