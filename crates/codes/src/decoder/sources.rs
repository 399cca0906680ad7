//! The source symbols that have arrived of a block.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use fontis_base::prefetch;

use crate::block::BlockShape;
use crate::huge_pages;

/// The source symbols that have arrived of a block. Those that follow each other lie in place, so
/// that a block that arrives in order is never copied. Memory grows with what has arrived, whatever
/// length the block was announced with: a symbol far beyond the others stays by itself.
pub(super) struct Sources {
    /// The beginning of the block; gaps are zero.
    data: Vec<u8>,
    /// A bit for each symbol in `data`.
    have: Vec<u64>,
    count: u32,
    /// Symbols below this are put into `data`.
    reach: u32,
    /// Symbols from `reach` on.
    far: BTreeMap<u32, Box<[u8]>>,
}

/// Each symbol that arrived lets so many lie in place, which bounds the gaps that are filled with
/// zeros; some loss and reordering stay within it.
const REACH: u32 = 4;
/// Symbols that lie in place from the beginning.
const LEAST_REACH: u32 = 16;
/// Symbols to make room for at first.
const FIRST_ROOM: u32 = 32;
/// Once those have arrived, there is room for so many times as many: mostly for the whole block, so
/// that it is moved once, while it is short.
const ROOM: u32 = 128;

/// How many symbols to make room for when `count` have arrived.
pub(super) const fn room(count: u32) -> u32 {
    if count < FIRST_ROOM { FIRST_ROOM } else { count.saturating_mul(ROOM) }
}

impl Sources {
    pub(super) const fn new() -> Self {
        Self {
            data: Vec::new(),
            have: Vec::new(),
            count: 0,
            reach: LEAST_REACH,
            far: BTreeMap::new(),
        }
    }

    /// How many have arrived.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Takes symbol `esi` of a block of this shape; false if it is there already.
    pub(super) fn insert(&mut self, shape: BlockShape, esi: u32, symbol: &[u8]) -> bool {
        if esi >= self.reach {
            if self.far.contains_key(&esi) {
                return false;
            }
            self.far.insert(esi, symbol.into());
        } else {
            if self.is_placed(esi) {
                return false;
            }
            self.place(shape, esi, symbol);
        }
        self.count += 1;
        self.reach_out(shape, self.count.saturating_mul(REACH).saturating_add(LEAST_REACH));
        true
    }

    /// Whether symbol `esi` has arrived and lies in place.
    pub(super) fn is_placed(&self, esi: u32) -> bool {
        let word = self.have.get(esi as usize / 64);
        word.is_some_and(|word| word >> (esi % 64) & 1 == 1)
    }

    /// The symbols of a block of `k` that have not arrived. All others must lie in place.
    pub(super) fn missing(&self, k: u32) -> Vec<u32> {
        (0..k).filter(|esi| !self.is_placed(*esi)).collect()
    }

    /// Puts all symbols in place and makes the block as long as it was announced.
    pub(super) fn fill(&mut self, shape: BlockShape) {
        self.data.resize(shape.padded_len(), 0);
        self.reach_out(shape, u32::MAX);
    }

    /// The beginning of the block, as far as symbols lie in place; gaps are zero.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The same, to be written.
    pub(super) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// The block, with its padding if it was [filled](Self::fill).
    pub(super) fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// Puts symbols below `reach` in place.
    fn reach_out(&mut self, shape: BlockShape, reach: u32) {
        self.reach = self.reach.max(reach);
        while let Some(first) = self.far.first_entry().filter(|first| *first.key() < self.reach) {
            let (esi, symbol) = first.remove_entry();
            self.place(shape, esi, &symbol);
        }
    }

