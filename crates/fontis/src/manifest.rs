//! The contents of an object: one file, or a folder with its entries.
//!
//! The object's content is the content of its files, one after another in the manifest's order;
//! that order is fixed (ascending by path components), so that one folder has one manifest. A
//! manifest that exists is valid: [`Manifest::new`] and [`Manifest::decode`] refuse everything
//! else, because what follows writes these paths.

mod error;
mod extra;
mod limits;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name;
pub use error::ManifestError;
pub use extra::{Attribute, Extra, MAX_ATTRIBUTE, MAX_ATTRIBUTE_NAME, MAX_ATTRIBUTES};
use limits::VERSION;
pub use limits::{MAX_BYTES, MAX_COMPONENT, MAX_ENTRIES, MAX_HOLES, MAX_PATH, MAX_SECONDS};

const PERMISSIONS: u32 = 0o777;

/// Name, contents and size of an object. Clones share the contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    name: String,
    entries: Arc<Vec<Entry>>,
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

/// One file, directory or symlink of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Components below the root, joined by `/`; empty for the root itself. Bytes of names that are
    /// no UTF-8 are escaped.
    pub path: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// Permission bits, at most `0o777`.
    pub mode: u32,
    /// The time of the last change of the content.
    pub modified: Modified,
    /// Owner and extended attributes, if they travel.
    pub extra: Option<Box<Extra>>,
}

/// The kind of an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Bytes, those of holes included.
        size: u64,
        /// The ranges that are no part of the object: they read as zeros, and the file system
        /// stores nothing for them. Ascending, with bytes between them.
        holes: Vec<Hole>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// As it is written in the link, with the same escapes as paths. It may be absolute, and
        /// may point out of the object: see [`Manifest::is_outward`].
        target: String,
    },
}

impl EntryKind {
    /// A regular file of `size` bytes without holes.
    pub const fn file(size: u64) -> Self {
        Self::File { size, holes: Vec::new() }
    }
}

/// A range of a file that reads as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its last byte.
    pub end: u64,
}

/// A time since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modified {
    /// Whole seconds, rounded down; at most [`MAX_SECONDS`] in either direction.
    pub seconds: i64,
    /// Nanoseconds on top, below 1 000 000 000.
    pub nanos: u32,
}

/// The head of an encoded manifest, after the version byte.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    name: &'a str,
    size: u64,
    omitted: Omitted,
    entries: u64,
}

