//! Symbols are worked on in strips: some lines of every symbol at a time, so that a strip of all of
//! them stays in the processor's cache.

use alloc::vec;

use crate::simd::lane::LINE;

/// Usual sizes of caches.
const SECOND_LEVEL: usize = 1 << 20;
const THIRD_LEVEL: usize = 16 << 20;

/// A range of bytes of every symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strip {
    /// First byte.
    pub(crate) offset: usize,
    /// Bytes; less than its lines hold only for the last strip.
    pub(crate) len: usize,
    /// Lines: 1, 2, 4 or 8.
    pub(crate) lines: usize,
}

/// Cuts symbols of `symbol_size` bytes into strips for a work area of `slots`.
pub(crate) fn strips(symbol_size: usize, slots: usize) -> impl Iterator<Item = Strip> {
    // Wide strips make the most of each instruction, but narrower ones are better where they fit a
    // cache that wider ones do not.
    let size = |lines| lines * slots * LINE;
    let widest = if size(4) <= SECOND_LEVEL || size(8) > THIRD_LEVEL { 4 } else { 8 };
    let mut offset = 0;
    core::iter::from_fn(move || {
        let left = symbol_size - offset;
        if left == 0 {
            return None;
        }
        let mut lines = widest;
        while lines > 1 && lines * LINE > left {
            lines /= 2;
        }
        let strip = Strip { offset, len: left.min(lines * LINE), lines };
        offset += strip.len;
        Some(strip)
    })
}

/// The symbols that a plan's instructions name as inputs: those in `first`, then those in `second`;
/// beyond them all are zero.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) symbol_size: usize,
    pub(crate) first: &'a [u8],
    pub(crate) second: &'a [u8],
}

impl<'a> Inputs<'a> {
    /// Symbols of so many lines.
    pub(crate) const fn of_lines(symbols: &'a [[u8; LINE]], lines: usize) -> Self {
        Self { symbol_size: lines * LINE, first: symbols.as_flattened(), second: &[] }
    }

    /// Calls `work` with inputs that have the whole lines of a strip, and with its offset in them:
    /// the last strip may have less, so that it must be copied and padded.
    pub(crate) fn whole_lines<R>(&self, strip: Strip, work: impl FnOnce(Inputs, usize) -> R) -> R {
        if strip.len == strip.lines * LINE {
            return work(*self, strip.offset);
        }
        let pad = |symbols: &[u8]| {
            let mut padded = vec![0; symbols.len() / self.symbol_size * LINE];
            let lines = padded.as_chunks_mut::<LINE>().0;
            for (line, symbol) in lines.iter_mut().zip(symbols.chunks_exact(self.symbol_size)) {
                line[..strip.len].copy_from_slice(&symbol[strip.offset..][..strip.len]);
            }
            padded
        };
        let (first, second) = (pad(self.first), pad(self.second));
        work(Inputs { symbol_size: LINE, first: &first, second: &second }, 0)
    }

    /// `N` lines of an input from `offset` on; `None` for one that is zero.
    #[inline(always)]
    pub(crate) fn lines<const N: usize>(
        &self,
        input: u32,
        offset: usize,
    ) -> Option<&[[u8; LINE]; N]> {
        let start = (input as usize).checked_mul(self.symbol_size)?;
        let symbols = if start < self.first.len() {
            self.first.get(start + offset..)
        } else {
            self.second.get(start - self.first.len() + offset..)
        };
        symbols?.as_chunks::<LINE>().0.first_chunk::<N>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_a_symbol_once() {
        for size in 1..2000 {
            for slots in [20, 1000, 60_000] {
                let mut end = 0;
                for strip in strips(size, slots) {
                    assert_eq!(strip.offset, end);
                    assert!(
                        strip.len == strip.lines * LINE || (strip.lines == 1 && strip.len < LINE)
                    );
                    end += strip.len;
                }
                assert_eq!(end, size);
            }
        }
    }
}
