//! A SYN from anybody, as it comes and as somebody with keys would make it.

use std::net::SocketAddr;

use bytes::Bytes;
use fontis::Identity;
use fontis::protection::{Cookies, Initiator, open_syn};
use fontis_base::{Duration, Time};
use fontis_proto::dfcp::{ConnectionId, DfcpPacket, Session, VERSION, wire};
use zeroize::Zeroizing;

/// Bytes of nobody open to nothing. A hello that decodes arrives as it was sent, if it fits; and no
/// bytes are a cookie.
pub(crate) fn run(data: &[u8]) {
    let identity = |byte| Identity::of_secret(Zeroizing::new([byte; 32]));
    let (server, client) = (identity(1), identity(2));
    let mut padded = data.to_vec();
    padded.resize(padded.len().max(1200), 0);
    assert!(open_syn(&padded, server.secret(), None).is_err());
    if let Some(first) = data.first_chunk::<16>() {
        let now = Time::ZERO + Duration::from_secs(100);
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(!Cookies::new().is_valid(now, from, ConnectionId([1; 8]), first));
    }
    let Ok(hello) = wire::decode_hello(Bytes::copy_from_slice(data)) else { return };
    let source = ConnectionId([1; 8]);
    let packet = DfcpPacket::Syn { version: VERSION, source, hello: hello.clone() };
    let key = *server.public().as_bytes();
    let mut initiator = Initiator::new(*client.secret(), key, None);
    let mut datagram = Vec::new();
    if initiator.seal(&packet, &mut datagram).is_err() {
        return;
    }
    let opened = open_syn(&datagram, server.secret(), None).expect("what we seal opens");
    assert_eq!((opened.source, opened.hello.params), (source, hello.params));
    assert_eq!(opened.client, *client.public().as_bytes());
}
