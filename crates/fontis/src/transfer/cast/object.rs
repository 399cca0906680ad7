use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fontis_proto::dfcp::SYMBOL_SIZE;

use super::blocks::Blocks;
use super::content::Content;
use crate::hash_tree::HashTree;
use crate::manifest::ManifestError;
use crate::source::{Source, SourceOptions};
use crate::transfer::TransferError;
use crate::transfer::message::{Offer, encode};

/// A file or folder to cast.
pub(super) struct CastObject {
    pub(super) source: Arc<Source>,
    pub(super) tree: Arc<HashTree>,
    /// The manifest and the hash tree, as receivers read them.
    pub(super) head: Bytes,
    pub(super) content: Content,
}

impl CastObject {
    /// Opens the file or folder at `path`, and hashes it.
    pub(super) fn open(path: &Path, options: &SourceOptions) -> Result<Self, TransferError> {
        let source = Arc::new(Source::open_with(path, options)?);
        let tree = Arc::new(source.hash_tree(|_| {})?);
        let offer = Offer {
            root: *tree.root().as_bytes(),
            size: tree.size(),
            block_size: tree.block_size(),
            manifest: source.manifest().encode_shared()?,
            tree: tree.to_bytes(),
            state: source.state().map(Into::into),
        };
        let head = encode(&offer);
        let hash = *blake3::hash(&head).as_bytes();
        let (head_size, block_size) = (head.len() as u64, tree.block_size());
        let content = Content::new(hash, head_size, tree.size(), block_size, SYMBOL_SIZE);
        // More entries than a receiver takes.
        let content = content.ok_or(ManifestError::TooLong(head.len()))?;
        Ok(Self { source, tree, head, content })
    }

    /// Its blocks.
    pub(super) fn blocks(&self) -> Blocks {
        let (source, tree) = (self.source.clone(), self.tree.clone());
        Blocks::new(self.content.shape, self.head.clone(), source, tree)
    }
}
