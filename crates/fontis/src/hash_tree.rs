//! The BLAKE3 tree of an object, cut off at its blocks, so that blocks are checked one by one.
//!
//! A block whose size is a power of two of at least one chunk (1024 bytes) is a complete subtree of
//! the BLAKE3 tree (BLAKE3 paper, section 2.1); its non-root output is its *chaining value*. The
//! chaining values of all blocks merge to the root, which is the plain BLAKE3 hash of the object,
//! what `b3sum` prints.

mod builder;

use std::io::{self, Read};

use blake3::Hash;
use blake3::hazmat::{self, ChainingValue, HasherExt, Mode};
use rayon::prelude::*;

pub use builder::HashTreeBuilder;

/// Bytes of a chaining value.
const VALUE: usize = blake3::OUT_LEN;
/// Blocks hashed in parallel lie within this many bytes of each other, so that a disk reads nearly
/// in order.
const WINDOW: u64 = 32 << 20;
const MAX_BLOCK: u32 = 1 << 20;

/// The block size in bytes that Fontis gives an object of `size` bytes: up to 1 MiB an object is
/// one block of the next power of two, at least 1024; a larger one has blocks of 1 MiB.
pub fn block_size_for(size: u64) -> u32 {
    match u32::try_from(size) {
        Ok(size) if size <= MAX_BLOCK => size.next_power_of_two().max(blake3::CHUNK_LEN as u32),
        _ => MAX_BLOCK,
    }
}

/// The reason why a list of chaining values, or a block size, was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HashTreeError {
    /// The block size is no power of two, or less than a BLAKE3 chunk.
    #[error(
        "block size {0} is not a power of two of at least 1024 bytes: ask the sender for a valid one"
    )]
    BlockSize(u32),
    /// The object has no chaining values, because it is not longer than one block.
    #[error("an object of a single block has no hash list: ask the sender for a whole offer")]
    Single,
    /// The list has not one value per block.
    #[error(
        "hash list has {actual} bytes, but the object's blocks need {expected}: fetch the list again"
    )]
    Length {
        /// Bytes that an object of this size and block size needs.
        expected: u64,
        /// Bytes in the list.
        actual: u64,
    },
    /// The list merges to another root.
    #[error("hash list does not belong to object {expected}: fetch it again, from another source")]
    Root {
        /// The root that was asked for.
        expected: Hash,
    },
}

/// The chaining values of an object's blocks and the root that they merge to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashTree {
    root: Hash,
    size: u64,
    block_size: u32,
    /// One per block; empty for an object of at most one block, which the root alone checks.
    values: Vec<ChainingValue>,
}

impl HashTree {
    /// Hashes all bytes of `reader`, in blocks of `block_size` bytes, on all cores. Calls
    /// `progress` with the number of hashed bytes.
    ///
    /// # Errors
    /// What `reader` returns, and [`HashTreeError::BlockSize`] as [`io::ErrorKind::InvalidInput`].
    pub fn of_reader(
        mut reader: impl Read,
        block_size: u32,
        mut progress: impl FnMut(u64),
    ) -> io::Result<Self> {
        check_block_size(block_size)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // At least two blocks, so that the first read tells whether the object is a single one.
        let window = (WINDOW / u64::from(block_size)).max(2) * u64::from(block_size);
        let (mut values, mut size, mut buffer) = (Vec::new(), 0u64, Vec::new());
        loop {
            buffer.clear();
            reader.by_ref().take(window).read_to_end(&mut buffer)?;
            let last = (buffer.len() as u64) < window;
            if size == 0 && buffer.len() as u64 <= u64::from(block_size) {
                progress(buffer.len() as u64);
                let root = blake3::hash(&buffer);
                return Ok(Self { root, size: buffer.len() as u64, block_size, values });
            }
            let hashed: Vec<_> = buffer
                .par_chunks(block_size as usize)
                .enumerate()
                .map(|(i, block)| chaining_value(size + i as u64 * u64::from(block_size), block))
                .collect();
            values.extend(hashed);
            size += buffer.len() as u64;
            progress(size);
            if last {
                let root = merge_root(&values);
                return Ok(Self { root, size, block_size, values });
            }
        }
    }

