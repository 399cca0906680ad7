use super::bytes::{mix, short, word};
use super::ip_packet::IpPacket;
use crate::header::PacketHeader;
use crate::packet::Kind;

/// RFC 4340 section 5.
pub(super) fn read(body: &[u8], seen: &mut IpPacket) -> Option<()> {
    let kind = (*body.get(8)? >> 1) & 15;
    let long = body[8] & 1 == 1;
    let (seq, at) = if long {
        (u64::from(short(body, 10)?) << 32 | u64::from(word(body, 12)?), 16)
    } else {
        (u64::from(word(body, 8)? & 0x00ff_ffff), 12)
    };
    // All but requests and data carry an acknowledgement number.
    let ack = match (kind, long) {
        (0 | 2, _) => None,
        (_, true) => Some(u64::from(short(body, at + 2)?) << 32 | u64::from(word(body, at + 4)?)),
        (_, false) => Some(u64::from(word(body, at)? & 0x00ff_ffff)),
    };
    let what = match kind {
        2 | 4 => Kind::Data,
        3 => Kind::Ack,
        _ => Kind::Handshake,
    };
    seen.identity = mix([seq, u64::from(kind), 33]);
    seen.header = PacketHeader {
        kind: what,
        seq: Some(seq),
        len: 1,
        ack: ack.map(|ack| ack + 1),
        // Every packet has a number of its own (section 7): nothing is sent again under the same.
        bits: 64,
        ..PacketHeader::default()
    };
    Some(())
}
