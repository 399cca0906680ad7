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