    /// Puts a symbol in its place. What is not there yet is not written, unless something behind it
    /// came.
    fn place(&mut self, shape: BlockShape, esi: u32, symbol: &[u8]) {
        let word = esi as usize / 64;
        if word >= self.have.len() {
            self.have.resize(word + 1, 0);
        }
        self.have[word] |= 1 << (esi % 64);
        if symbol.is_empty() {
            return;
        }
        let range = shape.source_range(esi);
        if self.data.capacity() < range.end.next_multiple_of(usize::from(shape.symbol_size())) {
            self.grow(shape, esi);
        }
        if range.start >= self.data.len() {
            self.data.resize(range.start, 0);
            self.data.extend_from_slice(symbol);
            // The next symbol's place is mostly in another thread's cache, or in none.
            let next = self.data.spare_capacity_mut();
            prefetch(&next[..symbol.len().min(next.len())]);
        } else {
            self.data[range].copy_from_slice(symbol);
        }
    }

    /// Makes room for symbol `esi`, and for more.
    #[cold]
    fn grow(&mut self, shape: BlockShape, esi: u32) {
        let symbols = room(self.count).max(esi.saturating_add(1)).min(shape.source_symbols());
        let bytes = symbols as usize * usize::from(shape.symbol_size());
        self.data.reserve_exact(bytes.saturating_sub(self.data.len()));
        huge_pages::prefer(self.data.spare_capacity_mut());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use fontis_base::Stream;

    use super::*;
    use crate::code::Code;

    const SIZE: u16 = 100;

    fn shape(k: u32) -> BlockShape {
        BlockShape::new(Code::RaptorQ, k * u32::from(SIZE) - 1, SIZE).unwrap()
    }

    fn symbol(shape: BlockShape, esi: u32) -> Vec<u8> {
        vec![(esi % 251) as u8 + 1; shape.symbol_len(esi)]
    }

    fn bytes(sources: &Sources) -> usize {
        let far: usize = sources.far.values().map(|symbol| symbol.len()).sum();
        sources.data.len() + sources.have.len() * 8 + far
    }

    #[test]
    fn symbols_in_any_order_make_the_block() {
        let shape = shape(1000);
        for seed in 0..20 {
            let mut stream = Stream::new(seed, "order");
            let mut esis: Vec<u32> = (0..1000).collect();
            for place in (1..esis.len()).rev() {
                esis.swap(place, stream.below(place as u64 + 1) as usize);
            }
            let mut sources = Sources::new();
            for (count, esi) in (1..).zip(&esis) {
                assert!(sources.insert(shape, *esi, &symbol(shape, *esi)), "seed {seed}");
                assert!(!sources.insert(shape, *esi, &symbol(shape, *esi)), "seed {seed}");
                assert_eq!(sources.count(), count);
            }
            let expected: Vec<u8> = (0..1000).flat_map(|esi| symbol(shape, esi)).collect();
            assert!(sources.missing(1000).is_empty());
            assert_eq!(sources.into_data(), expected, "seed {seed}");
        }
    }

    #[test]
    fn memory_grows_with_what_has_arrived() {
        let shape = shape(50_000);
        for seed in 0..20 {
            let mut stream = Stream::new(seed, "far");
            let mut sources = Sources::new();
            for _ in 0..200 {
                let esi = stream.below(50_000) as u32;
                sources.insert(shape, esi, &symbol(shape, esi));
                let arrived = (sources.count() + 4) as usize * usize::from(SIZE);
                assert!(bytes(&sources) <= 5 * arrived, "seed {seed}: {}", bytes(&sources));
                let most = room(sources.count()).max(sources.reach) as usize * usize::from(SIZE);
                assert!(sources.data.capacity() <= most, "seed {seed}");
            }
        }
        let mut sources = Sources::new();
        sources.insert(shape, 49_999, &symbol(shape, 49_999));
        assert!(bytes(&sources) < 200);
    }

    #[test]
    fn a_block_in_order_is_moved_once_while_it_is_short() {
        let shape = shape(1000);
        let mut sources = Sources::new();
        let mut capacities = vec![0];
        for esi in 0..1000 {
            sources.insert(shape, esi, &symbol(shape, esi));
            let capacity = sources.data.capacity();
            if capacities.last() != Some(&capacity) {
                capacities.push(capacity);
            }
        }
        assert_eq!(capacities, [0, 32 * 100, 1000 * 100]);
    }
}
