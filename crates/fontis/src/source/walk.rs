use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata};

use super::error::{SourceError, source_error};
use super::holes;
use crate::archive::{self, Archive};
use crate::exclusions::{self, Exclusions, Rules};
use crate::file::open;
use crate::left_out::LeftOut;
use crate::manifest::{Collected, Entry, EntryKind, Hole, MAX_ENTRIES, MAX_HOLES, ManifestError};
use crate::name;
use crate::partial;
use crate::stamp::{self, Stamp, Stamps};

/// The contents of a folder.
#[derive(Default)]
pub(super) struct Walked {
    /// In a manifest's order.
    pub(super) entries: Collected,
    /// One for each entry.
    pub(super) stamps: Stamps,
    pub(super) left_out: LeftOut,
    /// Holes of all files so far.
    holes: usize,
}

/// A walk through a folder, and the rules by which it leaves things out.
pub(super) struct Walk<'a> {
    exclusions: &'a Exclusions,
    archive: Archive,
    /// The path of the folder from where the rules begin.
    base: String,
    /// The rules of the folders above it.
    rules: Option<Arc<Rules>>,
}

/// An entry that is to be visited, and the rules of its folder.
struct Pending {
    path: String,
    metadata: Metadata,
    rules: Option<Arc<Rules>>,
}

/// An entry that is sent, and those in it.
struct Visited {
    entry: Entry,
    stamp: Stamp,
    children: Vec<Pending>,
}

impl<'a> Walk<'a> {
    /// A walk through the folder in which the rules begin.
    pub(super) fn new(exclusions: &'a Exclusions, archive: Archive) -> Self {
        Self { exclusions, archive, base: String::new(), rules: None }
    }

    /// Begins the walk at `path` below the folder `root` of the rules instead; `path` has no links
    /// in it. Returns true if it is not to be sent.
    pub(super) fn descend(&mut self, root: &Dir, path: &Path, is_dir: bool) -> io::Result<bool> {
        let mut folder = root.try_clone()?;
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let mut names = names.peekable();
        while let Some(part) = names.next() {
            let name = name::from_os(part).ok_or(io::ErrorKind::InvalidFilename)?;
            self.rules = self.exclusions.rules(&folder, &self.base, self.rules.as_ref())?;
            self.base = exclusions::join(&self.base, &name);
            let is_last = names.peek().is_none();
            if self.exclusions.leave_out(&self.base, !is_last || is_dir, self.rules.as_ref()) {
                return Ok(true);
            }
            if !is_last {
                folder = folder.open_dir(part)?;
            }
        }
        Ok(false)
    }

    /// Everything below `dir` that can and shall be sent. `shown` is its path in messages.
    pub(super) fn walk(&self, dir: &Dir, shown: &Path) -> Result<Walked, SourceError> {
        let root = dir.dir_metadata().map_err(|error| source_error(shown, error))?;
        let mut walked = Walked::default();
        let mut pending =
            vec![Pending { path: String::new(), metadata: root, rules: self.rules.clone() }];
        while let Some(next) = pending.pop() {
            let place = join(shown, &next.path);
            let is_root = next.path.is_empty();
            let refused = |source| SourceError::Manifest { path: shown.to_owned(), source };
            match self.visit(&mut walked, dir, next, &place) {
                Ok(Some(Visited { entry, stamp, children })) => {
                    walked.entries.push(&entry).map_err(refused)?;
                    walked.stamps.push(&stamp);
                    pending.extend(children);
                }
                Ok(None) => {}
                Err(error) if is_root => return Err(source_error(shown, error)),
                Err(error) => walked.unreadable(&place, &error),
            }
            let count = walked.entries.len() + pending.len();
            if count > MAX_ENTRIES {
                return Err(refused(ManifestError::TooManyEntries(count as u64)));
            }
        }
        Ok(walked)
    }

