//! The Internet checksum (RFC 1071).

/// A sum of 16-bit words in ones' complement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds bytes; an odd one counts as if a zero followed.
    pub(super) fn add(self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(2);
        let sum: u64 = words.by_ref().map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let odd = words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
        Self(self.0 + sum + odd)
    }

    /// The sum itself.
    pub(super) const fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum: its complement.
    pub(super) const fn finish(self) -> u16 {
        !self.folded()
    }
}

/// The sum over the pseudo-header of a packet, which offloading expects in the checksum's place.
pub(super) fn partial(ipv6: bool, packet: &[u8], protocol: u8, length: u32) -> u16 {
    let addresses = if ipv6 { &packet[8..40] } else { &packet[12..20] };
    Sum::default().add(addresses).add(&length.to_be_bytes()).add(&[0, protocol]).folded()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().add(&bytes).folded(), 0xddf2);
        assert_eq!(Sum::default().add(&bytes).finish(), !0xddf2);
        assert_eq!(Sum::default().add(&[0xab]).folded(), 0xab00);
    }
}
