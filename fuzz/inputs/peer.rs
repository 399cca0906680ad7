//! A connection whose peer announces any parameters that decode, and then sends any frames.
//!
//! The input is a byte that says which side it is, a byte with the length of the peer's hello, the
//! hello, and commands ([`Side::feed`]).

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Time};
use fontis_proto::dfcp::{ConnectionId, DfcpConnection, DfcpPacket, VERSION, wire};

use super::side::{SIZE, Side, config};

const OURS: ConnectionId = ConnectionId([1; 8]);
const THEIRS: ConnectionId = ConnectionId([2; 8]);

/// Feeds one side, from the peer's hello on.
pub(crate) fn run(data: &[u8]) {
    let Some((&[role, length], rest)) = data.split_first_chunk::<2>() else { return };
    let (hello, rest) = rest.split_at(usize::from(length).min(rest.len()));
    let Ok(hello) = wire::decode_hello(Bytes::copy_from_slice(hello)) else { return };
    let start = Time::ZERO + Duration::from_secs(1);
    let now = start + Duration::from_millis(10);
    let mut side = if role & 1 == 0 {
        let early = (role & 2 == 0).then(|| Bytes::from_static(b"early"));
        let mut side = Side::new(DfcpConnection::connect(start, config(), OURS, early));
        side.drive(start);
        let answer = DfcpPacket::SynAck { destination: OURS, source: THEIRS, hello };
        side.connection.handle(now, answer, SIZE, Ecn::NotEct);
        side
    } else {
        Side::new(DfcpConnection::accept(now, config(), OURS, THEIRS, VERSION, &hello, SIZE))
    };
    side.drive(now);
    side.feed(now, rest);
}