    /// Looks at an entry; `None` if it is left out.
    fn visit(
        &self,
        walked: &mut Walked,
        dir: &Dir,
        Pending { path, metadata, rules }: Pending,
        place: &Path,
    ) -> io::Result<Option<Visited>> {
        let mut children = Vec::new();
        let kind = if metadata.is_dir() {
            children = self.children(walked, dir, &path, rules.as_ref(), place)?;
            EntryKind::Directory
        } else if metadata.is_file() {
            let holes = walked.holes(dir, &path, &metadata)?;
            EntryKind::File { size: metadata.len(), holes }
        } else if metadata.is_symlink() {
            let target = dir.read_link_contents(name::to_path(&path))?;
            let target = name::from_os(target.as_os_str());
            EntryKind::Symlink { target: target.ok_or(io::ErrorKind::InvalidFilename)? }
        } else {
            walked.left_out.special += 1;
            walked.left_out.name(place);
            return Ok(None);
        };
        let open = || match &*path {
            "" => open(dir, Path::new(".")),
            path => open(dir, &name::to_path(path)),
        };
        let extra = archive::read(self.archive, &metadata, open)?;
        let entry = Entry { extra, ..entry(path, kind, &metadata) };
        Ok(Some(Visited { entry, stamp: Stamp::of(&metadata), children }))
    }

    /// The entries of the directory `path` that can and shall be sent, last name first.
    fn children(
        &self,
        walked: &mut Walked,
        dir: &Dir,
        path: &str,
        rules: Option<&Arc<Rules>>,
        place: &Path,
    ) -> io::Result<Vec<Pending>> {
        let within = if path.is_empty() { "." } else { path };
        let folder = dir.open_dir(name::to_path(within))?;
        let base = match &*self.base {
            "" => path.to_owned(),
            base if path.is_empty() => base.to_owned(),
            base => exclusions::join(base, path),
        };
        let rules = self.exclusions.rules(&folder, &base, rules)?;
        let mut children = Vec::new();
        for child in folder.entries()? {
            let child = child?;
            let shown = place.join(child.file_name());
            // Every name of a system that has files like these is a text.
            let Some(name) = name::from_os(&child.file_name()) else {
                walked.unreadable(&shown, &io::ErrorKind::InvalidFilename.into());
                continue;
            };
            if partial::is_partial(&name) {
                continue;
            }
            let metadata = match child.metadata() {
                Ok(metadata) => metadata,
                Err(error) => {
                    walked.unreadable(&shown, &error);
                    continue;
                }
            };
            let below = exclusions::join(&base, &name);
            if self.exclusions.leave_out(&below, metadata.is_dir(), rules.as_ref()) {
                continue;
            }
            if metadata.is_file()
                && let Err(error) = check_readable(&folder, &name)
            {
                walked.unreadable(&shown, &error);
                continue;
            }
            let path = exclusions::join(path, &name);
            children.push(Pending { path, metadata, rules: rules.clone() });
        }
        // Siblings share what precedes their names, so whole paths sort as their names do.
        children.sort_unstable_by(|a, b| b.path.cmp(&a.path));
        Ok(children)
    }
}

impl Walked {
    /// The holes of a file. Only one that takes less room than its size is opened.
    fn holes(&mut self, dir: &Dir, path: &str, seen: &Metadata) -> std::io::Result<Vec<Hole>> {
        if stamp::is_dense(seen) {
            return Ok(Vec::new());
        }
        let file = open(dir, &name::to_path(path))?;
        let holes = holes::find(&file, seen, MAX_HOLES - self.holes)?;
        self.holes += holes.len();
        Ok(holes)
    }

    /// Leaves out what cannot be read. What has gone meanwhile is not in the folder.
    fn unreadable(&mut self, place: &Path, error: &io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.left_out.unreadable += 1;
            self.left_out.name(place);
        }
    }
}

/// Fails if this user may not read the file. Opening each file would take several times as long.
#[cfg(unix)]
fn check_readable(folder: &Dir, name: &str) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, accessat};
    use rustix::io::Errno;
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    match accessat(folder, &*name::to_path(name), Access::READ_OK, flags) {
        // A system that cannot tell finds out when it reads.
        Ok(()) | Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn check_readable(folder: &Dir, name: &str) -> io::Result<()> {
    folder.open(name::to_path(name)).map(drop)
}

/// Joins without leaving a trailing `/` after a file.
pub(super) fn join(path: &Path, below: &str) -> PathBuf {
    if below.is_empty() { path.to_owned() } else { path.join(name::to_path(below)) }
}

pub(super) fn entry(path: String, kind: EntryKind, metadata: &Metadata) -> Entry {
    Entry {
        path,
        kind,
        mode: stamp::mode(metadata),
        modified: stamp::modified(metadata),
        extra: None,
    }
}
