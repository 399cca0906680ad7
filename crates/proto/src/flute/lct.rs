use super::error::AlcError;

/// The header of an LCT packet (RFC 5651, section 5.1), with what FLUTE and ALC put into it.
///
/// It is written with the shortest fields of 32 bits and 16 bits that hold its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LctHeader<'a> {
    /// The transport session identifier, below 2⁴⁸; 0 if it has none.
    pub tsi: u64,
    /// The transport object identifier, below 2¹¹²; none if the packet is of no object.
    pub toi: Option<u128>,
    /// The codepoint: FLUTE puts the FEC encoding ID here (RFC 6726, section 5).
    pub codepoint: u8,
    /// Flag A: nothing more comes in this session.
    pub close_session: bool,
    /// Flag B: nothing more comes of this object.
    pub close_object: bool,
    /// EXT_FDT: the packet carries symbols of this FDT instance.
    pub fdt: Option<FdtExtension>,
    /// EXT_CENC: how the FDT instance is compressed; 0 if it is not.
    pub content_encoding: u8,
    /// EXT_FTI without its first two bytes: FEC transmission information.
    pub fti: Option<&'a [u8]>,
}

/// EXT_FDT (RFC 6726, section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdtExtension {
    /// The version of FLUTE, below 16.
    pub version: u8,
    /// The FDT instance ID, below 2²⁰.
    pub instance: u32,
}

const VERSION: u8 = 1;
const EXT_FTI: u8 = 64;
const EXT_FDT: u8 = 192;
const EXT_CENC: u8 = 193;
/// Header extensions from this type on are one word long, those below have a length.
const FIXED: u8 = 128;

impl<'a> LctHeader<'a> {
    /// Reads the header of a datagram; the rest is what follows it. Extensions that are not
    /// understood are skipped, EXT_TIME and EXT_AUTH among them (section 5.2).
    ///
    /// # Errors
    /// [`AlcError`], if it is none.
    pub fn parse(datagram: &'a [u8]) -> Result<(Self, &'a [u8]), AlcError> {
        let short = || AlcError::Short(datagram.len());
        let &[first, second, words, codepoint] = datagram.first_chunk().ok_or_else(short)?;
        if first >> 4 != VERSION {
            return Err(AlcError::Version(first >> 4));
        }
        let length = usize::from(words) * 4;
        let (header, rest) = datagram.split_at_checked(length).ok_or_else(short)?;
        let half = usize::from(second >> 4 & 1) * 2;
        let control = (usize::from(first >> 2 & 3) + 1) * 4;
        let (tsi, toi) =
            (usize::from(second >> 7) * 4 + half, usize::from(second >> 5 & 3) * 4 + half);
        let fields = header.get(4 + control..).ok_or(AlcError::HeaderLength(words))?;
        let (tsi_bytes, fields) =
            fields.split_at_checked(tsi).ok_or(AlcError::HeaderLength(words))?;
        let (toi_bytes, mut extensions) =
            fields.split_at_checked(toi).ok_or(AlcError::HeaderLength(words))?;
        let number =
            |bytes: &[u8]| bytes.iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        let mut header = Self {
            tsi: number(tsi_bytes) as u64,
            toi: (toi > 0).then(|| number(toi_bytes)),
            codepoint,
            close_session: second & 2 != 0,
            close_object: second & 1 != 0,
            ..Self::default()
        };
        while let Some(kind) = extensions.first().copied() {
            let words = if kind < FIXED { extensions.get(1).copied().unwrap_or(0) } else { 1 };
            let extension = extensions.split_at_checked(usize::from(words) * 4);
            let (extension, after) =
                extension.filter(|_| words > 0).ok_or(AlcError::Extension(kind))?;
            header.take(kind, extension);
            extensions = after;
        }
        Ok((header, rest))
    }

    fn take(&mut self, kind: u8, extension: &'a [u8]) {
        match (kind, extension) {
            (EXT_FTI, [_, _, information @ ..]) => self.fti = Some(information),
            (EXT_FDT, &[_, a, b, c]) => {
                let instance = u32::from_be_bytes([0, a & 0xf, b, c]);
                self.fdt = Some(FdtExtension { version: a >> 4, instance });
            }
            (EXT_CENC, &[_, encoding, ..]) => self.content_encoding = encoding,
            _ => {}
        }
    }