    /// Hashes an object of `size` bytes. `read(offset, len, out)` appends a block to `out`, and is
    /// called from several threads at once; `progress` is called with the number of hashed bytes.
    /// To cancel, let `read` fail.
    ///
    /// # Errors
    /// The first error of `read`.
    ///
    /// # Panics
    /// If `block_size` is no power of two of at least 1024.
    pub fn of_blocks<E: Send>(
        size: u64,
        block_size: u32,
        read: impl Fn(u64, usize, &mut Vec<u8>) -> Result<(), E> + Sync,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, E> {
        check_block_size(block_size).expect("block size is ours");
        let mut tree = Self { root: blake3::hash(&[]), size, block_size, values: Vec::new() };
        if size <= u64::from(block_size) {
            let mut block = Vec::new();
            read(0, size as usize, &mut block)?;
            tree.root = blake3::hash(&block);
            progress(size);
            return Ok(tree);
        }
        let (count, window) = (tree.block_count(), (WINDOW / u64::from(block_size)).max(2));
        tree.values.reserve_exact(count as usize);
        for first in (0..count).step_by(window as usize) {
            let last = (first + window).min(count);
            let hashed: Result<Vec<_>, E> = (first..last)
                .into_par_iter()
                .map_init(Vec::new, |buffer, i| {
                    buffer.clear();
                    let offset = i * u64::from(block_size);
                    read(offset, tree.block_len(i), buffer)?;
                    Ok(chaining_value(offset, buffer))
                })
                .collect();
            tree.values.extend(hashed?);
            progress((last * u64::from(block_size)).min(size));
        }
        tree.root = merge_root(&tree.values);
        Ok(tree)
    }

    /// The BLAKE3 hash of the object.
    pub fn root(&self) -> Hash {
        self.root
    }

    /// Bytes of the object.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of every block but the last, which may be shorter.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Blocks of the object; an empty object has none.
    pub fn block_count(&self) -> u64 {
        self.size.div_ceil(u64::from(self.block_size))
    }

    /// Bytes of block `i`; 0 beyond the last.
    pub fn block_len(&self, i: u64) -> usize {
        block_len(self.size, self.block_size, i)
    }

    /// Returns true if `bytes` are exactly block `i` of the object.
    pub fn verify_block(&self, i: u64, bytes: &[u8]) -> bool {
        self.check(i).is_some_and(|check| check.holds(bytes))
    }

    /// The check of block `i`; `None` beyond the last.
    pub fn check(&self, i: u64) -> Option<BlockCheck> {
        let len = self.block_len(i);
        match usize::try_from(i).ok().and_then(|i| self.values.get(i)) {
            Some(value) => Some(BlockCheck::with_value(self.size, self.block_size, i, *value)),
            None => (i < self.block_count()).then_some(BlockCheck {
                offset: 0,
                len,
                expected: Expected::Root(self.root),
            }),
        }
    }

    /// The chaining values one after another, 32 bytes a block; empty for an object of at most one
    /// block.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.concat()
    }

    /// Bytes that [`to_bytes`](Self::to_bytes) yields for an object of `size` bytes.
    pub fn list_len(size: u64, block_size: u32) -> u64 {
        match size.div_ceil(u64::from(block_size.max(1))) {
            0 | 1 => 0,
            count => count.saturating_mul(VALUE as u64),
        }
    }

    /// Takes a list of chaining values from anyone: only one that merges to `root` is accepted, so
    /// the list needs no other authentication. A wrong `size` can pass here, yet then the last
    /// block can never be verified.
    ///
    /// # Errors
    /// [`HashTreeError`] if block size, length or merged root are wrong.
    pub fn from_bytes(
        root: Hash,
        size: u64,
        block_size: u32,
        bytes: &[u8],
    ) -> Result<Self, HashTreeError> {
        check_block_size(block_size)?;
        let (expected, actual) = (Self::list_len(size, block_size), bytes.len() as u64);
        if actual != expected {
            return Err(HashTreeError::Length { expected, actual });
        }
        let values: Vec<ChainingValue> = bytes.as_chunks::<VALUE>().0.to_vec();
        let merged = match (size, values.len()) {
            (0, _) => Some(blake3::hash(&[])),
            (_, 0) => None,
            _ => Some(merge_root(&values)),
        };
        if merged.is_some_and(|merged| merged != root) {
            return Err(HashTreeError::Root { expected: root });
        }
        Ok(Self { root, size, block_size, values })
    }
}

