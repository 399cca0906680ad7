use std::num::NonZero;
use std::sync::Arc;

use bytes::Bytes;
use fontis_codes::BlockEncoder;
use fontis_proto::cast::CastShape;
use lru::LruCache;

use crate::hash_tree::HashTree;
use crate::source::{Source, SourceError};

/// Blocks that are kept ready: repairs of a block follow its first visit soon.
const READY: NonZero<usize> = NonZero::new(48).unwrap();

/// The blocks of a cast, as symbols.
pub(super) struct Blocks {
    shape: CastShape,
    head: Bytes,
    source: Arc<Source>,
    tree: Arc<HashTree>,
    ready: LruCache<u32, BlockEncoder>,
}

impl Blocks {
    pub(super) fn new(
        shape: CastShape,
        head: Bytes,
        source: Arc<Source>,
        tree: Arc<HashTree>,
    ) -> Self {
        Self { shape, head, source, tree, ready: LruCache::new(READY) }
    }

    /// A symbol; none beyond what the code can make.
    ///
    /// # Errors
    /// If the source changed, or cannot be read.
    pub(super) fn symbol(&mut self, block: u32, esi: u32) -> Result<Option<Bytes>, SourceError> {
        if !self.ready.contains(&block) {
            let Some(encoder) = self.encoder(block)? else { return Ok(None) };
            self.ready.put(block, encoder);
        }
        let Some(encoder) = self.ready.get_mut(&block) else { return Ok(None) };
        if esi >= encoder.shape().source_symbols() && !encoder.has_repair() {
            let repair = encoder.repair_job().run();
            encoder.set_repair(repair);
        }
        Ok(encoder.symbol(esi))
    }

    fn encoder(&self, block: u32) -> Result<Option<BlockEncoder>, SourceError> {
        let Some(shape) = self.shape.block(block) else { return Ok(None) };
        let (in_body, offset) = self.shape.place(block);
        let length = shape.len() as usize;
        if !in_body {
            let start = offset as usize;
            return Ok(Some(BlockEncoder::new(shape, self.head.slice(start..start + length))));
        }
        let mut bytes = Vec::new();
        self.source.read_block(offset, length, &mut bytes)?;
        let index = u64::from(block - self.shape.head_blocks());
        if !self.source.is_at_rest() && !self.tree.verify_block(index, &bytes) {
            return Err(SourceError::Changed { path: self.source.manifest().name().into() });
        }
        Ok(Some(BlockEncoder::new(shape, bytes.into())))
    }
}
