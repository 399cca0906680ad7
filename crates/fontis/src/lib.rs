//! Reliable transport over bad networks with digital fountain codes.

mod hash_tree;

pub use hash_tree::{HashTree, HashTreeError, block_size_for};
