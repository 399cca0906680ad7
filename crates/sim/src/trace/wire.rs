//! Headers in bytes: Ethernet and what is like it, IP, TCP with the options of Multipath TCP, SCTP, DCCP, UDP with DFCP and QUIC.
//!
//! A capture may keep only the first bytes of each packet: what is not there is left out, and nothing panics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::BytesMut;
use fontis_proto::dfcp::Session;

use super::{Header, Kind, Marks};
use crate::Clear;

/// An IP packet as far as it can be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) source: (IpAddr, u16),
    pub(crate) destination: (IpAddr, u16),
    pub(crate) protocol: Protocol,
    /// Bytes of the IP packet.
    pub(crate) size: u32,
    /// What tells this packet from others of its flow: both ends see the same.
    pub(crate) identity: u64,
    pub(crate) header: Header,
    /// Names the connection where ports do not: SCTP's verification tags, the one that is announced included.
    pub(crate) tags: [Option<u32>; 2],
    /// Of a sealed DFCP packet: its path, and the low 32 bits of its number.
    pub(crate) sealed: Option<(u8, u64)>,
    /// What it says of Multipath TCP.
    pub(crate) multipath: Option<Multipath>,
}

/// What transports a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Sctp,
    Dccp,
    Dfcp,
    Quic,
    Udp,
    Other,
}

impl Protocol {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
            Self::Dccp => "DCCP",
            Self::Dfcp => "DFCP",
            Self::Quic => "QUIC",
            Self::Udp => "UDP",
            Self::Other => "IP",
        }
    }

    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Tcp => "bytes",
            Self::Sctp => "chunks",
            Self::Dfcp => "symbols",
            _ => "packets",
        }
    }
}

/// What a segment says of Multipath TCP (RFC 8684).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multipath {
    /// It begins a connection: the keys of its sender and of its receiver, if they are in it.
    Capable([Option<u64>; 2]),
    /// It joins the connection whose other end has this token.
    Join(u32),
    /// It belongs to one: the low half of the connection's acknowledgement, and where its bytes belong.
    Part { ack: Option<u32>, mapping: Option<Mapping> },
}

/// Where a subflow's bytes belong in their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The low half of the connection's number.
    pub(crate) number: u32,
    /// The subflow's number for the same byte, from its SYN on.
    pub(crate) subflow: u32,
}

/// Link layers, as captures number them ("LINKTYPE").
pub(crate) const KNOWN_LINKS: [i32; 9] = [0, 1, 12, 14, 101, 108, 113, 228, 276];

/// Reads a frame of a capture; `None` if there is no IP packet in it.
pub(crate) fn read(link: i32, frame: &[u8]) -> Option<Seen> {
    let ip = match link {
        0 | 108 => frame.get(4..)?,
        1 => {
            let mut at = 12;
            // VLAN tags lie before the type.
            while matches!(short(frame, at)?, 0x8100 | 0x88a8) {
                at += 4;
            }
            matches!(short(frame, at)?, 0x0800 | 0x86dd).then(|| frame.get(at + 2..))??
        }
        12 | 14 | 101 | 228 | 229 => frame,
        113 => frame.get(16..)?,
        276 => frame.get(20..)?,
        _ => return None,
    };
    read_ip(ip)
}

fn read_ip(ip: &[u8]) -> Option<Seen> {
    let (size, source, destination, protocol, header, identity, ecn): (
        _,
        IpAddr,
        IpAddr,
        _,
        _,
        _,
        _,
    ) = match ip.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(Ipv4Addr::from(word(ip, at)?).into());
            // A fragment that is not the first has no header to be read.
            let is_first = short(ip, 6)? & 0x1fff == 0;
            let length = usize::from(ip[0] & 15) * 4;
            let protocol = if is_first { *ip.get(9)? } else { 255 };
            // Offloads leave the length for the card to fill in.
            let size = u32::from(short(ip, 2)?);
            (
                size,
                address(12)?,
                address(16)?,
                protocol,
                length.max(20),
                short(ip, 4)?,
                ip.get(1)? & 3,
            )
        }
        6 => {
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(bytes).into())
            };
            let (mut next, mut at) = (*ip.get(6)?, 40);
            // Hop-by-hop options, routing and destination options may lie between.
            for _ in 0..8 {
                if !matches!(next, 0 | 43 | 60) {
                    break;
                }
                next = *ip.get(at)?;
                at += 8 + usize::from(*ip.get(at + 1)?) * 8;
            }
            let ecn = (ip.get(1)? >> 4) & 3;
            (u32::from(short(ip, 4)?) + 40, address(8)?, address(24)?, next, at, 0, ecn)
        }
        _ => return None,
    };
    let body = ip.get(header..).unwrap_or(&[]);
    let payload = size.saturating_sub(header as u32);
    let mut seen = Seen {
        source: (source, 0),
        destination: (destination, 0),
        protocol: Protocol::Other,
        size,
        identity: u64::from(identity),
        header: Header::of(Kind::Opaque),
        tags: [None; 2],
        sealed: None,
        multipath: None,
    };
    if matches!(protocol, 6 | 17 | 33 | 132) {
        seen.source.1 = short(body, 0).unwrap_or(0);
        seen.destination.1 = short(body, 2).unwrap_or(0);
    }
    match protocol {
        6 => seen.protocol = Protocol::Tcp,
        17 => seen.protocol = Protocol::Udp,
        33 => seen.protocol = Protocol::Dccp,
        132 => seen.protocol = Protocol::Sctp,
        _ => {}
    }
    let read = match protocol {
        6 => tcp(body, payload, &mut seen),
        17 => udp(body, &mut seen),
        33 => dccp(body, &mut seen),
        132 => sctp(body, &mut seen),
        _ => None,
    };
    if read.is_none() {
        // What is cut off is still a packet of its flow.
        seen.header = Header::of(seen.header.kind);
    }
    if ecn == 3 {
        seen.header.marks.set(Marks::CONGESTION);
    }
    Some(seen)
}