    /// Appends the header. Numbers that are too large lose their high bits, and transmission
    /// information is filled up to a whole word.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let toi = self.toi.unwrap_or(0);
        // One flag lengthens both fields by half a word, so both have it or none.
        let is_half = self.tsi >> 32 != 0 || toi >> 96 != 0;
        let half = u8::from(is_half);
        let toi_words = match (self.toi, is_half) {
            (None, _) => 0,
            (_, true) => (0..3).find(|words| toi >> (32 * words + 16) == 0).unwrap_or(3),
            (_, false) => (1..3).find(|words| toi >> (32 * words) == 0).unwrap_or(3),
        };
        let flags = 1 << 7 | toi_words << 5 | half << 4;
        let flags = flags | u8::from(self.close_session) << 1 | u8::from(self.close_object);
        out.extend_from_slice(&[VERSION << 4, flags, 0, self.codepoint]);
        // Congestion control information: none, as there is one channel (RFC 6726, section 4).
        out.extend_from_slice(&[0; 4]);
        let half = usize::from(half) * 2;
        out.extend_from_slice(&self.tsi.to_be_bytes()[4 - half..]);
        out.extend_from_slice(&toi.to_be_bytes()[16 - usize::from(toi_words) * 4 - half..]);
        if let Some(FdtExtension { version, instance }) = self.fdt {
            let [_, a, b, c] = instance.to_be_bytes();
            out.extend_from_slice(&[EXT_FDT, version << 4 | a & 0xf, b, c]);
        }
        if let Some(information) = self.fti {
            let words = (information.len() + 2).div_ceil(4);
            out.extend_from_slice(&[EXT_FTI, words as u8]);
            out.extend_from_slice(information);
            out.resize(out.len() + words * 4 - information.len() - 2, 0);
        }
        out[start + 2] = ((out.len() - start) / 4) as u8;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_has_the_bytes_of_the_rfc() {
        let mut out = Vec::new();
        let fdt = Some(FdtExtension { version: 2, instance: 0x12345 });
        let header = LctHeader { tsi: 7, toi: Some(0), codepoint: 6, fdt, ..LctHeader::default() };
        header.write(&mut out);
        let expected =
            [0x10, 0xa0, 5, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 192, 0x21, 0x23, 0x45];
        assert_eq!(out, expected);
        assert_eq!(LctHeader::parse(&out).unwrap(), (header, &[][..]));
    }

    #[test]
    fn fields_of_all_lengths_and_other_extensions_are_read() {
        // C = 1, S = 0, O = 2, H = 1; EXT_TIME of 3 words; EXT_NOP.
        let mut bytes = vec![0x14, 0x50 | 3, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xab, 0xcd];
        bytes.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        bytes.extend_from_slice(&[2, 3, 0xc0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 1, 0, 0, 193, 3, 0, 0]);
        bytes.extend_from_slice(b"rest");
        let (header, rest) = LctHeader::parse(&bytes).unwrap();
        let toi = Some(0x0102_0304_0506_0708_090a);
        let expected = LctHeader { tsi: 0xabcd, toi, content_encoding: 3, ..LctHeader::default() };
        assert_eq!(header, LctHeader { close_session: true, close_object: true, ..expected });
        assert_eq!(rest, b"rest");
    }

    #[test]
    fn headers_that_contradict_themselves_are_refused() {
        let refused = |bytes: &[u8]| LctHeader::parse(bytes).unwrap_err();
        assert_eq!(refused(&[0x10, 0, 1]), AlcError::Short(3));
        assert_eq!(refused(&[0x20, 0, 1, 0]), AlcError::Version(2));
        assert_eq!(refused(&[0x10, 0, 2, 0]), AlcError::Short(4));
        assert_eq!(refused(&[0x10, 0x80, 2, 0, 0, 0, 0, 0]), AlcError::HeaderLength(2));
        let extension = [0x10, 0, 3, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(refused(&extension), AlcError::Extension(2), "no length");
        let extension = [0x10, 0, 3, 0, 0, 0, 0, 0, 64, 2, 0, 0];
        assert_eq!(refused(&extension), AlcError::Extension(64), "too long");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = LctHeader::parse(&bytes);
            let mut bytes = bytes;
            if bytes.len() > 2 {
                (bytes[0], bytes[2]) = (bytes[0] & 0xf | 0x10, (bytes.len() / 4) as u8);
                let _ = LctHeader::parse(&bytes);
            }
        }

        #[test]
        fn what_is_written_is_read(
            tsi in any::<u64>(),
            tsi_shift in 16u32..64,
            toi in prop::option::of((any::<u128>(), 16u32..128)),
            codepoint: u8,
            flags: (bool, bool),
            fdt in prop::option::of((0u8..16, 0u32..1 << 20)),
            fti in prop::option::of(prop::collection::vec(any::<u8>(), 14)),
        ) {
            let header = LctHeader {
                tsi: tsi >> tsi_shift,
                toi: toi.map(|(toi, shift)| toi >> shift),
                codepoint,
                close_session: flags.0,
                close_object: flags.1,
                fdt: fdt.map(|(version, instance)| FdtExtension { version, instance }),
                content_encoding: 0,
                fti: fti.as_deref(),
            };
            let mut out = Vec::new();
            header.write(&mut out);
            out.push(9);
            let (read, rest) = LctHeader::parse(&out).unwrap();
            // A session of 48 bits has room for an object's number, and so has one.
            if header.toi.is_none() && header.tsi >> 32 != 0 {
                prop_assert_eq!(read.toi, Some(0));
                prop_assert_eq!(LctHeader { toi: None, ..read }, header);
            } else {
                prop_assert_eq!(read, header);
            }
            prop_assert_eq!(rest, &[9]);
        }
    }
}
