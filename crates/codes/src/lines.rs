use alloc::vec;
use alloc::vec::Vec;

use crate::simd::LINE;

/// Lines of 64 bytes, aligned so that none lies across two cache lines.
pub(crate) struct Lines {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Lines {
    /// `len` lines of zeros.
    pub(crate) fn zero(len: usize) -> Self {
        // Zeros straight from the allocator cost nothing where pages are fresh; an aligned type would be filled.
        let bytes = vec![0; (len + 1) * LINE];
        let start = bytes.as_ptr().align_offset(LINE).min(LINE);
        Self { bytes, start, len }
    }

    #[cfg(feature = "std")]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self) -> &[[u8; LINE]] {
        self.bytes[self.start..][..self.len * LINE].as_chunks().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut [[u8; LINE]] {
        self.bytes[self.start..][..self.len * LINE].as_chunks_mut().0
    }
}