impl Manifest {
    /// An object called `name` with `entries` in ascending order of their path components. The
    /// first entry is the root, with an empty path: a file, alone, or a directory.
    ///
    /// # Errors
    /// [`ManifestError`]: the first rule that something breaks.
    pub fn new(name: &str, entries: Vec<Entry>) -> Result<Self, ManifestError> {
        if check_component(name).is_err() {
            return Err(ManifestError::Name(name.to_owned()));
        }
        let Validated { size, length, outward } = validate(&entries)?;
        Ok(Self {
            name: name.to_owned(),
            entries: Arc::new(entries),
            size,
            length,
            outward,
            omitted: Omitted::default(),
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

    /// All entries; the first is the root.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The first entry: the file itself, or the folder.
    pub fn root(&self) -> &Entry {
        &self.entries[0]
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
        let Self { size, omitted, .. } = *self;
        let head = Head { name: &self.name, size, omitted, entries: self.entries.len() as u64 };
        let infallible = "a growing buffer takes every value";
        let mut bytes = postcard::to_extend(&head, vec![VERSION]).expect(infallible);
        for entry in self.entries() {
            bytes = postcard::to_extend(entry, bytes).expect(infallible);
        }
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
        let mut entries = Vec::new();
        for _ in 0..head.entries {
            entries.push(take(&mut rest).ok_or_else(|| damaged(rest))?);
        }
        if !rest.is_empty() {
            return Err(damaged(rest));
        }
        let manifest = Self::new(head.name, entries)?;
        if manifest.size != head.size {
            return Err(ManifestError::Size { declared: head.size, actual: manifest.size });
        }
        Ok(manifest.with_omitted(head.omitted))
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

/// What the check of all rules finds out.
#[derive(Default)]
struct Validated {
    size: u64,
    length: u64,
    outward: Vec<usize>,
}

/// Checks every rule.
fn validate(entries: &[Entry]) -> Result<Validated, ManifestError> {
    if entries.len() > MAX_ENTRIES {
        return Err(ManifestError::TooManyEntries(entries.len() as u64));
    }
    match entries.first() {
        Some(root) if !root.path.is_empty() => return Err(ManifestError::NoRoot),
        None => return Err(ManifestError::NoRoot),
        Some(Entry { kind: EntryKind::Symlink { .. }, .. }) => {
            return Err(ManifestError::RootIsSymlink);
        }
        Some(_) => {}
    }
    for entry in &entries[1..] {
        check_path(&entry.path)?;
    }
    check_order(entries)?;
    // The entry before and those that it is in.
    let mut above: Vec<&Entry> = Vec::new();
    let mut validated = Validated::default();
    let mut holes = 0;
    for (i, entry) in entries.iter().enumerate() {
        let path = || entry.path.clone();
        if entry.mode > PERMISSIONS {
            return Err(ManifestError::Mode { path: path(), mode: entry.mode });
        }
        let Modified { seconds, nanos } = entry.modified;
        if seconds.unsigned_abs() > MAX_SECONDS || nanos >= 1_000_000_000 {
            return Err(ManifestError::Time(path()));
        }
        if let Some(extra) = &entry.extra {
            let is_link = matches!(entry.kind, EntryKind::Symlink { .. });
            if !extra.is_possible() || is_link && !extra.attributes.is_empty() {
                return Err(ManifestError::Extra(path()));
            }
        }
        if !entry.path.is_empty() {
            let parent = parent_of(&entry.path);
            while above.last().is_some_and(|last| !is_at_or_beneath(parent, &last.path)) {
                above.pop();
            }
            match above.last().filter(|last| last.path == parent) {
                None => return Err(ManifestError::NoParent(path())),
                Some(Entry { kind: EntryKind::Directory, .. }) => {}
                Some(_) => return Err(ManifestError::BeneathFile(path())),
            }
        }
        above.push(entry);
        match &entry.kind {
            EntryKind::File { size, holes: own } => {
                holes += own.len();
                if holes > MAX_HOLES {
                    return Err(ManifestError::TooManyHoles(path()));
                }
                let empty = check_holes(*size, own).ok_or_else(|| ManifestError::Holes(path()))?;
                let length = validated.length.checked_add(*size);
                validated.length = length.ok_or_else(|| ManifestError::Overflow(path()))?;
                // It is less than the length.
                validated.size += size - empty;
            }
            EntryKind::Directory => {}
            EntryKind::Symlink { target } => {
                if target.is_empty() || !is_path(target) {
                    return Err(ManifestError::Target(path()));
                }
                if points_outwards(&entry.path, target, entries) {
                    validated.outward.push(i);
                }
            }
        }
    }
    Ok(validated)
}

/// The bytes in the holes of a file of `size` bytes; `None` if they are not ascending, overlap,
/// touch each other or lie beyond its end.
fn check_holes(size: u64, holes: &[Hole]) -> Option<u64> {
    let (mut end, mut empty) = (None, 0);
    for hole in holes {
        if hole.end <= hole.start || hole.end > size || end.is_some_and(|end| hole.start <= end) {
            return None;
        }
        end = Some(hole.end);
        empty += hole.end - hole.start;
    }
    // No system has longer files, and one that has bytes for all of its size needs no such check.
    (holes.is_empty() || i64::try_from(size).is_ok()).then_some(empty)
}

/// Checks one file name and returns the error that a path with it deserves.
fn check_component(component: &str) -> Result<(), fn(String) -> ManifestError> {
    match component {
        "" => Err(ManifestError::EmptyComponent),
        "." | ".." => Err(ManifestError::DotComponent),
        _ if component.contains('/') => Err(ManifestError::Absolute),
        _ if component.contains('\0') || !name::is_canonical(component) => {
            Err(ManifestError::Impossible)
        }
        _ if name::to_bytes(component).len() > MAX_COMPONENT => Err(ManifestError::LongComponent),
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<(), ManifestError> {
    if path.starts_with('/') {
        return Err(ManifestError::Absolute(path.to_owned()));
    }
    if name::to_bytes(path).len() > MAX_PATH {
        return Err(ManifestError::LongPath(path.to_owned()));
    }
    path.split('/').try_for_each(check_component).map_err(|error| error(path.to_owned()))
}

/// Checks that paths ascend, which also finds doubles.
fn check_order(entries: &[Entry]) -> Result<(), ManifestError> {
    for pair in entries.windows(2) {
        match pair[0].path.split('/').cmp(pair[1].path.split('/')) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => {
                return Err(ManifestError::Duplicate(pair[1].path.clone()));
            }
            std::cmp::Ordering::Greater => {
                return Err(ManifestError::OutOfOrder(pair[1].path.clone()));
            }
        }
    }
    Ok(())
}

/// Returns true if `path` is `other`, or lies in the folder `other`.
fn is_at_or_beneath(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other);
    other.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if there is a folder at `path`; entries ascend.
fn is_folder_at(entries: &[Entry], path: &str) -> bool {
    let found = entries.binary_search_by(|entry| entry.path.split('/').cmp(path.split('/')));
    found.is_ok_and(|at| entries[at].kind == EntryKind::Directory)
}

/// Returns true if this can be the target of a link on some system.
fn is_path(target: &str) -> bool {
    !target.contains('\0') && name::is_canonical(target) && name::to_bytes(target).len() <= MAX_PATH
}

/// Returns true unless a symlink stays within the object, whatever its other symlinks are.
///
/// Counting `..` against depth is sound only as long as the walk passes through real directories:
/// after a symlink, or a name that is not there, the physical depth is unknown, so `..` counts as
/// outwards from there on.
fn points_outwards(link: &str, target: &str, entries: &[Entry]) -> bool {
    let (mut place, mut real) = (parent_of(link).to_owned(), true);
    for component in target.split('/') {
        match component {
            "" | "." => {}
            ".." if !real || place.is_empty() => return true,
            ".." => place.truncate(parent_of(&place).len()),
            _ => {
                if !place.is_empty() {
                    place.push('/');
                }
                place.push_str(component);
                real = real && is_folder_at(entries, &place);
            }
        }
    }
    // On Windows a target is absolute in other ways, too.
    target.starts_with(['/', '\\']) || target.contains(':') && cfg!(windows)
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}
