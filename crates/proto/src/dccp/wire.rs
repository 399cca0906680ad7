//! Packets as bytes (RFC 4340 section 5), over IP and over UDP (RFC 6773).

use bytes::Bytes;
use thiserror::Error;

use super::number::DccpSeq;
use super::option;
use super::packet::{DccpBody, DccpData, DccpPacket, ResetCode};

/// The number of DCCP among the protocols of IP.
pub const PROTOCOL: u8 = 33;
/// The UDP port of encapsulated DCCP (RFC 6773 section 3.8).
pub const UDP_PORT: u16 = 6511;

/// Bytes that are no packet of DCCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DccpWireError {
    /// There are fewer bytes than the header says.
    #[error("the packet is cut off")]
    Truncated,
    /// The header is shorter than its type requires.
    #[error("the data offset is too small for the packet's type")]
    Offset,
    /// RFC 4340 defines no such type.
    #[error("type {0} is reserved")]
    Type(u8),
    /// A type that must have long sequence numbers has short ones.
    #[error("only Data, Ack and DataAck may have short sequence numbers")]
    Short,
    /// The checksum covers more than there is.
    #[error("the checksum covers more data than the packet has")]
    Coverage,
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
}

/// What protects a packet's header and data from changes on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// IPv4, whose addresses the checksum of DCCP covers.
    Ip {
        /// The address that the packet comes from.
        source: u32,
        /// The address that it goes to.
        destination: u32,
    },
    /// UDP, whose checksum takes the place of DCCP's: that one is zero, and ignored.
    Udp,
}

const GENERIC_SHORT: usize = 12;
const GENERIC_LONG: usize = 16;

impl DccpPacket {
    /// Bytes of its header with options, a multiple of four.
    pub fn header_len(&self) -> usize {
        fixed_len(self.body, self.is_short()) + option::encoded_len(&self.options)
    }

    /// Appends its header and its data.
    pub fn encode(&self, carrier: Carrier, out: &mut Vec<u8>) {
        self.encode_header(carrier, out);
        match &self.data {
            DccpData::Bytes(bytes) => out.extend_from_slice(bytes),
            DccpData::Counted { len, .. } => out.resize(out.len() + *len as usize, 0),
        }
    }

