//! A list of chaining values from anybody.
//!
//! The input is the size (8 bytes), a byte for the block size, and the list.

use fontis::{HashTree, HashTreeBuilder};

/// A list is accepted for its own root only, and every block then has a check.
pub(crate) fn run(data: &[u8]) {
    let Some((size, rest)) = data.split_first_chunk::<8>() else { return };
    let Some((shift, list)) = rest.split_first() else { return };
    let size = u64::from_be_bytes(*size);
    let block_size = 1_u32 << (shift % 32);
    let root = blake3::hash(list);
    if let Ok(tree) = HashTree::from_bytes(root, size, block_size, list) {
        walk(&tree);
    }
    let Ok(mut builder) = HashTreeBuilder::new(size, block_size) else { return };
    if !builder.extend(0, list) {
        return;
    }
    for block in [0, 1, u64::MAX] {
        builder.check(block);
    }
    if let Some(tree) = builder.finish() {
        let again = HashTree::from_bytes(tree.root(), size, block_size, &tree.to_bytes());
        walk(&again.expect("a tree takes its own list"));
    }
}

fn walk(tree: &HashTree) {
    for block in (0..tree.block_count().min(100)).chain([tree.block_count(), u64::MAX]) {
        assert_eq!(tree.check(block).is_some(), block < tree.block_count(), "block {block}");
        assert!(tree.block_len(block) <= tree.block_size() as usize);
        tree.verify_block(block, b"something");
    }
}
