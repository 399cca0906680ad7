//! An established connection whose peer sends any frames that decode, and whose application makes
//! any call that it may: a byte says which side it is, the rest are commands ([`Side::feed`]).

use fontis_base::{Duration, Ecn, Time};
use fontis_proto::dfcp::{ConnectionId, DfcpConnection, DfcpPacket};

use super::side::{SIZE, Side, config};

/// The two sides after a handshake over a path of 10 ms.
fn handshake() -> Option<(Time, Side, Side)> {
    let start = Time::ZERO + Duration::from_secs(1);
    let mut client =
        Side::new(DfcpConnection::connect(start, config(), ConnectionId([1; 8]), None));
    let syn = client.drive(start).into_iter().next()?;
    let DfcpPacket::Syn { version, source, hello } = syn else { return None };
    let at = start + Duration::from_millis(5);
    let id = ConnectionId([2; 8]);
    let mut server =
        Side::new(DfcpConnection::accept(at, config(), id, source, version, &hello, SIZE));
    let answers = server.drive(at);
    let now = start + Duration::from_millis(10);
    for packet in answers {
        client.connection.handle(now, packet, SIZE, Ecn::NotEct);
    }
    for packet in client.drive(now) {
        server.connection.handle(now, packet, SIZE, Ecn::NotEct);
    }
    server.drive(now);
    Some((now, client, server))
}

/// Feeds one side.
pub(crate) fn run(data: &[u8]) {
    let Some((now, client, server)) = handshake() else {
        panic!("the handshake succeeds");
    };
    let Some((first, rest)) = data.split_first() else { return };
    let mut side = if first & 1 == 0 { client } else { server };
    side.feed(now, rest);
}
