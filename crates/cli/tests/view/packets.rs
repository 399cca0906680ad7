//! Packets made by hand, with the checksums that their standards ask for, and captures of them.

use std::net::IpAddr;

/// An end of a flow: address and port.
pub(crate) type End = (IpAddr, u16);

/// The Internet checksum (RFC 1071) of several parts, each of an even length but the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.concat().chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// CRC-32C (RFC 9260 appendix A), as it lies in a packet.
fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// An IP packet; `options` puts hop-by-hop and destination options before IPv6's payload.
fn ip(from: IpAddr, to: IpAddr, protocol: u8, payload: &[u8], options: bool) -> Vec<u8> {
    let addresses = [octets(from), octets(to)].concat();
    match from {
        IpAddr::V4(_) => {
            let mut header = vec![0x45, 0];
            header.extend((20 + payload.len() as u16).to_be_bytes());
            header.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
            header.extend(addresses);
            let sum = checksum(&[&header]);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            [header, payload.to_vec()].concat()
        }
        IpAddr::V6(_) => {
            let (mut next, mut between) = (protocol, Vec::new());
            if options {
                next = 0;
                // Six bytes of padding in each; the second is twice as long.
                between.extend([60, 0, 1, 4, 0, 0, 0, 0]);
                between.extend([protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(((between.len() + payload.len()) as u16).to_be_bytes());
            header.extend([next, 64]);
            header.extend(addresses);
            [header, between, payload.to_vec()].concat()
        }
    }
}

/// What the checksums of transports cover besides the packet.
fn pseudo(from: End, to: End, protocol: u8, length: usize) -> Vec<u8> {
    let mut all = [octets(from.0), octets(to.0)].concat();
    all.extend((length as u32).to_be_bytes());
    all.extend([0, 0, 0, protocol]);
    all
}

fn sealed(
    from: End,
    to: End,
    protocol: u8,
    mut body: Vec<u8>,
    at: usize,
    options: bool,
) -> Vec<u8> {
    let sum = checksum(&[&pseudo(from, to, protocol, body.len()), &body]);
    // RFC 768: nought would say that there is none.
    let sum = if sum == 0 && protocol == 17 { 0xffff } else { sum };
    body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    ip(from.0, to.0, protocol, &body, options)
}

fn ports(from: End, to: End) -> Vec<u8> {
    [from.1, to.1].map(u16::to_be_bytes).concat()
}

/// A segment of TCP (RFC 9293); `options` have a length that is a multiple of four.
pub(crate) fn tcp(
    (from, to): (End, End),
    (seq, ack): (u32, u32),
    flags: u8,
    options: &[u8],
    data: &[u8],
) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4));
    let mut body = ports(from, to);
    body.extend([seq, ack].map(u32::to_be_bytes).concat());
    body.extend([(5 + options.len() as u8 / 4) << 4, flags, 0xff, 0, 0, 0, 0, 0]);
    body.extend(options);
    body.extend(data);
    sealed(from, to, 6, body, 16, false)
}

/// A datagram of UDP (RFC 768).
pub(crate) fn udp((from, to): (End, End), data: &[u8], options: bool) -> Vec<u8> {
    let mut body = ports(from, to);
    body.extend((8 + data.len() as u16).to_be_bytes());
    body.extend([0, 0]);
    body.extend(data);
    sealed(from, to, 17, body, 6, options)
}

/// A packet of DCCP (RFC 4340) with a sequence number of 48 bits, or of 24.
pub(crate) fn dccp(
    (from, to): (End, End),
    kind: u8,
    seq: u64,
    ack: Option<u64>,
    is_long: bool,
    data: &[u8],
) -> Vec<u8> {
    let mut rest = Vec::new();
    if let Some(ack) = ack {
        if is_long {
            rest.extend([0, 0]);
            rest.extend(&ack.to_be_bytes()[2..]);
        } else {
            rest.push(0);
            rest.extend(&ack.to_be_bytes()[5..]);
        }
    }
    // A request and a response name a service.
    if kind < 2 {
        rest.extend(*b"TEST");
    }
    // A reset says why.
    if kind == 7 {
        rest.extend([1, 0, 0, 0]);
    }
    let words = (if is_long { 16 } else { 12 } + rest.len()) / 4;
    let mut body = ports(from, to);
    body.extend([words as u8, 0, 0, 0, kind << 1 | u8::from(is_long)]);
    if is_long {
        body.push(0);
        body.extend(&seq.to_be_bytes()[2..]);
    } else {
        body.extend(&seq.to_be_bytes()[5..]);
    }
    body.extend(rest);
    body.extend(data);
    sealed(from, to, 33, body, 6, false)
}