    /// Appends its header alone; its checksum and lengths are those of the packet with its data.
    pub fn encode_header(&self, carrier: Carrier, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.source.to_be_bytes());
        out.extend_from_slice(&self.destination.to_be_bytes());
        out.extend_from_slice(&[0, self.ccval << 4 | self.coverage & 15, 0, 0]);
        let kind = self.body.number() << 1;
        if self.is_short() {
            out.push(kind);
            out.extend_from_slice(&self.seq.low().to_be_bytes()[1..]);
        } else {
            out.extend_from_slice(&[kind | 1, 0]);
            out.extend_from_slice(&self.seq.get().to_be_bytes()[2..]);
        }
        if let Some(ack) = self.body.ack() {
            if self.is_short() {
                out.push(0);
                out.extend_from_slice(&ack.low().to_be_bytes()[1..]);
            } else {
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&ack.get().to_be_bytes()[2..]);
            }
        }
        match self.body {
            DccpBody::Request { service } | DccpBody::Response { service, .. } => {
                out.extend_from_slice(&service.to_be_bytes());
            }
            DccpBody::Reset { code, details: [a, b, c], .. } => {
                out.extend_from_slice(&[code as u8, a, b, c]);
            }
            _ => {}
        }
        option::encode(&self.options, out);
        // What the connection puts into a header fits: 255 words are 1020 bytes.
        let words = (out.len() - begin) / 4;
        out[begin + 4] = words.min(255) as u8;
        if let Carrier::Ip { source, destination } = carrier {
            let header = out.len() - begin;
            let length = header + self.data.len();
            let covered = covered(self.coverage, self.data.len()).unwrap_or(self.data.len());
            let data = match &self.data {
                DccpData::Bytes(bytes) => &bytes[..covered],
                DccpData::Counted { .. } => &[],
            };
            let sum = pseudo_header(source, destination, length) + sum(&out[begin..]) + sum(data);
            out[begin + 6..begin + 8].copy_from_slice(&fold(sum).to_be_bytes());
        }
    }

    /// Reads a packet. A short header leaves the high bits of its numbers zero
    /// ([`DccpPacket::extend`]).
    pub fn decode(carrier: Carrier, bytes: &[u8]) -> Result<Self, DccpWireError> {
        let fixed = bytes.first_chunk::<GENERIC_SHORT>().ok_or(DccpWireError::Truncated)?;
        let (kind, is_long) = (fixed[8] >> 1 & 15, fixed[8] & 1 == 1);
        let header = usize::from(fixed[4]) * 4;
        if header > bytes.len() {
            return Err(DccpWireError::Truncated);
        }
        let blank = blank_body(kind).ok_or(DccpWireError::Type(kind))?;
        if !is_long && !blank.may_be_short() {
            return Err(DccpWireError::Short);
        }
        let options_at = fixed_len(blank, !is_long);
        if header < options_at {
            return Err(DccpWireError::Offset);
        }
        let data = &bytes[header..];
        let coverage = fixed[5] & 15;
        let covered = covered(coverage, data.len()).ok_or(DccpWireError::Coverage)?;
        if let Carrier::Ip { source, destination } = carrier {
            let pseudo = pseudo_header(source, destination, bytes.len());
            if fold(pseudo + sum(&bytes[..header]) + sum(&data[..covered])) != 0 {
                return Err(DccpWireError::Checksum);
            }
        }
        let long = |at: usize| DccpSeq::new(option::number(&bytes[at..at + 6]));
        let short = |at: usize| DccpSeq::new(option::number(&bytes[at..at + 3]));
        let (seq, ack_at) = match is_long {
            true => (long(10), GENERIC_LONG),
            false => (short(9), GENERIC_SHORT),
        };
        let ack = blank.ack().map(|_| if is_long { long(ack_at + 2) } else { short(ack_at + 1) });
        let last = || option::number(&bytes[options_at - 4..options_at]) as u32;
        let body = ack.map_or(blank, |ack| blank.with_ack(ack));
        let body = match body {
            DccpBody::Request { .. } => DccpBody::Request { service: last() },
            DccpBody::Response { ack, .. } => DccpBody::Response { ack, service: last() },
            DccpBody::Reset { ack, .. } => {
                let [code, details @ ..] = last().to_be_bytes();
                DccpBody::Reset { ack, code: ResetCode::of(code), details }
            }
            other => other,
        };
        Ok(Self {
            source: u16::from_be_bytes([fixed[0], fixed[1]]),
            destination: u16::from_be_bytes([fixed[2], fixed[3]]),
            ccval: fixed[5] >> 4,
            coverage,
            is_short: !is_long,
            seq,
            body,
            options: option::decode(&bytes[options_at..header]),
            data: DccpData::Bytes(Bytes::copy_from_slice(data)),
        })
    }

    const fn is_short(&self) -> bool {
        self.is_short && self.body.may_be_short()
    }
}

/// The body of a type, with fields that are still to be read.
const fn blank_body(kind: u8) -> Option<DccpBody> {
    let ack = DccpSeq::new(0);
    Some(match kind {
        0 => DccpBody::Request { service: 0 },
        1 => DccpBody::Response { ack, service: 0 },
        2 => DccpBody::Data,
        3 => DccpBody::Ack { ack },
        4 => DccpBody::DataAck { ack },
        5 => DccpBody::CloseReq { ack },
        6 => DccpBody::Close { ack },
        7 => DccpBody::Reset { ack, code: ResetCode::Unspecified, details: [0; 3] },
        8 => DccpBody::Sync { ack },
        9 => DccpBody::SyncAck { ack },
        _ => return None,
    })
}

/// Bytes of the header before the options.
const fn fixed_len(body: DccpBody, is_short: bool) -> usize {
    let (generic, ack) = if is_short { (GENERIC_SHORT, 4) } else { (GENERIC_LONG, 8) };
    let ack = if body.ack().is_some() { ack } else { 0 };
    let more = match body {
        DccpBody::Request { .. } | DccpBody::Response { .. } | DccpBody::Reset { .. } => 4,
        _ => 0,
    };
    generic + ack + more
}

/// Bytes of data that the checksum covers; `None` if they are more than there are (section 9.2).
fn covered(coverage: u8, len: usize) -> Option<usize> {
    match coverage {
        0 => Some(len),
        words => Some((usize::from(words) - 1) * 4).filter(|covered| *covered <= len),
    }
}

