//! Sequence numbers: on the wire they wrap, inside they grow without end.

/// A number begins so far up that no comparison runs below zero.
const START: u64 = 1 << 40;

/// The first number of a sequence whose first number on the wire is `wire`.
pub(super) const fn first(wire: u32) -> u64 {
    START | wire as u64
}

/// The number near `near` that is `wire` on the wire (RFC 1982 with 32 bits).
pub(super) const fn expand(near: u64, wire: u32) -> u64 {
    let offset = wire.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(offset as i64)
}

/// The number near `near` that is `wire` on a wire of 16 bits.
pub(super) const fn expand_short(near: u64, wire: u16) -> u64 {
    let offset = wire.wrapping_sub(near as u16) as i16;
    near.wrapping_add_signed(offset as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_comes_back_from_the_wire(at in START..u64::MAX / 2, ahead in 0u64..1 << 31) {
            prop_assert_eq!(expand(at, (at + ahead) as u32), at + ahead);
            prop_assert_eq!(expand(at + ahead, at as u32), at);
            let ahead = ahead % (1 << 15);
            prop_assert_eq!(expand_short(at, (at + ahead) as u16), at + ahead);
        }
    }
}
