use super::bytes::{mix, short, word};
use super::ip_packet::IpPacket;
use super::mptcp::multipath;
use crate::header::PacketHeader;
use crate::packet::Kind;

/// RFC 9293 section 3.1, and the options of RFC 2018, 7323 and 8684.
pub(super) fn read(body: &[u8], payload: u32, seen: &mut IpPacket) -> Option<()> {
    let (seq, ack) = (word(body, 4)?, word(body, 8)?);
    let flags = *body.get(13)?;
    let length = usize::from(body[12] >> 4) * 4;
    let window = short(body, 14)?;
    let len = payload.saturating_sub(length.max(20) as u32);
    let has = |bit: u8| flags & bit != 0;
    let (fin, syn, rst, ack_set) = (has(1), has(2), has(4), has(16));
    let kind = match () {
        () if syn || rst || fin && len == 0 => Kind::Handshake,
        () if len > 0 => Kind::Data,
        () => Kind::Ack,
    };
    let header = &mut seen.header;
    *header = PacketHeader {
        kind,
        seq: Some(u64::from(seq.wrapping_add(u32::from(syn)))),
        len,
        ack: ack_set.then_some(u64::from(ack)),
        window: Some(u32::from(window)),
        syn,
        bits: 32,
        ..PacketHeader::default()
    };
    seen.identity = mix([
        seen.identity,
        u64::from(seq),
        u64::from(ack),
        u64::from(len) << 24 | u64::from(flags) << 16 | u64::from(window),
    ]);
    let options = body.get(20..length.min(body.len())).unwrap_or(&[]);
    let mut at = 0;
    while let Some(kind) = options.get(at).copied().filter(|kind| *kind != 0) {
        if kind == 1 {
            at += 1;
            continue;
        }
        let Some(length) = options.get(at + 1).map(|length| usize::from(*length)) else { break };
        let Some(option) = options.get(at + 2..at + length.max(2)) else { break };
        match kind {
            3 if syn => header.window_scale = option.first().copied(),
            5 => {
                for edges in option.chunks_exact(8) {
                    let edge = |at| word(edges, at).map(u64::from);
                    header.sack.extend(edge(0).zip(edge(4)));
                }
            }
            8 => {
                header.timestamps = word(option, 0).zip(word(option, 4));
                if let Some((value, echo)) = header.timestamps {
                    seen.identity = mix([seen.identity, u64::from(value), u64::from(echo)]);
                }
            }
            30 => seen.multipath = seen.multipath.or(multipath(option, syn, ack_set)),
            _ => {}
        }
        at += length.max(2);
    }
    Some(())
}
