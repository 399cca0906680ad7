//! The reason of a failed write.

use std::io;
use std::path::{Path, PathBuf};

use crate::printable::{Printable, printable};

/// The reason why an object cannot be written at its destination.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The destination is taken.
    #[error("{} exists: remove it, or overwrite it with --force", printable(.path))]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// Overwriting would turn a folder into a file or the reverse.
    #[error(
        "{} is a {} and would become a {}: remove it first", printable(.path),
        if *.folder { "folder" } else { "file" }, if *.folder { "file" } else { "folder" }
    )]
    Kind {
        /// The destination.
        path: PathBuf,
        /// True if it is a folder now.
        folder: bool,
    },
    /// Something took the destination during the transfer; the complete object stays under its
    /// partial name.
    #[error(
        "{} appeared during the transfer: move it away, then rename {} to it",
        printable(.path), printable(.partial)
    )]
    Appeared {
        /// The destination.
        path: PathBuf,
        /// The path of the object.
        partial: PathBuf,
    },
    /// The folder that should receive the object is not there.
    #[error("{} does not exist: create it first", printable(.path))]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The destination has no file name, or one that this system cannot have.
    #[error("{} is no possible file name here: choose another destination", printable(.path))]
    Name {
        /// The destination, or a path of the object below it.
        path: PathBuf,
    },
    /// A name that unfinished transfers have.
    #[error("{} has a name of unfinished transfers: rename it at the sender", printable(.path))]
    Reserved {
        /// The destination, or a path of the object below it.
        path: PathBuf,
    },
    /// Another transfer writes there.
    #[error("{} is being written by another transfer: wait for it or stop it", printable(.path))]
    Busy {
        /// The partial name.
        path: PathBuf,
    },
    /// The object will not fit.
    #[error(
        "{} needs {needed} bytes and only {available} are free: make room", printable(.path)
    )]
    Space {
        /// The destination.
        path: PathBuf,
        /// Bytes of the object.
        needed: u64,
        /// Bytes that this user may still write.
        available: u64,
    },
    /// The disk, or the user's quota, is full.
    #[error("no space left for {}: make room and try again", printable(.path))]
    Full {
        /// The path that was being written.
        path: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{} is on a read-only file system: choose another destination", printable(.path))]
    ReadOnly {
        /// The path that was being written.
        path: PathBuf,
    },
    /// The system does not let this user write there.
    #[error("no permission to write {}: choose another destination", printable(.path))]
    Denied {
        /// The path that was being written.
        path: PathBuf,
    },
    /// Another failure of the system.
    #[error("cannot write {}: {source}", printable(.path))]
    Io {
        /// The path that was being written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A block lies beyond the object's end.
    #[error("{len} bytes at {offset} are beyond the object's {size}: the caller is broken")]
    Range {
        /// Offset of the block.
        offset: u64,
        /// Bytes of the block.
        len: usize,
        /// Bytes of the object.
        size: u64,
    },
    /// Blocks are missing, so the object is not given its name.
    #[error("{} is incomplete, {missing} bytes are missing: fetch it again", printable(.path))]
    Incomplete {
        /// The destination.
        path: PathBuf,
        /// Bytes that were never written.
        missing: u64,
    },
    /// Nothing of the folder is wanted.
    #[error("all of {} is excluded: use fewer patterns", printable(.path))]
    AllExcluded {
        /// The destination.
        path: PathBuf,
    },
    /// Standard output carries one file.
    #[error(
        "'{}' is a folder and cannot go to standard output: name a destination", Printable(.name)
    )]
    FolderToStream {
        /// The object's name.
        name: String,
    },
    /// Standard output takes blocks in order only.
    #[error("block at {actual} came before {expected}: the caller is broken")]
    Order {
        /// Offset of the next byte to write.
        expected: u64,
        /// Offset of the block.
        actual: u64,
    },
}

impl SinkError {
    /// The error for `source`, which happened while writing `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Io { path, source },
        }
    }
}