fn tcp(body: &[u8], payload: u32, seen: &mut Seen) -> Option<()> {
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
    *header = Header {
        kind,
        seq: Some(u64::from(seq.wrapping_add(u32::from(syn)))),
        len,
        ack: ack_set.then_some(u64::from(ack)),
        window: Some(u32::from(window)),
        syn,
        bits: 32,
        ..Header::default()
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

/// An option of Multipath TCP (RFC 8684 section 3).
fn multipath(option: &[u8], syn: bool, ack: bool) -> Option<Multipath> {
    let key = |at: usize| {
        let bytes: [u8; 8] = option.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    };
    Some(match (option.first()? >> 4, syn, ack) {
        (0, ..) => Multipath::Capable([key(2), key(10)]),
        // Only the first of its three messages has the token.
        (1, true, false) => Multipath::Join(word(option, 2)?),
        (2, ..) => sequence(option).unwrap_or(Multipath::Part { ack: None, mapping: None }),
        _ => Multipath::Part { ack: None, mapping: None },
    })
}

/// The option with the connection's numbers (section 3.3).
fn sequence(option: &[u8]) -> Option<Multipath> {
    let flags = *option.get(1)?;
    let mut at = 2;
    // The low half of a number of four or eight bytes.
    let mut number = |is_there: bool, is_long: bool| {
        is_there.then(|| {
            at += if is_long { 8 } else { 4 };
            word(option, at - 4)
        })?
    };
    let ack = number(flags & 0x01 != 0, flags & 0x02 != 0);
    let data = number(flags & 0x04 != 0, flags & 0x08 != 0);
    let mapping = data.and_then(|number| {
        // Without a length it stands for TCP alone again.
        let length = short(option, at + 4)?;
        (length > 0).then_some(Mapping { number, subflow: word(option, at)? })
    });
    Some(Multipath::Part { ack, mapping })
}

fn udp(body: &[u8], seen: &mut Seen) -> Option<()> {
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
            seen.header = Header::of(Kind::Handshake);
        }
        // QUIC's long header has its two highest bits set and a version that is known.
        0xc0..=0xff if is_quic(word(data, 1)?) => {
            seen.protocol = Protocol::Quic;
            seen.header = Header::of(Kind::Handshake);
        }
        2..=5 => seen.header = Header::of(Kind::Opaque),
        0x40..=0x7f => {
            seen.sealed = word(data, 9).map(|low| (first & 0x3f, u64::from(low)));
            // The simulator's captures are not sealed, and numbers have 64 bits.
            let number = data.get(9..17).map(|number| number[..4] == [0; 4]);
            if number == Some(true)
                && let Ok(packet) = Clear.open(BytesMut::from(data))
            {
                seen.protocol = Protocol::Dfcp;
                seen.header = Header::of_dfcp(&packet);
            }
        }
        _ => {}
    }
    Some(())
}

const VERSION: [u8; 4] = 0x464e_0001u32.to_be_bytes();

fn is_quic(version: u32) -> bool {
    matches!(version, 1 | 0x6b33_43cf)
        || version >> 8 == 0x00ff_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// RFC 4340 section 5.
fn dccp(body: &[u8], seen: &mut Seen) -> Option<()> {
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
    seen.header = Header {
        kind: what,
        seq: Some(seq),
        len: 1,
        ack: ack.map(|ack| ack + 1),
        // Every packet has a number of its own (section 7): nothing is sent again under the same.
        bits: 64,
        ..Header::default()
    };
    Some(())
}

/// RFC 9260 section 3.
fn sctp(body: &[u8], seen: &mut Seen) -> Option<()> {
    let tag = word(body, 4)?;
    seen.tags[0] = (tag != 0).then_some(tag);
    seen.header = Header { kind: Kind::Control, bits: 32, ..Header::default() };
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
    // Windows count bytes, sequence numbers chunks: they cannot be compared, so the window is only told when closed.
    seen.header.window = seen.header.window.filter(|window| *window == 0);
    seen.header.window_is_whole = true;
    seen.identity = identity;
    Some(())
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_be_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}

/// A number that stands for several (after splitmix64).
pub(crate) fn mix<const N: usize>(numbers: [u64; N]) -> u64 {
    numbers.into_iter().fold(0x9e37_79b9_7f4a_7c15, |sum, number| {
        let mut mixed = (sum ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 29;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 32
    })
}