/// A packet of SCTP (RFC 9260) with its chunks.
pub(crate) fn sctp((from, to): (End, End), tag: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut body = ports(from, to);
    body.extend(tag.to_be_bytes());
    body.extend([0; 4]);
    body.extend(chunks.concat());
    let crc = crc32c(&body);
    body[8..12].copy_from_slice(&crc);
    ip(from.0, to.0, 132, &body, false)
}

/// A chunk of SCTP, padded.
fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut chunk = vec![kind, flags];
    chunk.extend((4 + value.len() as u16).to_be_bytes());
    chunk.extend(value);
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

/// A chunk of data: its TSN and how many bytes.
pub(crate) fn sctp_data(tsn: u32, bytes: usize) -> Vec<u8> {
    let mut value = tsn.to_be_bytes().to_vec();
    value.extend([0, 1, 0, tsn as u8, 0, 0, 0, 0]);
    value.resize(12 + bytes, 0x2a);
    chunk(0, 3, &value)
}

/// INIT, or its acknowledgement with a cookie.
pub(crate) fn sctp_init(is_answer: bool, tag: u32, tsn: u32) -> Vec<u8> {
    let mut value = tag.to_be_bytes().to_vec();
    value.extend([0, 1, 0, 0, 0, 10, 0, 10]);
    value.extend(tsn.to_be_bytes());
    if is_answer {
        value.extend([0, 7, 0, 8, 1, 2, 3, 4]);
    }
    chunk(1 + u8::from(is_answer), 0, &value)
}

/// A selective acknowledgement: all up to a TSN, and gap blocks as they are offset from it.
pub(crate) fn sctp_sack(cumulative: u32, gaps: &[(u16, u16)]) -> Vec<u8> {
    let mut value = [cumulative, 65_536].map(u32::to_be_bytes).concat();
    value.extend([gaps.len() as u16, 0].map(u16::to_be_bytes).concat());
    value.extend(gaps.iter().flat_map(|(from, to)| [*from, *to].map(u16::to_be_bytes).concat()));
    chunk(3, 0, &value)
}

/// A packet in a frame of a link layer.
pub(crate) fn frame(link: u32, packet: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let mut frame = match link {
        // BSD's loopback: the family in the order of the machine that captured.
        0 => vec![if packet[0] >> 4 == 4 { 2 } else { 30 }, 0, 0, 0],
        108 => vec![0, 0, 0, if packet[0] >> 4 == 4 { 2 } else { 24 }],
        1 => [&[2; 12][..], &ethertype].concat(),
        113 => [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &ethertype].concat(),
        276 => [&ethertype[..], &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0]].concat(),
        101 | 228 | 229 => Vec::new(),
        _ => panic!("no frame for link layer {link}"),
    };
    frame.extend(packet);
    frame
}

/// A packet in Ethernet with these VLAN tags: types and numbers.
pub(crate) fn vlan(tags: &[(u16, u16)], packet: &[u8]) -> Vec<u8> {
    let mut frame = frame(1, packet);
    let tags: Vec<u8> =
        tags.iter().flat_map(|tag| [tag.0, tag.1]).flat_map(u16::to_be_bytes).collect();
    frame.splice(12..12, tags);
    frame
}

/// How a capture of pcap is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) is_big_endian: bool,
    pub(crate) is_nanos: bool,
}

/// A capture of pcap: frames and their times in nanoseconds since 1970.
pub(crate) fn pcap(link: u32, form: Form, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let word =
        |value: u32| if form.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let half =
        |value: u16| if form.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut all = word(if form.is_nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
    all.extend([half(2), half(4)].concat());
    all.extend([word(0), word(0), word(65_535), word(link)].concat());
    for (at, frame) in frames {
        let fraction = (at % 1_000_000_000) as u32 / if form.is_nanos { 1 } else { 1000 };
        let length = frame.len() as u32;
        let head = [(at / 1_000_000_000) as u32, fraction, length, length];
        all.extend(head.map(word).concat());
        all.extend(frame);
    }
    all
}
