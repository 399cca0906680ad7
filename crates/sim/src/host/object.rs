//! Objects with bytes that any host can compute.

use bytes::Bytes;
use fontis_base::Stream;

/// An object whose bytes follow from a seed, so that either end can make any block of it and
/// compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternObject {
    /// Decides the bytes.
    pub seed: u64,
}

impl PatternObject {
    /// The first `len` bytes of block `index`.
    pub fn block(self, index: u32, len: u32) -> Bytes {
        let mut bytes = vec![0; len as usize];
        Stream::new(self.seed, &format!("block {index}")).fill(&mut bytes);
        bytes.into()
    }
}
