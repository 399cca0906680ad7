use super::bytes::{mix, short, word};
use super::ip_packet::IpPacket;
use crate::header::PacketHeader;
use crate::packet::Kind;

/// RFC 9260 section 3.
pub(super) fn read(body: &[u8], seen: &mut IpPacket) -> Option<()> {
    let tag = word(body, 4)?;
    seen.tags[0] = (tag != 0).then_some(tag);
    seen.header = PacketHeader { kind: Kind::Control, bits: 32, ..PacketHeader::default() };
    let mut identity = mix([u64::from(tag), u64::from(word(body, 8)?), 132]);
    let mut at = 12;
    let mut first = None;
    while let (Some(kind), Some(length)) = (body.get(at).copied(), short(body, at + 2)) {
        let length = usize::from(length);
        if length < 4 {
            break;
        }
        match kind {
            0 => {
                let Some(tsn) = word(body, at + 4) else { break };
                first.get_or_insert(tsn);
                seen.header.len += 1;
                // Behind the chunk's header.
                let bytes = seen.header.data.get_or_insert(0);
                *bytes = bytes.saturating_add((length as u32).saturating_sub(16));
                identity = mix([identity, u64::from(tsn)]);
            }
            1 | 2 => {
                seen.tags[1] = word(body, at + 4);
                seen.header.syn = true;
                seen.header.kind = Kind::Handshake;
                seen.header.window = word(body, at + 8);
                // The initial TSN is that of the first chunk.
                seen.header.seq = word(body, at + 16).map(u64::from);
                if kind == 1 {
                    seen.tags[0] = None;
                }
            }
            3 => {
                let (Some(cumulative), Some(gaps)) = (word(body, at + 4), short(body, at + 12))
                else {
                    break;
                };
                seen.header.ack = Some(u64::from(cumulative.wrapping_add(1)));
                seen.header.window = word(body, at + 8);
                if seen.header.len == 0 {
                    seen.header.kind = Kind::Ack;
                }
                for gap in 0..usize::from(gaps) {
                    let edge = |place| {
                        short(body, at + 16 + gap * 4 + place)
                            .map(|offset| cumulative.wrapping_add(u32::from(offset)))
                    };
                    let (Some(from), Some(to)) = (edge(0), edge(2)) else { break };
                    seen.header.sack.push((u64::from(from), u64::from(to.wrapping_add(1))));
                }
                identity = mix([identity, u64::from(cumulative), u64::from(gaps)]);
            }
            6 | 7 | 8 | 10 | 11 | 14 => seen.header.kind = Kind::Handshake,
            _ => {}
        }
        at += length.next_multiple_of(4);
    }
    if let Some(tsn) = first {
        seen.header.seq = Some(u64::from(tsn));
        seen.header.kind = Kind::Data;
    }
    // Windows count bytes, sequence numbers chunks: they cannot be compared, so the window is only
    // told when closed.
    seen.header.window = seen.header.window.filter(|window| *window == 0);
    seen.header.window_is_whole = true;
    seen.identity = identity;
    Some(())
}
