use fontis_codes::{BlockShape, Code, ShapeError};
use thiserror::Error;

/// The partition of what a cast sends: a *head*, which says how to check the rest, and a *body*,
/// each cut into blocks that are numbered on from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastShape {
    head: u64,
    body: u64,
    block_size: u32,
    symbol_size: u16,
    code: Code,
    head_blocks: u32,
    blocks: u32,
}

/// A partition that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CastShapeError {
    /// Blocks have no bytes.
    #[error("a block size of zero is impossible")]
    EmptyBlock,
    /// There are more blocks than numbers for them.
    #[error("{bytes} bytes in blocks of {block_size} are more blocks than can be numbered")]
    Blocks {
        /// Bytes of head and body.
        bytes: u64,
        /// Bytes in a block.
        block_size: u32,
    },
    /// The code does not serve such blocks.
    #[error(transparent)]
    Block(#[from] ShapeError),
}

impl CastShape {
    /// Cuts `head` and `body` bytes into blocks of `block_size`, and blocks into symbols.
    pub fn new(
        head: u64,
        body: u64,
        block_size: u32,
        symbol_size: u16,
        code: Code,
    ) -> Result<Self, CastShapeError> {
        if block_size == 0 {
            return Err(CastShapeError::EmptyBlock);
        }
        let bytes = head.saturating_add(body);
        let count = |part: u64| part.div_ceil(u64::from(block_size));
        let head_blocks = count(head);
        // Visits are numbered with 32 bits, too, and a block is visited a few times.
        let most = u64::from(u32::MAX >> 8);
        let blocks = head_blocks.saturating_add(count(body));
        if blocks > most {
            return Err(CastShapeError::Blocks { bytes, block_size });
        }
        let (head_blocks, blocks) = (head_blocks as u32, blocks as u32);
        let shape = Self { head, body, block_size, symbol_size, code, head_blocks, blocks };
        // All but the last block of each part have one size.
        for block in [0, head_blocks.saturating_sub(1), head_blocks, blocks.saturating_sub(1)] {
            if block < blocks {
                BlockShape::new(code, shape.len(block), symbol_size)?;
            }
        }
        Ok(shape)
    }

    /// Blocks of the head.
    pub const fn head_blocks(&self) -> u32 {
        self.head_blocks
    }

    /// Blocks of head and body.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes in a symbol.
    pub const fn symbol_size(&self) -> u16 {
        self.symbol_size
    }

    /// The place of a block: whether in the body, and the offset there.
    pub const fn place(&self, block: u32) -> (bool, u64) {
        let in_body = block >= self.head_blocks;
        let index = if in_body { block - self.head_blocks } else { block };
        (in_body, index as u64 * self.block_size as u64)
    }

    /// Bytes of a block.
    pub fn len(&self, block: u32) -> u32 {
        let (in_body, offset) = self.place(block);
        let part = if in_body { self.body } else { self.head };
        part.saturating_sub(offset).min(u64::from(self.block_size)) as u32
    }

    /// Whether there is nothing to send.
    pub const fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// The shape of a block; none beyond the last.
    pub fn block(&self, block: u32) -> Option<BlockShape> {
        if block >= self.blocks {
            return None;
        }
        BlockShape::new(self.code, self.len(block), self.symbol_size).ok()
    }

    /// Source symbols of a block; 0 beyond the last.
    pub fn source_symbols(&self, block: u32) -> u32 {
        self.block(block).map_or(0, BlockShape::source_symbols)
    }

    /// Source symbols of all blocks.
    pub fn all_symbols(&self) -> u64 {
        self.symbols_of(0, self.blocks)
    }

    /// Source symbols of the blocks from `start` up to, but without, `end`.
    pub fn symbols_of(&self, start: u32, end: u32) -> u64 {
        let parts = [(0, self.head_blocks), (self.head_blocks, self.blocks)];
        let of_part = |(first, after): (u32, u32)| {
            let (from, to) = (start.max(first), end.min(after));
            if from >= to {
                return 0;
            }
            // All blocks of a part but its last are as long as its first.
            let each = u64::from(self.source_symbols(first));
            let last = u64::from(self.source_symbols(to - 1));
            u64::from(to - from - 1) * each + last
        };
        parts.into_iter().map(of_part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_of_the_blocks_one_by_one() {
        for (head, body) in [(0, 0), (1, 0), (10, 5000), (2500, 4096), (3000, 9001), (1024, 1)] {
            let shape = CastShape::new(head, body, 1024, 100, Code::RaptorQ).unwrap();
            for start in 0..=shape.blocks() {
                for end in start..=shape.blocks() + 1 {
                    let each = (start..end).map(|block| u64::from(shape.source_symbols(block)));
                    let sum: u64 = each.sum();
                    assert_eq!(shape.symbols_of(start, end), sum, "{shape:?} {start} {end}");
                }
            }
        }
    }
}
