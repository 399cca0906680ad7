use super::error::AlcError;
use super::lct::LctHeader;
use super::oti::FecScheme;

/// A packet of ALC (RFC 5775): an LCT header, and symbols behind their identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlcPacket<'a> {
    /// The header.
    pub header: LctHeader<'a>,
    /// The scheme, which of the symbols is first, and the symbols; none in a packet without.
    pub symbols: Option<(FecScheme, FecPayloadId, &'a [u8])>,
}

/// Which symbol a packet carries first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FecPayloadId {
    /// The source block number.
    pub block: u32,
    /// The encoding symbol identifier.
    pub esi: u32,
}

impl FecPayloadId {
    /// Bits of the symbol's identifier; the block has the rest of 32.
    const fn esi_bits(scheme: FecScheme) -> u32 {
        match scheme {
            FecScheme::NoCode | FecScheme::Raptor => 16,
            FecScheme::ReedSolomon => 8,
            FecScheme::RaptorQ => 24,
        }
    }

    /// Reads the encoded form.
    pub const fn from_bytes(scheme: FecScheme, bytes: [u8; 4]) -> Self {
        let (all, bits) = (u32::from_be_bytes(bytes), Self::esi_bits(scheme));
        Self { block: all >> bits, esi: all & ((1 << bits) - 1) }
    }

    /// The encoded form. Numbers that are too large lose their high bits.
    pub const fn to_bytes(self, scheme: FecScheme) -> [u8; 4] {
        let bits = Self::esi_bits(scheme);
        (self.block << bits | self.esi & ((1 << bits) - 1)).to_be_bytes()
    }
}

impl<'a> AlcPacket<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// [`AlcError`], if it is no packet, or one whose scheme is not understood.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, AlcError> {
        let (header, rest) = LctHeader::parse(datagram)?;
        if rest.is_empty() || header.toi.is_none() {
            return Ok(Self { header, symbols: None });
        }
        let scheme = FecScheme::from_id(header.codepoint);
        let scheme = scheme.ok_or(AlcError::Scheme(header.codepoint))?;
        let (id, symbols) = rest.split_first_chunk::<4>().ok_or(AlcError::Short(datagram.len()))?;
        let id = FecPayloadId::from_bytes(scheme, *id);
        let symbols = (!symbols.is_empty()).then_some((scheme, id, symbols));
        Ok(Self { header, symbols })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_have_the_bits_of_their_schemes() {
        let bytes = [1, 2, 3, 4];
        for (scheme, block, esi) in [
            (FecScheme::NoCode, 0x102, 0x304),
            (FecScheme::Raptor, 0x102, 0x304),
            (FecScheme::ReedSolomon, 0x1_0203, 4),
            (FecScheme::RaptorQ, 1, 0x2_0304),
        ] {
            let id = FecPayloadId::from_bytes(scheme, bytes);
            assert_eq!((id, id.to_bytes(scheme)), (FecPayloadId { block, esi }, bytes));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = AlcPacket::parse(&bytes);
            let mut packet = vec![0x10, 0xa0, 4, bytes.len() as u8 % 8];
            packet.extend_from_slice(&[0; 12]);
            packet.extend_from_slice(&bytes);
            let known = FecScheme::from_id(packet[3]).is_some();
            let read = AlcPacket::parse(&packet);
            prop_assert_eq!(read.is_ok(), bytes.is_empty() || known && bytes.len() >= 4);
        }
    }
}
