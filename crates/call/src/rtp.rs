use bytes::Bytes;
use rtp_types::{RtpPacket, RtpPacketBuilder};

/// The payload type of repair packets, a dynamic one.
pub(crate) const REPAIR_TYPE: u8 = 127;

/// The payload type of packets with copies of earlier frames (RFC 2198).
pub(crate) const COPIES_TYPE: u8 = 126;
/// The payload type of keys (RFC 4733), a dynamic one that is that of most telephones.
pub(crate) const KEYS_TYPE: u8 = 101;
/// The payload type of comfort noise (RFC 3389).
pub(crate) const NOISE_TYPE: u8 = 13;
/// The bits of a source that name the call; a repair packet has more to say in the others.
pub(crate) const CALL_BITS: u32 = 14;

/// The packets without voice that a peer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SideFormats {
    /// The form of keys.
    pub(crate) keys: Option<KeyFormat>,
    /// Whether it takes comfort noise.
    pub(crate) has_noise: bool,
}

/// A peer's form of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyFormat {
    pub(crate) payload_type: u8,
    /// Units of durations in a second.
    pub(crate) clock: u32,
}

/// A packet of RTP (RFC 3550) as far as calls use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RtpFrame {
    pub(crate) payload_type: u8,
    /// The first packet of a talkspurt.
    pub(crate) marker: bool,
    pub(crate) seq: u16,
    pub(crate) timestamp: u32,
    /// The source: its low bits are the number of the call in its connection.
    pub(crate) source: u32,
    pub(crate) payload: Bytes,
}

impl RtpFrame {
    /// The number of its call.
    pub(crate) const fn call(&self) -> u32 {
        self.source & ((1 << CALL_BITS) - 1)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let packet = RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(self.payload_type)
            .marker_bit(self.marker)
            .sequence_number(self.seq)
            .timestamp(self.timestamp)
            .ssrc(self.source)
            .payload(&self.payload);
        packet.write_vec_unchecked().into()
    }

    /// Reads a packet; `None` if it is none.
    pub(crate) fn decode(datagram: &Bytes) -> Option<Self> {
        let packet = RtpPacket::parse(datagram).ok()?;
        Some(Self {
            payload_type: packet.payload_type(),
            marker: packet.marker_bit(),
            seq: packet.sequence_number(),
            timestamp: packet.timestamp(),
            source: packet.ssrc(),
            payload: datagram.slice_ref(packet.payload()),
        })
    }

    /// Whether a packet is one that repairs others.
    pub(crate) fn is_repair(packet: &[u8]) -> bool {
        packet.get(1).is_some_and(|second| second & 127 == REPAIR_TYPE)
    }

    /// Whether a datagram may be a packet of RTP: its version is 2.
    pub(crate) fn is_likely(datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|first| first >> 6 == 2)
    }
}

/// The full number of which `low` is the low half, nearest to `near`. Numbers begin at zero: one
/// before that is `None`.
pub(crate) fn extend(near: u32, low: u16) -> Option<u32> {
    let step = low.wrapping_sub(near as u16) as i16;
    near.checked_add_signed(i32::from(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_what_it_was_and_other_bytes_are_none() {
        let frame = RtpFrame {
            payload_type: 111,
            marker: true,
            seq: 65_535,
            timestamp: 0xffff_fff0,
            source: 3,
            payload: Bytes::from_static(b"voice"),
        };
        let bytes = frame.encode();
        assert!(RtpFrame::is_likely(&bytes));
        assert_eq!(bytes.len(), 12 + 5);
        assert_eq!(RtpFrame::decode(&bytes), Some(frame));
        assert_eq!(RtpFrame::decode(&bytes.slice(..11)), None);
        assert_eq!(RtpFrame::decode(&Bytes::from_static(b"")), None);
    }

    #[test]
    fn numbers_go_on_where_sixteen_bits_begin_anew() {
        assert_eq!(extend(0, 0), Some(0));
        assert_eq!(extend(0, 65_535), None);
        assert_eq!(extend(65_535, 0), Some(65_536));
        assert_eq!(extend(65_537, 65_535), Some(65_535));
        assert_eq!(extend(3 * 65_536, 7), Some(3 * 65_536 + 7));
    }
}