fn pseudo_header(source: u32, destination: u32, length: usize) -> u64 {
    let halves = |word: u32| u64::from(word >> 16) + u64::from(word & 0xffff);
    halves(source) + halves(destination) + u64::from(PROTOCOL) + length as u64
}

fn sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks(2);
    pairs.map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::option::{DccpOption, FeatureOption, FeatureStep, IntervalReport};
    use super::*;

    const IP: Carrier = Carrier::Ip { source: 0x0a00_0001, destination: 0x0a00_0002 };

    fn packet(body: DccpBody) -> DccpPacket {
        DccpPacket {
            source: 5004,
            destination: 5005,
            ccval: 3,
            coverage: 0,
            is_short: false,
            seq: DccpSeq::new(0x0102_0304_0506),
            body,
            options: Vec::new(),
            data: DccpData::NONE,
        }
    }

    #[test]
    fn a_request_has_the_bytes_of_the_standard() {
        let mut request = packet(DccpBody::Request { service: 0x5650_5043 });
        request.options = vec![DccpOption::Feature(FeatureOption {
            step: FeatureStep::ChangeR,
            feature: 1,
            values: [2, 3, 4].into_iter().collect(),
        })];
        let mut bytes = Vec::new();
        request.encode(Carrier::Udp, &mut bytes);
        let expected = [
            0x13, 0x8c, 0x13, 0x8d, 7, 0x30, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 0x56, 0x50, 0x50, 0x43,
            // RFC 4340 section 10 has this option as an example.
            34, 6, 1, 2, 3, 4, 0, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(request.header_len(), bytes.len());
    }

    #[test]
    fn a_changed_bit_is_noticed_where_the_checksum_covers_it() {
        let mut data = packet(DccpBody::Data);
        data.data = DccpData::Bytes(Bytes::from_static(b"sixteen bytes !!"));
        data.coverage = 3;
        let mut bytes = Vec::new();
        data.encode(IP, &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The header of 16 bytes and two words of data are covered.
            assert_eq!(DccpPacket::decode(IP, &changed).is_err(), bit / 8 < 24, "bit {bit}");
        }
    }

    #[test]
    fn a_checksum_over_more_than_there_is_is_refused() {
        let mut data = packet(DccpBody::Data);
        data.coverage = 2;
        let mut bytes = Vec::new();
        data.encode(Carrier::Udp, &mut bytes);
        assert_eq!(DccpPacket::decode(Carrier::Udp, &bytes), Err(DccpWireError::Coverage));
    }

    #[test]
    fn reserved_types_and_short_closes_are_refused() {
        let mut bytes = Vec::new();
        packet(DccpBody::Close { ack: DccpSeq::new(7) }).encode(Carrier::Udp, &mut bytes);
        bytes[8] &= !1;
        assert_eq!(DccpPacket::decode(Carrier::Udp, &bytes), Err(DccpWireError::Short));
        bytes[8] = 10 << 1 | 1;
        assert_eq!(DccpPacket::decode(Carrier::Udp, &bytes), Err(DccpWireError::Type(10)));
    }

    #[test]
    fn an_option_of_nonsensical_length_hides_those_after_it() {
        let options = option::decode(&[2, 43, 4, 0, 9, 37, 200, 2, 2]);
        assert_eq!(options, [DccpOption::SlowReceiver, DccpOption::ElapsedTime(9)]);
    }

    fn any_option() -> impl Strategy<Value = DccpOption> {
        let bytes = |most| prop::collection::vec(any::<u8>(), 1..most);
        let three = 0u32..0x100_0000;
        let interval = (three.clone(), any::<bool>(), 0u32..0x80_0000, three.clone()).prop_map(
            |(lossless, nonce, loss, data)| IntervalReport { lossless, nonce, loss, data },
        );
        prop_oneof![
            Just(DccpOption::SlowReceiver),
            (0usize..4, any::<u8>(), prop::collection::vec(any::<u8>(), 0..9)).prop_map(
                |(step, feature, values)| DccpOption::Feature(FeatureOption {
                    step: [
                        FeatureStep::ChangeL,
                        FeatureStep::ConfirmL,
                        FeatureStep::ChangeR,
                        FeatureStep::ConfirmR
                    ][step],
                    feature,
                    values: values.into(),
                })
            ),
            bytes(40).prop_map(DccpOption::InitCookie),
            (0u64..1 << 48).prop_map(DccpOption::NdpCount),
            (any::<bool>(), bytes(60))
                .prop_map(|(nonce, runs)| DccpOption::AckVector { nonce, runs }),
            bytes(20).prop_map(DccpOption::DataDropped),
            any::<u32>().prop_map(DccpOption::Timestamp),
            (any::<u32>(), any::<u32>())
                .prop_map(|(value, elapsed)| DccpOption::TimestampEcho { value, elapsed }),
            any::<u32>().prop_map(DccpOption::ElapsedTime),
            any::<u32>().prop_map(DccpOption::DataChecksum),
            three.clone().prop_map(DccpOption::RttEstimate),
            any::<u32>().prop_map(DccpOption::LossEventRate),
            (any::<u8>(), prop::collection::vec(interval, 0..9))
                .prop_map(|(skip, intervals)| DccpOption::LossIntervals { skip, intervals }),
            any::<u32>().prop_map(DccpOption::ReceiveRate),
            prop::collection::vec(three, 0..9).prop_map(DccpOption::DroppedPackets),
            (45u8..128, prop::collection::vec(any::<u8>(), 0..20))
                .prop_map(|(kind, content)| DccpOption::Other { kind, content }),
        ]
    }

    fn any_packet() -> impl Strategy<Value = DccpPacket> {
        let numbers = (any::<u16>(), any::<u16>(), 0u8..16, 0u8..16, any::<u64>(), any::<u64>());
        let rest = (0u8..10, any::<bool>(), any::<u32>(), 0u8..12);
        let data = prop::collection::vec(any::<u8>(), 0..200);
        (numbers, rest, prop::collection::vec(any_option(), 0..4), data).prop_map(
            |((source, destination, ccval, coverage, seq, ack), rest, options, data)| {
                let (kind, is_short, word, code) = rest;
                let ack = DccpSeq::new(ack);
                let [_, a, b, c] = word.to_be_bytes();
                let body = match blank_body(kind).expect("a type").with_ack(ack) {
                    DccpBody::Request { .. } => DccpBody::Request { service: word },
                    DccpBody::Response { .. } => DccpBody::Response { ack, service: word },
                    DccpBody::Reset { .. } => {
                        DccpBody::Reset { ack, code: ResetCode::of(code), details: [a, b, c] }
                    }
                    other => other,
                };
                let is_short = is_short && body.may_be_short();
                let coverage = if covered(coverage, data.len()).is_some() { coverage } else { 0 };
                let seq = DccpSeq::new(seq);
                let data = DccpData::Bytes(data.into());
                DccpPacket {
                    source,
                    destination,
                    ccval,
                    coverage,
                    is_short,
                    seq,
                    body,
                    options,
                    data,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(packet in any_packet(), over_udp in any::<bool>()) {
            let carrier = if over_udp { Carrier::Udp } else { IP };
            let mut bytes = Vec::new();
            packet.encode(carrier, &mut bytes);
            prop_assert_eq!(bytes.len(), packet.header_len() + packet.data.len());
            let mut decoded = DccpPacket::decode(carrier, &bytes).expect("our own bytes");
            decoded.extend(packet.seq, packet.ack().unwrap_or_default());
            prop_assert_eq!(decoded, packet);
        }

        #[test]
        fn counted_data_are_zeros(packet in any_packet(), len in 0u32..200) {
            let encode = |data| {
                let mut bytes = Vec::new();
                DccpPacket { data, ..packet.clone() }.encode(IP, &mut bytes);
                bytes
            };
            let zeros = DccpData::Bytes(vec![0; len as usize].into());
            prop_assert_eq!(encode(DccpData::Counted { len, mark: 7 }), encode(zeros));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(packet) = DccpPacket::decode(Carrier::Udp, &bytes) {
                let mut again = Vec::new();
                packet.encode(Carrier::Udp, &mut again);
                let back = DccpPacket::decode(Carrier::Udp, &again);
                prop_assert_eq!(back, Ok(packet));
            }
        }
    }
}
