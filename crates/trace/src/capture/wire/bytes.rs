//! Numbers in bytes.

pub(super) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_be_bytes)
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}

/// A number that stands for several (after splitmix64).
pub(crate) fn mix<const N: usize>(numbers: [u64; N]) -> u64 {
    numbers.into_iter().fold(0x9e37_79b9_7f4a_7c15, |sum, number| {
        let mut mixed = (sum ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 29;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 32
    })
}
