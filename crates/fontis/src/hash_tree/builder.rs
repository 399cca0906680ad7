use blake3::hazmat::ChainingValue;

use super::{BlockCheck, HashTree, HashTreeError, VALUE, check_block_size, merge_root};

/// A tree whose chaining values become known block after block: an object can be on its way while
/// it is being hashed.
#[derive(Debug)]
pub struct HashTreeBuilder {
    size: u64,
    block_size: u32,
    values: Vec<ChainingValue>,
}

impl HashTreeBuilder {
    /// A tree of which nothing is known yet; its object has `size` bytes.
    ///
    /// # Errors
    /// [`HashTreeError::BlockSize`]; [`HashTreeError::Single`] if the object is no longer than one
    /// block, which has no chaining value.
    pub fn new(size: u64, block_size: u32) -> Result<Self, HashTreeError> {
        check_block_size(block_size)?;
        if size <= u64::from(block_size) {
            return Err(HashTreeError::Single);
        }
        // A peer's word for the size takes no memory: that comes with the values.
        Ok(Self { size, block_size, values: Vec::new() })
    }

    /// Bytes of the object.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of every block but the last, which may be shorter.
    pub const fn block_size(&self) -> u32 {
        self.block_size
    }

    /// The number of known values, which are those of the first blocks.
    pub const fn known(&self) -> u64 {
        self.values.len() as u64
    }

    const fn missing(&self) -> u64 {
        self.size.div_ceil(self.block_size as u64) - self.known()
    }

    /// Takes the chaining values of the blocks from `first` on, as in [`HashTree::to_bytes`].
    /// Returns false and takes none if `first` is not the next block, there are not as many blocks,
    /// or part of a value is left over.
    pub fn extend(&mut self, first: u64, bytes: &[u8]) -> bool {
        let (values, rest) = bytes.as_chunks::<VALUE>();
        let fits = first == self.known() && values.len() as u64 <= self.missing();
        if fits && rest.is_empty() {
            self.values.extend_from_slice(values);
        }
        fits && rest.is_empty()
    }

    /// The check of block `i`; `None` if its value is unknown.
    pub fn check(&self, i: u64) -> Option<BlockCheck> {
        let value = *self.values.get(usize::try_from(i).ok()?)?;
        Some(BlockCheck::with_value(self.size, self.block_size, i, value))
    }

    /// The tree, if the value of every block is known.
    pub fn finish(self) -> Option<HashTree> {
        let Self { size, block_size, .. } = self;
        (self.missing() == 0).then(|| HashTree {
            root: merge_root(&self.values),
            size,
            block_size,
            values: self.values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_tree::chaining_value;
    use fontis_base::Stream;

    fn object(size: usize) -> Vec<u8> {
        let seed = 0x7472_6565;
        println!("seed {seed:#x}");
        let mut bytes = vec![0; size];
        Stream::new(seed, "hash_tree_builder").fill(&mut bytes);
        bytes
    }

    #[test]
    fn block_after_block_comes_the_same_tree_as_from_all_at_once() {
        for size in [1025, 2048, 2049, 9 * 1024, 9 * 1024 + 7] {
            let bytes = object(size);
            let whole = HashTree::of_reader(&bytes[..], 1024, |_| ()).unwrap();
            let mut tree = HashTreeBuilder::new(size as u64, 1024).unwrap();
            for (i, block) in (0..).zip(bytes.chunks(1024)) {
                assert!(tree.check(i).is_none(), "not known yet");
                assert!(tree.extend(i, &chaining_value(i * 1024, block)));
                let check = tree.check(i).unwrap();
                assert!(check.holds(block));
                assert!(!check.holds(&block[1..]));
                let mut forged = block.to_vec();
                forged[block.len() / 2] ^= 1;
                assert!(!check.holds(&forged));
            }
            assert_eq!(tree.finish().unwrap(), whole);
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused_and_an_incomplete_tree_is_none() {
        let bytes = object(3000);
        let whole = HashTree::of_reader(&bytes[..], 1024, |_| ()).unwrap().to_bytes();
        let mut tree = HashTreeBuilder::new(3000, 1024).unwrap();
        assert!(!tree.extend(0, &whole[1..]), "not a whole number of values");
        assert!(!tree.extend(0, &[&whole[..], &whole[..32]].concat()), "one too many");
        assert!(!tree.extend(1, &whole[32..]), "not the next");
        assert_eq!(tree.known(), 0);
        assert!(tree.extend(0, &whole[..64]));
        assert!(!tree.extend(2, &whole[..64]), "one too many");
        assert!(tree.finish().is_none());
    }

    #[test]
    fn an_object_of_one_block_and_odd_blocks_have_no_builder() {
        assert_eq!(HashTreeBuilder::new(1024, 1024).unwrap_err(), HashTreeError::Single);
        assert_eq!(HashTreeBuilder::new(9000, 1000).unwrap_err(), HashTreeError::BlockSize(1000));
        assert_eq!(HashTreeBuilder::new(0, 1024).unwrap_err(), HashTreeError::Single);
        // However large it is said to be.
        assert!(HashTreeBuilder::new(u64::MAX, 1024).is_ok());
    }
}
