//! The rules that a manifest can break.

use super::limits::{MAX_BYTES, MAX_COMPONENT, MAX_ENTRIES, MAX_HOLES, MAX_PATH, VERSION};
use crate::printable::Printable;

/// The reason why a manifest was refused. Paths are relative to the object's root, escaped for
/// terminals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are paths, names and counts; the messages say which")]
pub enum ManifestError {
    #[error("manifest has version {0}, this Fontis reads {VERSION}: update the older side")]
    Version(u8),
    #[error("manifest is damaged after {0} bytes: fetch it again")]
    Malformed(usize),
    #[error("manifest has {0} bytes, the limit is {MAX_BYTES}: send the folder in parts")]
    TooLong(usize),
    #[error("object has {0} entries, the limit is {MAX_ENTRIES}: send the folder in parts")]
    TooManyEntries(u64),
    #[error("object's name '{}' is not a plain file name: rename it", Printable(.0))]
    Name(String),
    #[error("object has no root entry: the sender's manifest is broken")]
    NoRoot,
    #[error("the object's root is a symlink: send what it points to")]
    RootIsSymlink,
    #[error("absolute path '{}' in the object: only relative ones are accepted", Printable(.0))]
    Absolute(String),
    #[error("path '{}' has an empty component: the sender's manifest is broken", Printable(.0))]
    EmptyComponent(String),
    #[error("path '{}' has a '.' or '..' component: the sender's manifest is broken", Printable(.0))]
    DotComponent(String),
    #[error("path '{}' is no name that a file can have: the sender's manifest is broken", Printable(.0))]
    Impossible(String),
    #[error("path '{}' has a component over {MAX_COMPONENT} bytes: rename it", Printable(.0))]
    LongComponent(String),
    #[error("path '{}' has over {MAX_PATH} bytes: shorten it", Printable(.0))]
    LongPath(String),
    #[error("path '{}' is there twice: the sender's manifest is broken", Printable(.0))]
    Duplicate(String),
    #[error("path '{}' is not in ascending order: the sender's manifest is broken", Printable(.0))]
    OutOfOrder(String),
    #[error("path '{}' has no directory above it: the sender's manifest is broken", Printable(.0))]
    NoParent(String),
    #[error("path '{}' lies beneath a file or symlink: the sender's manifest is broken", Printable(.0))]
    BeneathFile(String),
    #[error("'{}' has mode {mode:o}, only permission bits up to 777 are accepted", Printable(.path))]
    Mode { path: String, mode: u32 },
    #[error("'{}' has an impossible modification time: touch it", Printable(.0))]
    Time(String),
    #[error("symlink '{}' has an empty or overlong target: the sender's manifest is broken", Printable(.0))]
    Target(String),
    #[error("'{}' has an impossible owner or attribute: the sender's manifest is broken", Printable(.0))]
    Extra(String),
    #[error("'{}' has impossible holes: the sender's manifest is broken", Printable(.0))]
    Holes(String),
    #[error("the files up to '{}' have over {MAX_HOLES} holes: send the folder in parts", Printable(.0))]
    TooManyHoles(String),
    #[error("the files up to '{}' have more bytes than can be counted", Printable(.0))]
    Overflow(String),
    #[error("manifest declares {declared} bytes, its files have {actual}: the sender is broken")]
    Size { declared: u64, actual: u64 },
}
