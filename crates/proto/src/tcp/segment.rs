use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A TCP segment (RFC 9293 section 3.1) whose payload is only counted.
///
/// Ports and addresses are not in it: the flow of the packet that carries it stands for them until
/// the wire format writes bytes.
///
/// It takes half a line of the cache, since simulated segments move from queue to queue: what few
/// carry is boxed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN or FIN if there is none.
    pub seq: u32,
    /// The next sequence number that is expected, if [`TcpFlags::ACK`] is set.
    pub ack: u32,
    /// Bytes of payload.
    pub len: u32,
    /// The receive window as it stands in the header: to be shifted by the negotiated scale.
    pub window: u16,
    /// Control bits.
    pub flags: TcpFlags,
    /// Whether it carries timestamps. Beside them, so that a packet is copied in whole words.
    pub has_timestamps: bool,
    /// The timestamps, zero if it carries none.
    pub timestamps: Timestamps,
    /// What few segments carry.
    pub options: Option<Box<Options>>,
}

/// Timestamps (RFC 7323 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the clock of the peer, as it last came from there.
    pub echo: u32,
}

/// Options that few segments carry, none more than one of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// What a SYN offers.
    Syn(SynOptions),
    /// What is selectively acknowledged (RFC 2018).
    Sack(SackBlocks),
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
    /// Bytes that they take, with their padding.
    fn len(&self) -> u32 {
        4 + if self.window_scale.is_some() { 4 } else { 0 }
            + if self.sack_permitted { 4 } else { 0 }
    }
}

/// At most four blocks, three beside timestamps: left edge, and right edge exclusive.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
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

impl FromIterator<(u32, u32)> for SackBlocks {
    /// The first four blocks.
    fn from_iter<T: IntoIterator<Item = (u32, u32)>>(blocks: T) -> Self {
        let mut taken = Self::default();
        for (left, right) in blocks.into_iter().take(taken.blocks.len()) {
            taken.push(left, right);
        }
        taken
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The eight control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
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

impl BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for TcpFlags {
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

impl Options {
    /// Bytes that they take, with their padding. Apart, because most segments have none.
    #[inline(never)]
    fn len(&self) -> u32 {
        match self {
            Self::Syn(syn) => syn.len(),
            Self::Sack(SackBlocks { len: 0, .. }) => 0,
            // Two bytes of padding, kind and length, and eight bytes a block.
            Self::Sack(SackBlocks { len, .. }) => 4 + 8 * len,
        }
    }
}

impl Segment {
    /// What it offers, if it is a SYN.
    pub fn syn(&self) -> Option<SynOptions> {
        match self.options.as_deref() {
            Some(Options::Syn(syn)) => Some(*syn),
            _ => None,
        }
    }

    /// What it acknowledges selectively, the block with the latest arrival first: left edges, and
    /// right edges exclusive.
    pub fn sack(&self) -> &[(u32, u32)] {
        match self.options.as_deref() {
            Some(Options::Sack(blocks)) => blocks.as_slice(),
            _ => &[],
        }
    }

    /// The timestamps, if it carries any.
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.has_timestamps.then_some(self.timestamps)
    }

    /// The same segment with these timestamps, or with none.
    pub fn with_timestamps(self, timestamps: Option<Timestamps>) -> Self {
        let has_timestamps = timestamps.is_some();
        Self { has_timestamps, timestamps: timestamps.unwrap_or_default(), ..self }
    }

    /// The same segment with other options.
    pub fn with_options(self, options: Options) -> Self {
        Self { options: Some(Box::new(options)), ..self }
    }

    /// Bytes of the options, padded to whole words in the customary way.
    pub fn options_len(&self) -> u32 {
        let timestamps = if self.has_timestamps { TIMESTAMPS } else { 0 };
        timestamps + self.options.as_ref().map_or(0, |options| options.len())
    }

    /// Bytes at the IP layer: headers, options and payload.
    pub fn size(&self) -> u32 {
        IP_HEADER + TCP_HEADER + self.options_len() + self.len
    }

    /// How many sequence numbers it takes: its payload, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        let flag = |flag| u32::from(self.flags.has(flag));
        self.len + flag(TcpFlags::SYN) + flag(TcpFlags::FIN)
    }
}

/// The sequence number of a position in a stream whose first byte has number `base`.
pub(super) fn wire(base: u32, position: u64) -> u32 {
    base.wrapping_add(position as u32)
}

/// The position nearest to `near` that has this sequence number.
pub(super) fn unwrap(near: u64, base: u32, seq: u32) -> i64 {
    near as i64 + i64::from(seq.wrapping_sub(wire(base, near)) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_on_the_wire() {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let data = Segment { len: 1448, ..Segment::default() }.with_timestamps(timestamps);
        assert_eq!(data.size(), 1500);
        let ack = Segment::default().with_timestamps(timestamps);
        assert_eq!(ack.size(), 52);
        let mut blocks = SackBlocks::default();
        assert_eq!(ack.clone().with_options(Options::Sack(blocks)).size(), 52);
        for n in 0..3 {
            assert!(blocks.push(n, n + 1));
        }
        let ack = ack.with_options(Options::Sack(blocks));
        // Three blocks beside timestamps fill the 40 bytes that options may take.
        assert_eq!(ack.size(), 80);
        let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        let syn = Segment { flags: TcpFlags::SYN, ..data }.with_options(Options::Syn(syn));
        assert_eq!((syn.options_len(), syn.sequence_len()), (24, 1449));
    }

    #[test]
    fn a_segment_takes_half_a_line_of_the_cache() {
        assert_eq!(size_of::<Segment>(), 32);
    }

    #[test]
    fn a_fifth_block_finds_no_room() {
        let mut blocks = SackBlocks::default();
        assert!((0..4).all(|n| blocks.push(n, n + 1)));
        assert!(!blocks.push(9, 10));
        assert_eq!(blocks.as_slice().len(), 4);
    }
}
