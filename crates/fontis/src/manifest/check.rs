//! The rules of a manifest, checked entry by entry.

use super::entry::{Entry, EntryKind, Hole, Modified};
use super::error::ManifestError;
use super::limits::{MAX_COMPONENT, MAX_HOLES, MAX_PATH, MAX_SECONDS};
use crate::name;

const PERMISSIONS: u32 = 0o777;

/// The check of entries that come in their order, and what it finds out.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// Bytes of the files without their holes, and with them.
    pub(super) size: u64,
    pub(super) length: u64,
    /// The entry before and those that it is in.
    above: Vec<Above>,
    entries: usize,
    holes: usize,
    /// The symbolic links, by their entries.
    pub(super) links: Vec<usize>,
}

#[derive(Debug)]
struct Above {
    path: String,
    is_folder: bool,
}

impl Check {
    /// Checks the next entry.
    pub(super) fn entry(&mut self, entry: &Entry) -> Result<(), ManifestError> {
        let path = || entry.path.clone();
        if self.entries == 0 {
            match entry.kind {
                _ if !entry.path.is_empty() => return Err(ManifestError::NoRoot),
                EntryKind::Symlink { .. } => return Err(ManifestError::RootIsSymlink),
                EntryKind::File { .. } | EntryKind::Directory => {}
            }
        } else {
            check_path(&entry.path)?;
            self.check_place(&entry.path)?;
        }
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
        match &entry.kind {
            EntryKind::File { size, holes } => {
                self.holes += holes.len();
                if self.holes > MAX_HOLES {
                    return Err(ManifestError::TooManyHoles(path()));
                }
                let empty =
                    check_holes(*size, holes).ok_or_else(|| ManifestError::Holes(path()))?;
                let length = self.length.checked_add(*size);
                self.length = length.ok_or_else(|| ManifestError::Overflow(path()))?;
                // It is less than the length.
                self.size += size - empty;
            }
            EntryKind::Directory => {}
            EntryKind::Symlink { target } => {
                if target.is_empty() || !is_path(target) {
                    return Err(ManifestError::Target(path()));
                }
                self.links.push(self.entries);
            }
        }
        self.above.push(Above { path: path(), is_folder: entry.kind == EntryKind::Directory });
        self.entries += 1;
        Ok(())
    }

    /// Checks that a path comes after the one before, which also finds doubles, and lies in a
    /// folder.
    fn check_place(&mut self, path: &str) -> Result<(), ManifestError> {
        if let Some(before) = self.above.last() {
            match before.path.split('/').cmp(path.split('/')) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Err(ManifestError::Duplicate(path.to_owned())),
                std::cmp::Ordering::Greater => {
                    return Err(ManifestError::OutOfOrder(path.to_owned()));
                }
            }
        }
        let parent = parent_of(path);
        while self.above.last().is_some_and(|last| !is_at_or_beneath(parent, &last.path)) {
            self.above.pop();
        }
        match self.above.last().filter(|last| last.path == parent) {
            None => Err(ManifestError::NoParent(path.to_owned())),
            Some(Above { is_folder: false, .. }) => {
                Err(ManifestError::BeneathFile(path.to_owned()))
            }
            Some(_) => Ok(()),
        }
    }
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
pub(crate) fn check_component(component: &str) -> Result<(), fn(String) -> ManifestError> {
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

/// Returns true if `path` is `other`, or lies in the folder `other`.
fn is_at_or_beneath(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other);
    other.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if this can be the target of a link on some system.
fn is_path(target: &str) -> bool {
    !target.contains('\0') && name::is_canonical(target) && name::to_bytes(target).len() <= MAX_PATH
}

/// The folder of a path.
pub(super) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}
