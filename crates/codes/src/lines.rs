use alloc::vec;
use alloc::vec::Vec;

use crate::huge_pages;
use crate::simd::lane::LINE;

/// Lines of 64 bytes, aligned so that none lies across two cache lines.
pub(crate) struct Lines {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    /// Whether others used the memory before.
    is_used: bool,
}

impl Lines {
    /// `len` lines of zeros.
    pub(crate) fn zero(len: usize) -> Self {
        let mut lines = Self::unfilled(len);
        if lines.is_used {
            lines.get_mut().as_flattened_mut().fill(0);
        }
        lines
    }

    /// `len` lines of anything.
    pub(crate) fn unfilled(len: usize) -> Self {
        let kept = kept::take((len + 1) * LINE);
        let is_used = kept.is_some();
        // Zeros straight from the allocator cost nothing where pages are fresh; an aligned type
        // would be filled.
        let bytes = kept.unwrap_or_else(|| {
            let mut fresh = vec![0; (len + 1) * LINE];
            huge_pages::prefer(&mut fresh);
            fresh
        });
        let start = bytes.as_ptr().align_offset(LINE).min(LINE);
        Self { bytes, start, len, is_used }
    }

    pub(crate) fn get(&self) -> &[[u8; LINE]] {
        self.bytes[self.start..][..self.len * LINE].as_chunks().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut [[u8; LINE]] {
        self.bytes[self.start..][..self.len * LINE].as_chunks_mut().0
    }
}

#[cfg(all(test, feature = "std"))]
pub(crate) use kept::soil;

impl Drop for Lines {
    fn drop(&mut self) {
        kept::give(core::mem::take(&mut self.bytes));
    }
}

/// Large buffers that a thread keeps for the next that needs one: an allocator that gives pages
/// back and fetches fresh ones for every block may take as long for it as solving and replaying
/// take.
#[cfg(feature = "std")]
mod kept {
    use alloc::vec::Vec;
    use core::cell::RefCell;

    /// Smaller ones are the allocator's business.
    const LEAST: usize = 64 << 10;
    /// What a thread keeps at most, in bytes and in number.
    const MOST: usize = 4 << 20;
    const NUMBER: usize = 4;

    std::thread_local! {
        static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    /// A buffer of at least so many bytes, and not of many more.
    pub(super) fn take(len: usize) -> Option<Vec<u8>> {
        let fits = |bytes: &Vec<u8>| (len..=4 * len).contains(&bytes.len());
        // A thread that ends may have no store any more.
        KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let place = kept.iter().position(fits)?;
            Some(kept.swap_remove(place))
        })
        .ok()?
    }

    pub(super) fn give(bytes: Vec<u8>) {
        if !(LEAST..=MOST).contains(&bytes.len()) {
            return;
        }
        // If there is no store any more, it is freed.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            kept.push(bytes);
            while kept.len() > NUMBER || kept.iter().map(Vec::len).sum::<usize>() > MOST {
                kept.remove(0);
            }
        });
    }

    /// Fills what the thread keeps with anything but zeros.
    #[cfg(test)]
    pub(crate) fn soil() -> usize {
        KEPT.with(|kept| kept.borrow_mut().iter_mut().map(|bytes| bytes.fill(0xa5)).count())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_thread_keeps_no_more_than_it_may() {
            for len in [100, 1 << 20, 2 << 20, 100 << 10, 3 << 20, 5 << 20, 1 << 20, 1 << 17] {
                give(vec![1; len]);
                let total = KEPT.with(|kept| kept.borrow().iter().map(Vec::len).sum::<usize>());
                assert!(total <= MOST, "{total}");
            }
            assert_eq!(take(100), None, "none is so small");
            assert_eq!(take(1 << 20).map(|bytes| bytes.len()), Some(1 << 20));
            assert_eq!(take(1 << 20), None, "what is taken is gone");
        }

        #[test]
        fn lines_of_zeros_are_zeros_whoever_had_them() {
            let mut lines = super::super::Lines::zero(4096);
            lines.get_mut().as_flattened_mut().fill(7);
            drop(lines);
            let lines = super::super::Lines::zero(4000);
            assert!(lines.is_used && lines.get().as_flattened().iter().all(|byte| *byte == 0));
        }
    }
}

/// Without threads' stores nothing is kept.
#[cfg(not(feature = "std"))]
mod kept {
    use alloc::vec::Vec;

    pub(super) const fn take(_len: usize) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn give(_bytes: Vec<u8>) {}
}
