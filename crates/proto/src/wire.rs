use bytes::{Buf, Bytes};

/// The largest integer of variable length.
const LARGEST: u64 = (1 << 62) - 1;

/// Gives `put` the bytes of an integer of variable length (RFC 9000, section 16), `least` of them
/// or more. Integers above 2⁶² − 1 become that.
#[inline]
pub(crate) fn varint(value: u64, least: usize, put: impl FnOnce(&[u8])) {
    match value {
        0..=0x3f if least <= 1 => put(&[value as u8]),
        0..=0x3fff if least <= 2 => put(&(value as u16 | 0x4000).to_be_bytes()),
        0..=0x3fff_ffff if least <= 4 => put(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => put(&(value.min(LARGEST) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Reads an integer of variable length; `None` if it ends too early.
#[inline]
pub(crate) fn take_varint(bytes: &mut Bytes) -> Option<u64> {
    let len = 1 << (bytes.first()? >> 6);
    if bytes.len() < len {
        return None;
    }
    Some(bytes.get_uint(len) & (u64::MAX >> (66 - 8 * len)))
}
