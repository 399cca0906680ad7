//! The entries of a manifest as they travel: one run of bytes, however many there are.

use bytes::Bytes;
use serde::Deserialize;

use super::check::Check;
use super::entry::{Entry, EntryKind};
use super::error::ManifestError;
use super::limits::{MAX_BYTES, MAX_ENTRIES};

/// Entries one after another, in postcard. A million with paths of 20 bytes takes 40 MB, a third of
/// what it would take as values of [`Entry`].
#[derive(Debug, Clone)]
pub(super) struct Entries {
    /// A whole manifest: the entries are its end.
    bytes: Bytes,
    /// The length of what is before them.
    head: usize,
    /// The offset of each entry behind that.
    starts: Vec<u32>,
}

/// Entries that are being collected, and checked.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Room for a head, and the entries.
    bytes: Vec<u8>,
    starts: Vec<u32>,
    check: Check,
}

/// Bytes for version and head at most: the name has fewer than 1024 with its escapes.
const HEAD: usize = 2048;
/// Bytes of entries that are many. Then room for all that there can be is reserved: it takes no
/// memory before it is written to, whereas a buffer that grows is twice there while it is moved.
const MANY: usize = 1 << 20;

/// Entries that are many.
const MANY_ENTRIES: usize = 1 << 14;

/// Makes room for another value of which there is one for each entry. For many it is room for all
/// that there can be, as with their bytes.
pub(crate) fn reserve<T>(values: &mut Vec<T>) {
    if values.len() == MANY_ENTRIES {
        values.reserve_exact(MAX_ENTRIES - MANY_ENTRIES);
    }
}

/// The beginning of an [`Entry`].
#[derive(Deserialize)]
struct Beginning<'a> {
    path: &'a str,
}

impl Collected {
    /// Appends an entry.
    ///
    /// # Errors
    /// [`ManifestError`] if there are too many, or too many bytes.
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), ManifestError> {
        let count = self.starts.len() + 1;
        if count > MAX_ENTRIES {
            return Err(ManifestError::TooManyEntries(count as u64));
        }
        self.check.entry(entry)?;
        let start = self.bytes.len() - HEAD;
        reserve(&mut self.starts);
        self.starts.push(u32::try_from(start).map_err(|_| ManifestError::TooLong(start))?);
        let mut bytes = std::mem::take(&mut self.bytes);
        if start > MANY && bytes.capacity() < HEAD + MAX_BYTES {
            bytes.reserve_exact(MAX_BYTES - start);
        }
        self.bytes = postcard::to_extend(entry, bytes).expect("a growing buffer takes every value");
        let length = self.bytes.len() - HEAD;
        if length > MAX_BYTES { Err(ManifestError::TooLong(length)) } else { Ok(()) }
    }

    /// Bytes of the files without their holes.
    pub(super) fn size(&self) -> u64 {
        self.check.size
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// All of them behind `head`, and what was found out.
    ///
    /// # Panics
    /// If the head is longer than any.
    pub(super) fn finish(self, head: &[u8]) -> (Entries, Check) {
        let Self { mut bytes, starts, check } = self;
        let begin = HEAD.checked_sub(head.len()).expect("a head has a short name");
        bytes[begin..HEAD].copy_from_slice(head);
        (Entries { bytes: Bytes::from(bytes).slice(begin..), head: head.len(), starts }, check)
    }
}

impl Default for Collected {
    fn default() -> Self {
        Self { bytes: vec![0; HEAD], starts: Vec::new(), check: Check::default() }
    }
}

impl Entries {
    /// Reads and checks `count` entries, which are all of `bytes` behind its first `head`.
    ///
    /// # Errors
    /// That of the check, or of `damaged`, which takes the bytes that are left.
    pub(super) fn read(
        bytes: &Bytes,
        head: usize,
        count: u64,
        damaged: impl Fn(&[u8]) -> ManifestError,
    ) -> Result<(Self, Check), ManifestError> {
        let (mut starts, mut check) = (Vec::new(), Check::default());
        let all = &bytes[head..];
        let mut rest = all;
        for _ in 0..count {
            let start = all.len() - rest.len();
            reserve(&mut starts);
            starts.push(u32::try_from(start).map_err(|_| damaged(rest))?);
            let (entry, after) = postcard::take_from_bytes(rest).map_err(|_| damaged(rest))?;
            check.entry(&entry)?;
            rest = after;
        }
        if !rest.is_empty() {
            return Err(damaged(rest));
        }
        Ok((Self { bytes: bytes.clone(), head, starts }, check))
    }

    /// The manifest that these are the entries of, if its head is this; its entries alone
    /// otherwise.
    pub(super) fn whole(&self, head: &[u8]) -> Result<Bytes, &[u8]> {
        let (before, entries) = self.bytes.split_at(self.head);
        if before == head { Ok(self.bytes.clone()) } else { Err(entries) }
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The entry of this index.
    pub(super) fn get(&self, index: usize) -> Entry {
        self.part(index)
    }

    /// The path of the entry of this index.
    pub(super) fn path(&self, index: usize) -> &str {
        self.part::<Beginning<'_>>(index).path
    }

    /// Returns true if there is a folder at `path`; entries ascend.
    pub(super) fn is_folder_at(&self, path: &str) -> bool {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.path(middle).split('/').cmp(path.split('/')) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return self.get(middle).kind == EntryKind::Directory;
                }
            }
        }
        false
    }

    fn part<'a, T: Deserialize<'a>>(&'a self, index: usize) -> T {
        let bytes = &self.bytes[self.head + self.starts[index] as usize..];
        postcard::take_from_bytes(bytes).expect("an entry was written or read here").0
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        // A number can be written in several ways.
        let all = |entries: &Self| (0..entries.len()).map(|i| entries.get(i)).collect::<Vec<_>>();
        let is_same = self.bytes[self.head..] == other.bytes[other.head..];
        is_same || self.len() == other.len() && all(self) == all(other)
    }
}

impl Eq for Entries {}