/// The check of one block.
#[derive(Debug, Clone, Copy)]
pub struct BlockCheck {
    offset: u64,
    len: usize,
    expected: Expected,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    Value(ChainingValue),
    /// The block is the whole object.
    Root(Hash),
}

impl BlockCheck {
    fn with_value(size: u64, block_size: u32, i: u64, value: ChainingValue) -> Self {
        let (offset, len) = (i * u64::from(block_size), block_len(size, block_size, i));
        Self { offset, len, expected: Expected::Value(value) }
    }

    /// Returns true if `bytes` are exactly the block.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.len
            && match &self.expected {
                Expected::Value(value) => chaining_value(self.offset, bytes) == *value,
                Expected::Root(root) => blake3::hash(bytes) == *root,
            }
    }
}

fn block_len(size: u64, block_size: u32, i: u64) -> usize {
    let start = i.saturating_mul(u64::from(block_size));
    size.saturating_sub(start).min(u64::from(block_size)) as usize
}

fn check_block_size(block_size: u32) -> Result<(), HashTreeError> {
    if block_size.is_power_of_two() && block_size as usize >= blake3::CHUNK_LEN {
        Ok(())
    } else {
        Err(HashTreeError::BlockSize(block_size))
    }
}

/// The chaining value of a block at this offset of its object.
pub(crate) fn chaining_value(offset: u64, block: &[u8]) -> ChainingValue {
    blake3::Hasher::new().set_input_offset(offset).update(block).finalize_non_root()
}

/// The root over at least two values.
fn merge_root(values: &[ChainingValue]) -> Hash {
    let (left, right) = split(values);
    hazmat::merge_subtrees_root(&merge(left), &merge(right), Mode::Hash)
}

