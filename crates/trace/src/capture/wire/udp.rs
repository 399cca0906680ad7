use bytes::BytesMut;
use fontis_proto::dfcp::Session;

use super::bytes::{mix, short, word};
use super::ip_packet::{IpPacket, Protocol};
use crate::clear::Clear;
use crate::header::PacketHeader;
use crate::packet::Kind;

/// RFC 768; DFCP and QUIC as far as they are in the clear.
pub(super) fn read(body: &[u8], seen: &mut IpPacket) -> Option<()> {
    let data = body.get(8..)?;
    let length = usize::from(short(body, 4)?).saturating_sub(8);
    let mut identity = [seen.identity, length as u64, 0, 0];
    for (place, eight) in identity[2..].iter_mut().zip(data.chunks(8)) {
        *place = eight.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    }
    // What is sealed differs in its first bytes already: connection, packet number, ciphertext.
    let rest =
        data.iter().skip(16).take(32).fold(0u64, |sum, byte| sum.rotate_left(7) ^ u64::from(*byte));
    seen.identity = mix([mix(identity), rest]);
    let first = *data.first()?;
    match first {
        1 if data.get(1..5) == Some(&VERSION) => {
            seen.protocol = Protocol::Dfcp;
            seen.header = PacketHeader::of(Kind::Handshake);
        }
        // QUIC's long header has its two highest bits set and a version that is known.
        0xc0..=0xff if is_quic(word(data, 1)?) => {
            seen.protocol = Protocol::Quic;
            seen.header = PacketHeader::of(Kind::Handshake);
        }
        2..=5 => seen.header = PacketHeader::of(Kind::Opaque),
        0x40..=0x7f => {
            seen.sealed = word(data, 9).map(|low| (first & 0x3f, u64::from(low)));
            // The simulator's captures are not sealed, and numbers have 64 bits.
            let number = data.get(9..17).map(|number| number[..4] == [0; 4]);
            if number == Some(true)
                && let Ok(packet) = Clear.open(BytesMut::from(data))
            {
                seen.protocol = Protocol::Dfcp;
                seen.header = PacketHeader::of_dfcp(&packet);
            }
        }
        _ => {}
    }
    Some(())
}

const VERSION: [u8; 4] = 0x464e_0002u32.to_be_bytes();

fn is_quic(version: u32) -> bool {
    matches!(version, 1 | 0x6b33_43cf)
        || version >> 8 == 0x00ff_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
}
