//! SYNs of strangers: whatever a hello says, a responder neither panics nor keeps much.

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    ConnectionId, DfcpConfig, DfcpConnection, DfcpEvent, Hello, VERSION, wire,
};

const NOW: Time = Time::ZERO;

/// A variable-length integer of four bytes (RFC 9000, section 16).
fn varint(value: u32) -> [u8; 4] {
    assert!(value < 1 << 30);
    (value | 0x8000_0000).to_be_bytes()
}

/// The parameters of a hello; `symbol_size` is where a hostile peer lies.
fn hello_head(symbol_size: u32) -> Vec<u8> {
    let mut bytes = vec![1, Code::RaptorQ.id()];
    for value in [64 << 20, 4 << 20, symbol_size, 60_000] {
        bytes.extend(varint(value));
    }
    bytes.extend([7; 16]);
    bytes
}

/// A frame with symbols of a message: one block of `block_len` bytes, of which `data` is symbol
/// `esi`.
fn message(channel: u32, block_len: u32, esi: u32, data: &[u8]) -> Vec<u8> {
    // The kind is symbols, with the flags length, live, fin and message.
    let mut bytes = vec![0x40 | 0x01 | 0x02 | 0x04 | 0x08];
    for value in [channel, 0, esi, block_len, data.len() as u32] {
        bytes.extend(varint(value));
    }
    bytes.extend(data);
    bytes
}

/// Hands a SYN to a responder, as far as its hello is one, and lets the responder answer.
fn accept(hello: Vec<u8>) -> Option<(DfcpConnection, Vec<DfcpEvent>)> {
    let hello: Hello = wire::decode_hello(Bytes::from(hello)).ok()?;
    let (local, remote) = (ConnectionId([2; 8]), ConnectionId([1; 8]));
    let mut server =
        DfcpConnection::accept(NOW, DfcpConfig::default(), local, remote, VERSION, &hello, 1228);
    let mut events = Vec::new();
    for ms in 0..50 {
        let now = NOW + Duration::from_millis(ms);
        while server.poll(now).is_some() {}
        events.extend(core::iter::from_fn(|| server.event()));
    }
    Some((server, events))
}

#[test]
fn a_symbol_size_of_zero_with_an_early_message_is_no_hello() {
    let hello = [hello_head(0), message(0, 3, 0, b"ask")].concat();
    assert!(accept(hello).is_none());
}

#[test]
fn an_early_message_in_one_symbol_is_delivered() {
    let hello = [hello_head(1192), message(0, 900, 0, &[5; 900])].concat();
    let (server, events) = accept(hello).expect("an honest hello");
    assert_eq!(server.stats().violations, 0);
    let expected = DfcpEvent::Message { channel: 0, data: vec![5; 900].into(), early: true };
    assert!(events.contains(&expected), "{events:?}");
}

#[test]
fn early_symbols_that_are_no_whole_message_are_refused() {
    let block = 4 << 20;
    let last = (block - 1) / 1192;
    let short = vec![5; (block - last * 1192) as usize];
    let refused = [
        ("the last symbol of a long message", message(0, block, last, &short)),
        ("the first symbol of a long message", message(0, 2000, 0, &[5; 1000])),
        ("a repair symbol", message(0, 900, 1, &[5; 904])),
        ("a message of 901 bytes", message(0, 901, 0, &[5; 901])),
        ("less than the message", message(0, 900, 0, &[5; 899])),
        ("two messages", [message(0, 3, 0, b"ask"), message(2, 3, 0, b"ask")].concat()),
    ];
    for (what, frames) in refused {
        let (server, events) = accept([hello_head(1192), frames].concat()).expect("a true hello");
        assert!(
            !events.iter().any(|e| matches!(e, DfcpEvent::Message { .. })),
            "{what}: {events:?}"
        );
        assert_eq!(server.stats().violations, 1, "{what}");
        assert!(!server.is_receiving(), "{what}");
    }
}

#[test]
fn an_early_message_that_does_not_fit_into_a_symbol_of_its_sender_is_refused() {
    let hello = [hello_head(64), message(0, 128, 0, &[5; 64])].concat();
    let (server, events) = accept(hello).expect("a true hello");
    assert!(!events.iter().any(|e| matches!(e, DfcpEvent::Message { .. })), "{events:?}");
    assert_eq!(server.stats().violations, 1);
}
