//! The contents of an object: one file, or a folder with its entries.
//!
//! The object's content is the content of its files, one after another in the manifest's order;
//! that order is fixed (ascending by path components), so that one folder has one manifest. A
//! manifest that exists is valid: [`Manifest::new`] and [`Manifest::decode`] refuse everything
//! else, because what follows writes these paths.

pub(crate) mod check;
mod entries;
mod entry;
mod error;
mod extra;
mod limits;
mod outward;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use check::{Check, check_component};
use entries::Entries;
pub(crate) use entries::{Collected, reserve};
pub use entry::{Entry, EntryKind, Hole, Modified};
pub use error::ManifestError;
pub use extra::{Attribute, Extra, MAX_ATTRIBUTE, MAX_ATTRIBUTE_NAME, MAX_ATTRIBUTES};
use limits::VERSION;
pub use limits::{MAX_BYTES, MAX_COMPONENT, MAX_ENTRIES, MAX_HOLES, MAX_PATH, MAX_SECONDS};

/// Name, contents and size of an object. Clones share the contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    name: String,
    entries: Arc<Entries>,
    root: Arc<Entry>,
    size: u64,
    length: u64,
    /// The links that point out of the object, by their entries.
    outward: Vec<usize>,
    omitted: Omitted,
}

/// The numbers of entries of a folder that its sender left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Sockets, pipes and devices.
    pub special: u64,
    /// Files and folders that the sender may not read; a folder counts once.
    pub unreadable: u64,
}

/// The head of an encoded manifest, after the version byte.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    name: &'a str,
    size: u64,
    omitted: Omitted,
    entries: u64,
}

impl Head<'_> {
    /// The version, and the head.
    fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION]).expect("a growing buffer takes every value")
    }
}

impl Manifest {
    /// An object called `name` with `entries` in ascending order of their path components. The
    /// first entry is the root, with an empty path: a file, alone, or a directory.
    ///
    /// # Errors
    /// [`ManifestError`]: the first rule that something breaks.
    pub fn new(name: &str, entries: Vec<Entry>) -> Result<Self, ManifestError> {
        let mut collected = Collected::default();
        entries.iter().try_for_each(|entry| collected.push(entry))?;
        Self::of(name, collected, Omitted::default())
    }

    /// The same for entries that were collected, and of which the sender left something out.
    pub(crate) fn of(
        name: &str,
        entries: Collected,
        omitted: Omitted,
    ) -> Result<Self, ManifestError> {
        if check_component(name).is_err() {
            return Err(ManifestError::Name(name.to_owned()));
        }
        let head = Head { name, size: entries.size(), omitted, entries: entries.len() as u64 };
        let (entries, check) = entries.finish(&head.encode());
        Self::checked(name, entries, check, omitted)
    }

    /// The object of entries that `check` has seen.
    fn checked(
        name: &str,
        entries: Entries,
        check: Check,
        omitted: Omitted,
    ) -> Result<Self, ManifestError> {
        if check_component(name).is_err() {
            return Err(ManifestError::Name(name.to_owned()));
        }
        if entries.len() == 0 {
            return Err(ManifestError::NoRoot);
        }
        let Check { size, length, links, .. } = check;
        let outward = outward::among(links, &entries);
        Ok(Self {
            name: name.to_owned(),
            root: Arc::new(entries.get(0)),
            entries: Arc::new(entries),
            size,
            length,
            outward,
            omitted,
        })
    }

    /// The same object, of which the sender left this out.
    pub fn with_omitted(self, omitted: Omitted) -> Self {
        Self { omitted, ..self }
    }

    /// What the sender left out.
    pub fn omitted(&self) -> Omitted {
        self.omitted
    }

    /// Returns true if this entry is a symbolic link that may lead out of the object: an absolute
    /// one, or one that climbs too far.
    pub fn is_outward(&self, entry: usize) -> bool {
        self.outward.binary_search(&entry).is_ok()
    }

