use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A TCP segment (RFC 9293 section 3.1) whose payload is only counted.
///
/// Ports and addresses are not in it: the flow of the packet that carries it stands for them until the wire format
/// writes bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN or FIN if there is none.
    pub seq: u32,
    /// The next sequence number that is expected, if [`Flags::ACK`] is set.
    pub ack: u32,
    /// Bytes of payload.
    pub len: u32,
    /// The receive window as it stands in the header: to be shifted by the negotiated scale.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// TSval and TSecr (RFC 7323 section 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of selective acknowledgement (RFC 2018).
    pub sack: SackBlocks,
    /// What a SYN offers.
    pub syn: Option<SynOptions>,
}

/// The options that only a SYN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// The largest segment that the sender accepts, in bytes of payload (RFC 9293 section 3.7.1).
    pub mss: u16,
    /// By how many bits windows are shifted (RFC 7323 section 2), at most 14.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgement is understood (RFC 2018 section 2).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// Bytes that they take, with their padding. Apart, because most segments have none.
    #[inline(never)]
    fn len(&self) -> u32 {
        4 + if self.window_scale.is_some() { 4 } else { 0 }
            + if self.sack_permitted { 4 } else { 0 }
    }
}

/// At most four blocks, three beside timestamps: left edge, and right edge exclusive.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// As wide as what lies beside it: a processor waits if it reads more at once than what has just been written.
    len: u32,
    blocks: [(u32, u32); 4],
}

impl SackBlocks {
    /// Appends a block; false if there is no room.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(slot) = self.blocks.get_mut(self.len as usize) else { return false };
        *slot = (left, right);
        self.len += 1;
        true
    }

    /// The blocks, the one with the latest arrival first.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..self.len as usize]
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The eight control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Bytes of an IPv4 header without options.
pub const IP_HEADER: u32 = 20;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// Bytes that the timestamps option takes, with its padding (RFC 7323 appendix A).
pub(super) const TIMESTAMPS: u32 = 12;

impl Segment {
    /// Bytes of the options, padded to whole words in the customary way.
    pub fn options_len(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { TIMESTAMPS } else { 0 };
        // Two bytes of padding, kind and length, and eight bytes a block.
        let sack = match self.sack.len {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        timestamps + sack + self.syn.as_ref().map_or(0, SynOptions::len)
    }

    /// Bytes at the IP layer: headers, options and payload.
    pub fn size(&self) -> u32 {
        IP_HEADER + TCP_HEADER + self.options_len() + self.len
    }

    /// How many sequence numbers it takes: its payload, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        self.len + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_on_the_wire() {
        let data = Segment { len: 1448, timestamps: Some((1, 2)), ..Segment::default() };
        assert_eq!(data.size(), 1500);
        let mut ack = Segment { timestamps: Some((1, 2)), ..Segment::default() };
        assert_eq!(ack.size(), 52);
        for n in 0..3 {
            assert!(ack.sack.push(n, n + 1));
        }
        // Three blocks beside timestamps fill the 40 bytes that options may take.
        assert_eq!(ack.size(), 80);
        let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        let syn = Segment { flags: Flags::SYN, syn: Some(syn), ..data };
        assert_eq!((syn.options_len(), syn.sequence_len()), (24, 1449));
    }

    #[test]
    fn a_fifth_block_finds_no_room() {
        let mut blocks = SackBlocks::default();
        assert!((0..4).all(|n| blocks.push(n, n + 1)));
        assert!(!blocks.push(9, 10));
        assert_eq!(blocks.as_slice().len(), 4);
    }
}
