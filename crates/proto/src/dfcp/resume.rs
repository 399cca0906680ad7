//! What is left of an object from an earlier connection.

use core::ops::Range;

use bytes::Bytes;
use fontis_codes::{BlockDecoder, BlockShape, Code};

use super::packet::ObjectShape;
use super::shape::foreign_shape;

/// What the receiver of an object has of it already, as its sender must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    done: Vec<Range<u32>>,
    begun: Vec<Begun>,
}

/// A block of which some symbols are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Which block.
    pub block: u32,
    /// Bytes in its symbols.
    pub symbol_size: u16,
    /// The first symbol to send: those below are there or were lost.
    pub next_esi: u32,
    /// Symbols that it lacks.
    pub needed: u32,
}

/// What a receiver has of an object: blocks that are done, and the source symbols of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Blocks that were checked and stored.
    pub done: Vec<Range<u32>>,
    /// Blocks that were begun.
    pub begun: Vec<KeptBlock>,
}

/// Source symbols of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBlock {
    /// Which block.
    pub block: u32,
    /// Bytes in a symbol.
    pub symbol_size: u16,
    /// The first symbol of each run, and the bytes of the run; the last symbol of a block without
    /// its padding.
    pub runs: Vec<(u32, Bytes)>,
}

/// Source symbols of a block that is not complete yet, so that they outlive the connection if they
/// are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which block.
    pub block: u32,
    /// Bytes in a symbol.
    pub symbol_size: u16,
    /// Where in the block the bytes belong.
    pub offset: u32,
    /// The bytes; what lies between the runs is no part of the block.
    pub data: Bytes,
    /// Symbols that are there: the first of each run, and how many.
    pub runs: Vec<(u32, u32)>,
}

impl Held {
    /// Blocks that are done, in any order, and blocks that were begun.
    pub fn new(mut done: Vec<Range<u32>>, mut begun: Vec<Begun>) -> Self {
        done.retain(|range| !range.is_empty());
        done.sort_unstable_by_key(|range| range.start);
        // A peer's list may say the same many times.
        done.dedup_by(|next, range| {
            let joins = next.start <= range.end;
            if joins {
                range.end = range.end.max(next.end);
            }
            joins
        });
        begun.sort_unstable_by_key(|begun| begun.block);
        begun.dedup_by_key(|begun| begun.block);
        Self { done, begun }
    }

    /// Blocks that are done: disjoint, in rising order.
    pub fn done(&self) -> &[Range<u32>] {
        &self.done
    }

    /// Blocks that were begun.
    pub fn begun(&self) -> &[Begun] {
        &self.begun
    }

    pub(super) fn is_done(&self, block: u32) -> bool {
        let behind = self.done.partition_point(|range| range.start <= block);
        behind.checked_sub(1).is_some_and(|index| self.done[index].contains(&block))
    }

    /// The first block that is not done.
    pub(super) fn floor(&self) -> u32 {
        self.done.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// What is there of a block of `len` bytes; nothing if it makes no sense, or its symbols have
    /// more bytes than `room`.
    pub(super) fn begun_block(
        &self,
        block: u32,
        code: Code,
        len: u32,
        room: usize,
    ) -> Option<(BlockShape, Begun)> {
        let index = self.begun.binary_search_by_key(&block, |begun| begun.block).ok()?;
        let begun = self.begun[index];
        let shape = foreign_shape(code, len, begun.symbol_size)?;
        let sensible = usize::from(begun.symbol_size) <= room
            && (1..=shape.source_symbols()).contains(&begun.needed)
            && begun.next_esi <= shape.source_symbols();
        sensible.then_some((shape, begun))
    }
}

impl Kept {
    /// What the sender of the object must know.
    pub fn held(&self, object: &ObjectShape) -> Held {
        let code = Code::from_id(object.code).unwrap_or(Code::RaptorQ);
        let begun = self.begun.iter().filter_map(|kept| {
            let decoder = kept.decoder(code, object.block_len(kept.block))?;
            let last = kept.runs.iter().map(|(first, data)| {
                first + data.len().div_ceil(usize::from(kept.symbol_size)) as u32
            });
            Some(Begun {
                block: kept.block,
                symbol_size: kept.symbol_size,
                next_esi: last.max()?,
                needed: decoder.needed().max(1),
            })
        });
        Held::new(self.done.clone(), begun.collect())
    }
}

impl KeptBlock {
    /// A decoder that holds these symbols.
    pub(super) fn decoder(&self, code: Code, len: u32) -> Option<BlockDecoder> {
        let shape = BlockShape::new(code, len, self.symbol_size).ok()?;
        let mut decoder = BlockDecoder::new(shape);
        for (first, data) in &self.runs {
            let symbols = data.chunks(usize::from(self.symbol_size));
            for (esi, symbol) in (*first..shape.source_symbols()).zip(symbols) {
                // One that does not fit is not there.
                let _ = decoder.add(esi, symbol);
            }
        }
        Some(decoder)
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges is meant")]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_say_what_is_done() {
        let held = Held::new(vec![7..9, 0..2, 3..3, 1..2, 8..9], Vec::new());
        assert_eq!(held.done(), [0..2, 7..9]);
        let done: Vec<_> = (0..10).filter(|block| held.is_done(*block)).collect();
        assert_eq!(done, [0, 1, 7, 8]);
        assert_eq!(held.floor(), 2);
        assert_eq!(Held::new(vec![1..5], Vec::new()).floor(), 0);
    }

    #[test]
    fn what_is_kept_says_what_is_lacking() {
        let object = ObjectShape {
            size: 10_000,
            block_size: 8192,
            symbol_size: 100,
            code: Code::RaptorQ.id(),
        };
        let block = |runs| KeptBlock { block: 0, symbol_size: 1000, runs };
        let kept = Kept {
            done: vec![1..2],
            begun: vec![block(vec![(0, vec![1; 2000].into()), (8, vec![2; 192].into())])],
        };
        let held = kept.held(&object);
        let begun = Begun { block: 0, symbol_size: 1000, next_esi: 9, needed: 6 };
        assert_eq!(held, Held::new(vec![1..2], vec![begun]));
        assert!(held.begun_block(0, Code::RaptorQ, 8192, 1200).is_some());
        assert!(
            held.begun_block(0, Code::RaptorQ, 8192, 900).is_none(),
            "it does not fit a packet"
        );
        assert!(held.begun_block(1, Code::RaptorQ, 8192, 1200).is_none());
    }
}
