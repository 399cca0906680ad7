//! The entries of an object, as values.

use serde::{Deserialize, Serialize};

use super::extra::Extra;

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
        /// may point out of the object: see [`Manifest::is_outward`](super::Manifest::is_outward).
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
    /// Whole seconds, rounded down; in either direction at most
    /// [`MAX_SECONDS`](super::MAX_SECONDS).
    pub seconds: i64,
    /// Nanoseconds on top, below 1 000 000 000.
    pub nanos: u32,
}
