//! Segments as bytes: an IPv4 header (RFC 791) and a TCP header (RFC 9293 section 3.1). The payload
//! is zeros.

use fontis_base::Ecn;
use thiserror::Error;

use super::segment::{
    IP_HEADER, Options, SackBlocks, Segment, SynOptions, TCP_HEADER, TcpFlags, Timestamps,
};

/// Who speaks to whom: IPv4 addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Where a packet comes from.
    pub source: (u32, u16),
    /// Where it goes.
    pub destination: (u32, u16),
}

/// Bytes that are not a TCP segment in an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TcpWireError {
    /// There are fewer bytes than the headers say.
    #[error("the packet is cut off")]
    Truncated,
    /// It is not IPv4, or not TCP.
    #[error("it is not TCP over IPv4")]
    Protocol,
    /// A checksum is wrong.
    #[error("a checksum is wrong")]
    Checksum,
    /// An option does not have the length that it must have.
    #[error("an option is malformed")]
    Option,
}

const IPV4: u8 = 4;
const TCP: u8 = 6;
const TIME_TO_LIVE: u8 = 64;

// Kinds of options.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Appends the headers of a packet. Its payload of [`Segment::len`] zeros is counted in lengths and
/// checksum, but not appended.
pub fn encode_headers(segment: &Segment, ecn: Ecn, addresses: Addresses, out: &mut Vec<u8>) {
    let begin = out.len();
    let options = segment.options_len();
    // Nothing larger than IPv4 can say is ever sent: the MTU is bounded.
    let total = segment.size().min(0xffff) as u16;
    let ecn_bits = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    out.extend_from_slice(&[IPV4 << 4 | (IP_HEADER / 4) as u8, ecn_bits]);
    out.extend_from_slice(&total.to_be_bytes());
    // No identification, and never in fragments (RFC 6864).
    out.extend_from_slice(&[0, 0, 0x40, 0, TIME_TO_LIVE, TCP, 0, 0]);
    out.extend_from_slice(&addresses.source.0.to_be_bytes());
    out.extend_from_slice(&addresses.destination.0.to_be_bytes());
    let header = fold(sum(&out[begin..]));
    out[begin + 10..begin + 12].copy_from_slice(&header.to_be_bytes());

    let tcp = out.len();
    out.extend_from_slice(&addresses.source.1.to_be_bytes());
    out.extend_from_slice(&addresses.destination.1.to_be_bytes());
    out.extend_from_slice(&segment.seq.to_be_bytes());
    out.extend_from_slice(&segment.ack.to_be_bytes());
    out.extend_from_slice(&[((TCP_HEADER + options) / 4) as u8 * 16, segment.flags.0]);
    out.extend_from_slice(&segment.window.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0]);
    encode_options(segment, out);
    let length = u32::from(total) - IP_HEADER;
    let check = fold(sum(&out[tcp..]) + pseudo_header(addresses, length));
    out[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
}

/// Options in the order and with the padding of Linux.
fn encode_options(segment: &Segment, out: &mut Vec<u8>) {
    let syn = segment.syn();
    if let Some(syn) = syn {
        out.extend_from_slice(&[MAXIMUM_SEGMENT_SIZE, 4]);
        out.extend_from_slice(&syn.mss.to_be_bytes());
        if syn.sack_permitted {
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
    }
    if let Some(Timestamps { value, echo }) = segment.timestamps() {
        out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
        out.extend_from_slice(&value.to_be_bytes());
        out.extend_from_slice(&echo.to_be_bytes());
    }
    if let Some(scale) = syn.and_then(|syn| syn.window_scale) {
        out.extend_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, scale]);
    }
    let blocks = segment.sack();
    if !blocks.is_empty() {
        out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend_from_slice(&left.to_be_bytes());
            out.extend_from_slice(&right.to_be_bytes());
        }
    }
}

/// Reads the headers of a packet whose payload is zeros and may be cut off.
pub fn decode_headers(bytes: &[u8]) -> Result<(Addresses, Ecn, Segment), TcpWireError> {
    let ip: &[u8; IP_HEADER as usize] = bytes.first_chunk().ok_or(TcpWireError::Truncated)?;
    if ip[0] != IPV4 << 4 | (IP_HEADER / 4) as u8 || ip[9] != TCP {
        return Err(TcpWireError::Protocol);
    }
    if fold(sum(ip)) != 0 {
        return Err(TcpWireError::Checksum);
    }
    let total = u32::from(u16_at(ip, 2));
    let tcp = &bytes[IP_HEADER as usize..];
    if tcp.len() < TCP_HEADER as usize {
        return Err(TcpWireError::Truncated);
    }
    let header = u32::from(tcp[12] >> 4) * 4;
    if header < TCP_HEADER || IP_HEADER + header > total || tcp.len() < header as usize {
        return Err(TcpWireError::Truncated);
    }
    let addresses = Addresses {
        source: (u32_at(ip, 12), u16_at(tcp, 0)),
        destination: (u32_at(ip, 16), u16_at(tcp, 2)),
    };
    let end = tcp.len().min((total - IP_HEADER) as usize);
    if fold(sum(&tcp[..end]) + pseudo_header(addresses, total - IP_HEADER)) != 0 {
        return Err(TcpWireError::Checksum);
    }
    let mut segment = Segment {
        seq: u32_at(tcp, 4),
        ack: u32_at(tcp, 8),
        len: total - IP_HEADER - header,
        window: u16_at(tcp, 14),
        flags: TcpFlags(tcp[13]),
        ..Segment::default()
    };
    decode_options(&tcp[TCP_HEADER as usize..header as usize], &mut segment)?;
    let ecn = match ip[1] & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    Ok((addresses, ecn, segment))
}