fn merge(values: &[ChainingValue]) -> ChainingValue {
    match values {
        [value] => *value,
        _ => {
            let (left, right) = split(values);
            hazmat::merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

/// The left subtree of a BLAKE3 tree is the largest complete one that leaves something to the
/// right.
fn split(values: &[ChainingValue]) -> (&[ChainingValue], &[ChainingValue]) {
    values.split_at(values.len().next_power_of_two() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontis_base::Stream;

    const SEED: u64 = 0x6861_7368;

    fn content(len: usize) -> Vec<u8> {
        println!("seed {SEED:#x}");
        let mut bytes = vec![0; len];
        Stream::new(SEED, "hash_tree").fill(&mut bytes);
        bytes
    }

    fn sizes(block: usize) -> Vec<usize> {
        let mut sizes = vec![0, 1, 1023, 1024, 1025];
        for blocks in 1..=9 {
            sizes.extend([blocks * block - 1, blocks * block, blocks * block + 1]);
        }
        sizes
    }

    fn tree(bytes: &[u8], block: u32) -> HashTree {
        HashTree::of_reader(bytes, block, |_| ()).unwrap()
    }

    #[test]
    fn the_root_is_the_plain_hash_of_the_object() {
        for block in [1024, 4096, 16384] {
            for size in sizes(block) {
                let bytes = content(size);
                let tree = tree(&bytes, block as u32);
                assert_eq!(tree.root(), blake3::hash(&bytes), "{size} in blocks of {block}");
                assert_eq!(tree.size(), size as u64);
            }
        }
    }

    #[test]
    fn reading_blocks_in_parallel_gives_the_same_tree_as_reading_in_order() {
        for size in sizes(2048) {
            let bytes = content(size);
            let read = |offset: u64, len, out: &mut Vec<u8>| {
                out.extend_from_slice(&bytes[offset as usize..][..len]);
                Ok::<_, ()>(())
            };
            let mut told = 0;
            let parallel =
                HashTree::of_blocks(size as u64, 2048, read, |bytes| told = bytes).unwrap();
            assert_eq!(parallel, tree(&bytes, 2048));
            assert_eq!(told, size as u64);
        }
    }

    #[test]
    fn an_object_beyond_one_window_is_hashed_the_same() {
        let bytes = content(WINDOW as usize + 12_345);
        let mut told = Vec::new();
        let tree = HashTree::of_reader(&bytes[..], 1 << 20, |bytes| told.push(bytes)).unwrap();
        assert_eq!(tree.root(), blake3::hash(&bytes));
        assert_eq!(told, [WINDOW, WINDOW + 12_345]);
    }

    #[test]
    fn a_list_travels_and_checks_every_block() {
        for size in sizes(4096) {
            let bytes = content(size);
            let sent = tree(&bytes, 4096);
            let list = sent.to_bytes();
            let got = HashTree::from_bytes(sent.root(), size as u64, 4096, &list).unwrap();
            assert_eq!(got, sent);
            assert_eq!(got.block_count(), bytes.chunks(4096).count() as u64);
            for (i, block) in bytes.chunks(4096).enumerate() {
                assert_eq!(got.block_len(i as u64), block.len());
                assert!(got.verify_block(i as u64, block));
                let mut forged = block.to_vec();
                forged[block.len() / 2] ^= 1;
                assert!(!got.verify_block(i as u64, &forged));
                assert!(!got.verify_block(i as u64, &block[1..]));
                assert!(!got.verify_block(i as u64 + 1, block), "a block has its place");
            }
        }
    }

    #[test]
    fn a_list_of_another_object_is_refused() {
        let bytes = content(5 * 1024);
        let tree = tree(&bytes, 1024);
        let list = tree.to_bytes();
        for i in 0..list.len() {
            let mut forged = list.clone();
            forged[i] ^= 0x80;
            let refused = HashTree::from_bytes(tree.root(), tree.size(), 1024, &forged);
            assert_eq!(refused, Err(HashTreeError::Root { expected: tree.root() }));
        }
        let mut swapped = list.clone();
        swapped[..64].rotate_left(32);
        assert!(HashTree::from_bytes(tree.root(), tree.size(), 1024, &swapped).is_err());
    }

    #[test]
    fn a_list_of_the_wrong_length_is_refused_before_it_is_hashed() {
        let tree = tree(&content(5 * 1024), 1024);
        let list = tree.to_bytes();
        for (size, bytes) in [
            (tree.size(), &list[1..]),
            (tree.size() + 1, &list[..]),
            (u64::MAX, &list[..]),
            (1024, &list[..]),
            (0, &list[..32]),
        ] {
            let refused = HashTree::from_bytes(tree.root(), size, 1024, bytes);
            assert!(matches!(refused, Err(HashTreeError::Length { .. })), "{size}");
        }
    }

    #[test]
    fn an_empty_object_has_only_one_possible_root() {
        let empty = blake3::hash(&[]);
        assert_eq!(HashTree::from_bytes(empty, 0, 1024, &[]).unwrap().block_count(), 0);
        let other = blake3::hash(b"x");
        assert!(HashTree::from_bytes(other, 0, 1024, &[]).is_err());
    }

    #[test]
    fn a_block_size_that_is_no_subtree_is_refused() {
        for block in [0, 1, 512, 1023, 1025, 3072, u32::MAX] {
            let refused = HashTree::from_bytes(blake3::hash(b""), 0, block, &[]);
            assert_eq!(refused, Err(HashTreeError::BlockSize(block)));
            assert!(HashTree::of_reader(&b""[..], block, |_| ()).is_err());
        }
    }

    #[test]
    fn objects_up_to_one_mebibyte_are_one_block() {
        let cases = [
            (0, 1024),
            (1, 1024),
            (1024, 1024),
            (1025, 2048),
            ((1 << 20) - 1, 1 << 20),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, 1 << 20),
            (u64::MAX, 1 << 20),
        ];
        for (size, block) in cases {
            assert_eq!(block_size_for(size), block, "{size}");
        }
    }
}
