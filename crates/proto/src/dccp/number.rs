//! Sequence numbers of 48 bits (RFC 4340 section 3.1).

use core::fmt;

const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;
const SHORT_BITS: u32 = 24;
const SHORT_MASK: u64 = (1 << SHORT_BITS) - 1;

/// A sequence number of 48 bits. Arithmetic and order are circular, so there is no total order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DccpSeq(u64);

impl DccpSeq {
    /// The number with these low 48 bits.
    pub const fn new(value: u64) -> Self {
        Self(value & MASK)
    }

    /// Its value, below 2^48.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number after it.
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number `count` after it.
    pub const fn plus(self, count: u64) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// The number `count` before it.
    pub const fn minus(self, count: u64) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// How far it lies after `other`: negative if it lies before, at most 2^47 either way.
    pub const fn offset_from(self, other: Self) -> i64 {
        let shift = u64::BITS - BITS;
        (self.0.wrapping_sub(other.0) << shift).cast_signed() >> shift
    }

    /// Whether it lies after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.offset_from(other) > 0
    }

    /// The later of two numbers.
    pub const fn latest(self, other: Self) -> Self {
        if other.is_after(self) { other } else { self }
    }

    /// Whether it lies between two numbers, both included, on the way up from `low`.
    pub const fn is_within(self, low: Self, high: Self) -> bool {
        self.0.wrapping_sub(low.0) & MASK <= high.0.wrapping_sub(low.0) & MASK
    }

    /// The low 24 bits, as short headers carry them.
    pub const fn low(self) -> u32 {
        (self.0 & SHORT_MASK) as u32
    }

    /// The number with the low 24 bits of this one that is nearest to `reference` (RFC 4340 section
    /// 7.6).
    pub const fn extended(self, reference: Self) -> Self {
        let shift = u64::BITS - SHORT_BITS;
        let offset = (self.0.wrapping_sub(reference.0) << shift).cast_signed() >> shift;
        Self::new(reference.0.wrapping_add_signed(offset))
    }
}

impl fmt::Debug for DccpSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arithmetic_and_order_wrap() {
        let last = DccpSeq::new(MASK);
        assert_eq!(last.next(), DccpSeq::new(0));
        assert!(last.next().is_after(last) && !last.is_after(last.next()));
        assert_eq!(DccpSeq::new(0).minus(1), last);
        assert!(DccpSeq::new(3).is_within(last, DccpSeq::new(5)));
        assert!(!DccpSeq::new(6).is_within(last, DccpSeq::new(5)));
    }

    proptest! {
        #[test]
        fn a_short_number_extends_to_the_number_it_came_from(
            reference in any::<u64>(), offset in -0x7f_ffffi64..0x7f_ffff
        ) {
            let reference = DccpSeq::new(reference);
            let number = DccpSeq::new(reference.get().wrapping_add_signed(offset));
            prop_assert_eq!(number.offset_from(reference), offset);
            let short = DccpSeq::new(u64::from(number.low()));
            prop_assert_eq!(short.extended(reference), number);
            prop_assert_eq!(number.extended(reference), number);
        }
    }
}