    /// The same object under another name.
    ///
    /// # Errors
    /// [`ManifestError::Name`] if `name` is not one plain path component.
    pub fn with_name(self, name: &str) -> Result<Self, ManifestError> {
        match check_component(name) {
            Ok(()) => Ok(Self { name: name.to_owned(), ..self }),
            Err(_) => Err(ManifestError::Name(name.to_owned())),
        }
    }

    /// The sender's name for the object, one path component. A receiver that asked for a certain
    /// name should not let the sender choose another.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All entries; the first is the root. They are kept as they travel, and read one by one.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> + DoubleEndedIterator + '_ {
        (0..self.entries.len()).map(|i| self.entries.get(i))
    }

    /// The entry of this index.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn entry(&self, index: usize) -> Entry {
        self.entries.get(index)
    }

    /// The path of the entry of this index, which costs less than all of the entry.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn path(&self, index: usize) -> &str {
        self.entries.path(index)
    }

    /// The first entry: the file itself, or the folder.
    pub fn root(&self) -> &Entry {
        &self.root
    }

    /// Returns true if the object is a folder, false if it is a single file.
    pub fn is_folder(&self) -> bool {
        self.root().kind == EntryKind::Directory
    }

    /// Bytes of the object: the sum of its files, without their holes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The sum of the files' sizes, with their holes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Version byte, then postcard: name, size, omitted entries and number of entries, then the
    /// entries.
    ///
    /// # Errors
    /// [`ManifestError::TooLong`], because nobody would accept it.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestError> {
        self.encode_shared().map(Vec::from)
    }

    /// The same; no copy is made if name and omitted entries are those that it was made with.
    pub(crate) fn encode_shared(&self) -> Result<Bytes, ManifestError> {
        let Self { size, omitted, .. } = *self;
        let head = Head { name: &self.name, size, omitted, entries: self.entries.len() as u64 };
        let head = head.encode();
        let bytes = match self.entries.whole(&head) {
            Ok(bytes) => bytes,
            Err(entries) => [&head, entries].concat().into(),
        };
        if bytes.len() > MAX_BYTES { Err(ManifestError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// Reads what [`encode`](Self::encode) wrote, from anyone. Memory stays in proportion to
    /// `bytes`.
    ///
    /// # Errors
    /// [`ManifestError`]: too long, damaged, or the first rule that something breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::TooLong(bytes.len()));
        }
        Self::decode_shared(&Bytes::copy_from_slice(bytes))
    }

    /// The same; the manifest shares `bytes`, and needs little beside them.
    pub(crate) fn decode_shared(bytes: &Bytes) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::TooLong(bytes.len()));
        }
        let damaged = |rest: &[u8]| ManifestError::Malformed(bytes.len() - rest.len());
        let mut rest = match bytes.split_first() {
            Some((&VERSION, rest)) => rest,
            Some((&version, _)) => return Err(ManifestError::Version(version)),
            None => return Err(damaged(bytes)),
        };
        let head: Head<'_> = take(&mut rest).ok_or_else(|| damaged(rest))?;
        if head.entries > MAX_ENTRIES as u64 {
            return Err(ManifestError::TooManyEntries(head.entries));
        }
        let before = bytes.len() - rest.len();
        let (entries, check) = Entries::read(bytes, before, head.entries, damaged)?;
        let manifest = Self::checked(head.name, entries, check, head.omitted)?;
        if manifest.size != head.size {
            return Err(ManifestError::Size { declared: head.size, actual: manifest.size });
        }
        Ok(manifest)
    }
}

/// The name in an encoded manifest, whose entries are not read; `None` if it is damaged.
pub(crate) fn name_in(bytes: &[u8]) -> Option<&str> {
    let mut rest = bytes.strip_prefix(&[VERSION])?;
    take::<Head<'_>>(&mut rest).map(|head| head.name)
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Option<T> {
    let (value, after) = postcard::take_from_bytes(rest).ok()?;
    *rest = after;
    Some(value)
}
