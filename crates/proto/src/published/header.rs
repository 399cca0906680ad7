use bytes::BufMut;
use thiserror::Error;

/// The header (figure 3.5). The figure leaves gaps between its fields; this is the layout whose
/// gaps are those of TCP's header: 28 bytes, block for sequence number, S1 for acknowledgement
/// number, S2 and S3 behind (D-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedHeader {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// The block that the packet belongs to, from 1; 0 in all that is of no block.
    pub block: u32,
    /// S1, S2, S3: the state of the generator before the packet's first symbol; in SYN and SYNACK
    /// the initial one (D-06).
    pub state: [u32; 3],
    /// What kind of packet it is.
    pub flags: PublishedFlags,
}

/// The six flags, in TCP's order (D-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedFlags(pub u8);

impl PublishedFlags {
    /// The end of a sender's data.
    pub const FIN: Self = Self(0x01);
    /// The beginning of a connection.
    pub const SYN: Self = Self(0x02);
    /// The connection is broken off.
    pub const RST: Self = Self(0x04);
    /// The block's last four bytes say how many of the others count (D-08).
    pub const PSH: Self = Self(0x08);
    /// An acknowledgement: of a block, or with block 0 of a SYN or FIN (D-51).
    pub const ACK: Self = Self(0x10);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a packet with these carries data: one that also begins, ends, breaks off or
    /// acknowledges does not.
    pub const fn carry_data(self) -> bool {
        self.0 & (Self::SYN.0 | Self::FIN.0 | Self::RST.0 | Self::ACK.0) == 0
    }

    /// Whether all of these are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What is wrong with bytes that should be a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Too few bytes for a header.
    #[error("shorter than a header")]
    Short,
    /// The offset is none that a header can have.
    #[error("a data offset of {0} words, where there are 6 or 7")]
    Offset(u8),
    /// The checksum says that bytes have changed.
    #[error("a wrong checksum")]
    Checksum,
}

/// How much of the data the checksum covers (D-05).
const COVERED: usize = 8;
/// Words of the header with the gaps of TCP's, and of the one without.
const WORDS: u8 = 7;
const WORDS_COMPACT: u8 = 6;

impl PublishedHeader {
    /// Bytes of the header.
    pub const SIZE: u32 = 28;

    /// Writes the header and `data`. `pseudo` is what the checksum covers of the IP header.
    pub fn encode(&self, pseudo: &[u8], data: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        out.put_u16(self.source);
        out.put_u16(self.destination);
        out.put_u32(self.block);
        out.put_u32(self.state[0]);
        out.put_u16(u16::from(WORDS) << 12 | u16::from(self.flags.0 & 0x3f));
        out.put_u16(0);
        out.put_u32(0);
        out.put_u32(self.state[1]);
        out.put_u32(self.state[2]);
        out.extend_from_slice(data);
        let covered = out.len().min(begin + Self::SIZE as usize + COVERED);
        let sum = checksum([pseudo, &out[begin..covered]]);
        out[begin + 16..begin + 18].copy_from_slice(&sum.to_be_bytes());
    }

    /// Reads a header in either layout; gives it and the data behind.
    pub fn decode<'a>(pseudo: &[u8], bytes: &'a [u8]) -> Result<(Self, &'a [u8]), HeaderError> {
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 4).ok_or(HeaderError::Short)?;
            Ok(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
        };
        let (ports, block, s1, fourth) = (word(0)?, word(4)?, word(8)?, word(12)?);
        let offset = (fourth >> 28) as u8;
        let (flags, s2, s3) = match offset {
            WORDS => ((fourth >> 16) as u8 & 0x3f, word(20)?, word(24)?),
            WORDS_COMPACT => ((fourth >> 16) as u8 & 0x3f, word(16)?, word(20)?),
            other => return Err(HeaderError::Offset(other)),
        };
        let size = usize::from(offset) * 4;
        let covered = bytes.len().min(size + COVERED);
        if checksum([pseudo, &bytes[..covered]]) != 0 {
            return Err(HeaderError::Checksum);
        }
        let header = Self {
            source: (ports >> 16) as u16,
            destination: ports as u16,
            block,
            state: [s1, s2, s3],
            flags: PublishedFlags(flags),
        };
        Ok((header, &bytes[size..]))
    }
}

/// The Internet checksum (RFC 1071) of several pieces, each of which begins at an even place.
fn checksum<const N: usize>(pieces: [&[u8]; N]) -> u16 {
    let mut sum = 0u64;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: PublishedHeader = PublishedHeader {
        source: 5001,
        destination: 10_000,
        block: 0x0102_0304,
        state: [12_345, 67_890, 13_579],
        flags: PublishedFlags(0x12),
    };

    fn bytes() -> Vec<u8> {
        let mut out = Vec::new();
        HEADER.encode(b"10.0.0.1", b"some data of it", &mut out);
        out
    }

    #[test]
    fn fields_lie_where_the_figure_and_tcp_have_them() {
        let bytes = bytes();
        assert_eq!(bytes.len(), 28 + 15);
        assert_eq!(bytes[..8], [0x13, 0x89, 0x27, 0x10, 1, 2, 3, 4]);
        assert_eq!(bytes[8..12], 12_345u32.to_be_bytes());
        assert_eq!(bytes[12..16], [0x70, 0x12, 0, 0], "seven words, SYN and ACK");
        assert_eq!(bytes[20..24], 67_890u32.to_be_bytes());
        assert_eq!(bytes[24..28], 13_579u32.to_be_bytes());
        let (header, data) = PublishedHeader::decode(b"10.0.0.1", &bytes).expect("it is whole");
        assert_eq!((header, data), (HEADER, &b"some data of it"[..]));
    }

    #[test]
    fn a_changed_header_is_refused_and_changed_data_beyond_the_first_bytes_is_not() {
        let whole = bytes();
        for at in 0..28 + COVERED {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            assert!(PublishedHeader::decode(b"10.0.0.1", &bytes).is_err(), "byte {at}");
        }
        let mut bytes = whole.clone();
        bytes[28 + COVERED] ^= 0x40;
        assert!(PublishedHeader::decode(b"10.0.0.1", &bytes).is_ok());
        assert_eq!(PublishedHeader::decode(b"10.0.0.2", &whole), Err(HeaderError::Checksum));
        for len in 0..28 {
            assert!(PublishedHeader::decode(b"10.0.0.1", &whole[..len]).is_err());
        }
    }

    #[test]
    fn the_layout_without_gaps_is_read_too() {
        let mut bytes = vec![0; 24];
        bytes[12] = 0x60;
        bytes[13] = 0x01;
        bytes[16..20].copy_from_slice(&7u32.to_be_bytes());
        let sum = checksum([&bytes]);
        bytes[14..16].copy_from_slice(&sum.to_be_bytes());
        let (header, data) = PublishedHeader::decode(&[], &bytes).expect("it is whole");
        assert_eq!((header.state, header.flags, data), ([0, 7, 0], PublishedFlags::FIN, &[][..]));
    }
}