fn decode_options(mut options: &[u8], segment: &mut Segment) -> Result<(), TcpWireError> {
    let mut syn = SynOptions { mss: 536, window_scale: None, sack_permitted: false };
    let mut blocks = SackBlocks::default();
    while let Some((&kind, rest)) = options.split_first() {
        if kind == END {
            break;
        }
        if kind == NO_OPERATION {
            options = rest;
            continue;
        }
        let length = usize::from(*rest.first().ok_or(TcpWireError::Option)?);
        if length < 2 || length > options.len() {
            return Err(TcpWireError::Option);
        }
        let (option, rest) = options.split_at(length);
        let value = &option[2..];
        match (kind, value.len()) {
            (MAXIMUM_SEGMENT_SIZE, 2) => syn.mss = u16_at(value, 0),
            (WINDOW_SCALE, 1) => syn.window_scale = Some(value[0]),
            (SACK_PERMITTED, 0) => syn.sack_permitted = true,
            (TIMESTAMPS, 8) => {
                let (value, echo) = (u32_at(value, 0), u32_at(value, 4));
                segment.has_timestamps = true;
                segment.timestamps = Timestamps { value, echo };
            }
            (SACK, 8 | 16 | 24 | 32) => {
                blocks = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    blocks.push(u32_at(block, 0), u32_at(block, 4));
                }
            }
            (MAXIMUM_SEGMENT_SIZE | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => {
                return Err(TcpWireError::Option);
            }
            // Others are skipped, whatever they say (RFC 9293 section 3.1).
            _ => {}
        }
        options = rest;
    }
    // A SYN has nothing to acknowledge selectively.
    if segment.flags.has(TcpFlags::SYN) {
        segment.options = Some(Box::new(Options::Syn(syn)));
    } else if !blocks.is_empty() {
        segment.options = Some(Box::new(Options::Sack(blocks)));
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The sum of 16-bit words (RFC 1071); zeros that follow change nothing.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|word| match word {
        [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        _ => 0,
    });
    words.sum()
}

fn pseudo_header(addresses: Addresses, length: u32) -> u64 {
    let halves = |address: u32| u64::from(address >> 16) + u64::from(address & 0xffff);
    halves(addresses.source.0)
        + halves(addresses.destination.0)
        + u64::from(TCP)
        + u64::from(length)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ADDRESSES: Addresses =
        Addresses { source: (0x0a00_0001, 40_000), destination: (0x0a00_0002, 80) };

    #[test]
    fn a_syn_has_the_bytes_that_linux_would_send() {
        let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        let segment = Segment {
            seq: 0x0102_0304,
            window: 64_240,
            flags: TcpFlags::SYN,
            has_timestamps: true,
            timestamps: Timestamps { value: 0x1111_1111, echo: 0 },
            ..Segment::default()
        };
        let segment = segment.with_options(Options::Syn(syn));
        let mut bytes = Vec::new();
        encode_headers(&segment, Ecn::NotEct, ADDRESSES, &mut bytes);
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[..10], [0x45, 0, 0, 64, 0, 0, 0x40, 0, 64, 6]);
        let options = [
            2, 4, 0x05, 0xb4, 1, 1, 4, 2, 1, 1, 8, 10, 0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0, 1, 3, 3,
            7,
        ];
        assert_eq!(bytes[40..], options);
        // By hand: 4500+0040+0000+4000+4006+0a00+0001+0a00+0002 = d949, whose complement is 26b6.
        assert_eq!(bytes[10..12], [0x26, 0xb6]);
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let segment = Segment { len: 100, flags: TcpFlags::ACK, ..Segment::default() };
        let mut bytes = Vec::new();
        encode_headers(&segment, Ecn::Ect0, ADDRESSES, &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_headers(&changed).is_err(), "bit {bit}");
        }
    }

    fn segment() -> impl Strategy<Value = Segment> {
        let syn = (any::<u16>(), prop::option::of(0u8..=14), any::<bool>());
        let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..4);
        let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), 0u8..=255, 0u32..9000);
        (numbers, prop::option::of(any::<(u32, u32)>()), syn, blocks).prop_map(
            |(
                (seq, ack, window, flags, len),
                timestamps,
                (mss, window_scale, sack_permitted),
                blocks,
            )| {
                let flags = TcpFlags(flags);
                let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
                let segment = Segment { seq, ack, window, flags, len, ..Segment::default() };
                let segment = segment.with_timestamps(timestamps);
                if flags.has(TcpFlags::SYN) {
                    return segment.with_options(Options::Syn(SynOptions {
                        mss,
                        window_scale,
                        sack_permitted,
                    }));
                }
                let mut sack = SackBlocks::default();
                for (left, right) in blocks {
                    sack.push(left, right);
                }
                if sack.is_empty() { segment } else { segment.with_options(Options::Sack(sack)) }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(segment in segment(), ecn in 0..4usize) {
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][ecn];
            let mut bytes = Vec::new();
            encode_headers(&segment, ecn, ADDRESSES, &mut bytes);
            prop_assert_eq!(bytes.len() as u32 + segment.len, segment.size());
            prop_assert_eq!(decode_headers(&bytes), Ok((ADDRESSES, ecn, segment)));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode_headers(&bytes);
        }
    }
}
