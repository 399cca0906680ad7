//! The encoded forms of FEC transmission information: EXT_FTI, and the scheme-specific attribute of
//! an FDT instance.

use super::error::FecOtiError;
use super::oti::{FecOti, FecScheme};

impl FecOti {
    /// Reads EXT_FTI without its first two bytes (RFC 5445, section 3.4; RFC 5053, section 3.2.3;
    /// RFC 5510, section 5.2.4.1; RFC 6330, section 3.3.2).
    ///
    /// # Errors
    /// [`FecOtiError`], if it is none of the scheme.
    pub fn from_extension(scheme: FecScheme, bytes: &[u8]) -> Result<Self, FecOtiError> {
        let wrong = FecOtiError::Length(bytes.len());
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        match (scheme, bytes) {
            (FecScheme::NoCode, [length @ .., _, _, t0, t1, b0, b1, b2, b3])
                if length.len() == 6 =>
            {
                let max_source = u32::from_be_bytes([*b0, *b1, *b2, *b3]);
                Self::no_code(number(length), u16::from_be_bytes([*t0, *t1]), max_source)
            }
            (FecScheme::ReedSolomon, [length @ .., t0, t1, b, n]) if length.len() == 6 => {
                let size = u16::from_be_bytes([*t0, *t1]);
                Self::reed_solomon(number(length), size, u32::from(*b), u32::from(*n))
            }
            (FecScheme::Raptor, [length @ .., _, _, t0, t1, z0, z1, n, al])
                if length.len() == 6 =>
            {
                let own = [*z0, *z1, *n, *al];
                Self::of_specific(scheme, number(length), u16::from_be_bytes([*t0, *t1]), &own)
            }
            // The last two bytes fill the word.
            (FecScheme::RaptorQ, [length @ .., _, t0, t1, z, n0, n1, al, _, _])
                if length.len() == 5 =>
            {
                let own = [*z, *n0, *n1, *al];
                Self::of_specific(scheme, number(length), u16::from_be_bytes([*t0, *t1]), &own)
            }
            _ => Err(wrong),
        }
    }

    /// EXT_FTI without its first two bytes.
    pub fn to_extension(self) -> Vec<u8> {
        let length = self.transfer_length.to_be_bytes();
        let mut out = match self.scheme {
            FecScheme::RaptorQ => vec![length[3], length[4], length[5], length[6], length[7], 0],
            FecScheme::NoCode | FecScheme::Raptor => [&length[2..], &[0, 0][..]].concat(),
            FecScheme::ReedSolomon => length[2..].to_vec(),
        };
        out.extend_from_slice(&self.symbol_size.to_be_bytes());
        match self.scheme {
            FecScheme::NoCode => out.extend_from_slice(&self.max_source.to_be_bytes()),
            FecScheme::ReedSolomon => {
                out.extend_from_slice(&[self.max_source as u8, self.max_symbols as u8]);
            }
            FecScheme::Raptor | FecScheme::RaptorQ => out.extend_from_slice(&self.to_specific()),
        }
        if self.scheme == FecScheme::RaptorQ {
            out.extend_from_slice(&[0, 0]);
        }
        out
    }

    /// The information of one of the Raptor codes, with the four bytes of the scheme alone.
    pub(super) fn of_specific(
        scheme: FecScheme,
        length: u64,
        symbol_size: u16,
        own: &[u8],
    ) -> Result<Self, FecOtiError> {
        let &[a, b, c, alignment] = own else { return Err(FecOtiError::Length(own.len())) };
        let sub_blocks = match scheme {
            FecScheme::Raptor => u16::from(c),
            _ => u16::from_be_bytes([b, c]),
        };
        // In an object without bytes nothing is cut.
        if sub_blocks != 1 && length > 0 {
            return Err(FecOtiError::SubBlocks(sub_blocks));
        }
        match scheme {
            FecScheme::Raptor => {
                Self::raptor(length, symbol_size, u16::from_be_bytes([a, b]), alignment)
            }
            _ => Self::raptorq(length, symbol_size, a, alignment),
        }
    }

    /// The four bytes of one of the Raptor codes alone: Z, N and Al.
    pub(super) fn to_specific(self) -> [u8; 4] {
        match self.scheme {
            FecScheme::Raptor => {
                let [a, b] = (self.blocks as u16).to_be_bytes();
                [a, b, 1, self.alignment]
            }
            _ => [self.blocks as u8, 0, 1, self.alignment],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extensions_have_the_bytes_of_the_rfcs() {
        let length = 0x01_0203_0405;
        let no_code = FecOti::no_code(length, 0x1000, 0x1_0000).unwrap();
        let expected = [0, 1, 2, 3, 4, 5, 0, 0, 0x10, 0, 0, 1, 0, 0];
        assert_eq!(no_code.to_extension(), expected, "RFC 5445, section 3.4");
        let reed_solomon = FecOti::reed_solomon(length, 0x1000, 200, 250).unwrap();
        let expected = [0, 1, 2, 3, 4, 5, 0x10, 0, 200, 250];
        assert_eq!(reed_solomon.to_extension(), expected, "RFC 5510, section 5.2.4.1");
        let raptorq = FecOti::raptorq(length, 0x1000, 200, 4).unwrap();
        let expected = [1, 2, 3, 4, 5, 0, 0x10, 0, 200, 0, 1, 4, 0, 0];
        assert_eq!(raptorq.to_extension(), expected, "RFC 6330, section 3.3.2");
        let raptor = FecOti::raptor(length, 0x1000, 0x102, 4).unwrap();
        let expected = [0, 1, 2, 3, 4, 5, 0, 0, 0x10, 0, 1, 2, 1, 4];
        assert_eq!(raptor.to_extension(), expected, "RFC 5053, section 3.2.3");
        for oti in [no_code, reed_solomon, raptorq, raptor] {
            assert_eq!(FecOti::from_extension(oti.scheme(), &oti.to_extension()), Ok(oti));
        }
    }

    #[test]
    fn sub_blocks_are_refused() {
        let mut bytes = FecOti::raptorq(1000, 100, 1, 4).unwrap().to_extension();
        bytes[10] = 2;
        let read = FecOti::from_extension(FecScheme::RaptorQ, &bytes);
        assert_eq!(read, Err(FecOtiError::SubBlocks(2)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_information_or_an_error(
            scheme in prop::sample::select(FecScheme::ALL.to_vec()),
            bytes in prop::collection::vec(any::<u8>(), 8..17),
        ) {
            if let Ok(oti) = FecOti::from_extension(scheme, &bytes) {
                // What is read again is the same, whatever was in reserved fields.
                prop_assert_eq!(FecOti::from_extension(scheme, &oti.to_extension()), Ok(oti));
            }
        }
    }
}
