use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::error::{SourceError, source_error};
use super::holes;
use crate::left_out::LeftOut;
use crate::manifest::{Entry, EntryKind, Hole, MAX_ENTRIES, MAX_HOLES, ManifestError};
use crate::name;
use crate::partial;
use crate::stamp::{self, Stamp};

/// The contents of a folder.
#[derive(Default)]
pub(super) struct Walked {
    /// In a manifest's order.
    pub(super) entries: Vec<Entry>,
    /// One for each entry.
    pub(super) stamps: Vec<Stamp>,
    pub(super) left_out: LeftOut,
    /// Holes of all files so far.
    holes: usize,
}

/// Everything below `dir` that can be sent. `shown` is its path in messages.
pub(super) fn walk(dir: &Dir, shown: &Path) -> Result<Walked, SourceError> {
    let root = dir.dir_metadata().map_err(|error| source_error(shown, error))?;
    let mut walked = Walked::default();
    let mut pending = vec![(String::new(), root)];
    while let Some((path, metadata)) = pending.pop() {
        let place = join(shown, &path);
        let kind = if metadata.is_dir() {
            match walked.children(dir, &path, &place) {
                Ok(children) => pending.extend(children),
                Err(error) if path.is_empty() => return Err(source_error(shown, error)),
                Err(error) => {
                    walked.unreadable(&place, &error);
                    continue;
                }
            }
            EntryKind::Directory
        } else if metadata.is_file() {
            let size = metadata.len();
            match walked.holes(dir, &path, &metadata) {
                Ok(holes) => EntryKind::File { size, holes },
                Err(error) => {
                    walked.unreadable(&place, &error);
                    continue;
                }
            }
        } else if metadata.is_symlink() {
            let target = match dir.read_link_contents(name::to_path(&path)) {
                Ok(target) => target,
                Err(error) => {
                    walked.unreadable(&place, &error);
                    continue;
                }
            };
            let target = name::from_os(target.as_os_str());
            EntryKind::Symlink { target: target.ok_or(SourceError::NoText { path: place })? }
        } else {
            walked.left_out.special += 1;
            walked.left_out.name(&place);
            continue;
        };
        let count = walked.entries.len() + pending.len();
        if count >= MAX_ENTRIES {
            let source = ManifestError::TooManyEntries(count as u64 + 1);
            return Err(SourceError::Manifest { path: shown.to_owned(), source });
        }
        walked.stamps.push(Stamp::of(&metadata));
        walked.entries.push(entry(path, kind, &metadata));
    }
    Ok(walked)
}

impl Walked {
    /// The entries of the directory `path` that can be read, last name first.
    fn children(
        &mut self,
        dir: &Dir,
        path: &str,
        place: &Path,
    ) -> io::Result<Vec<(String, Metadata)>> {
        let within = if path.is_empty() { "." } else { path };
        let folder = dir.open_dir(name::to_path(within))?;
        let mut children = Vec::new();
        for child in folder.entries()? {
            let child = child?;
            let shown = place.join(child.file_name());
            // Every name of a system that has files like these is a text.
            let Some(name) = name::from_os(&child.file_name()) else {
                self.unreadable(&shown, &io::ErrorKind::InvalidFilename.into());
                continue;
            };
            if partial::is_partial(&name) {
                continue;
            }
            let seen = child.metadata().and_then(|metadata| {
                if metadata.is_file() {
                    check_readable(&folder, &name)?;
                }
                Ok(metadata)
            });
            let metadata = match seen {
                Ok(metadata) => metadata,
                Err(error) => {
                    self.unreadable(&shown, &error);
                    continue;
                }
            };
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            children.push((path, metadata));
        }
        // Siblings share what precedes their names, so whole paths sort as their names do.
        children.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        Ok(children)
    }

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

/// Opens a file to read it.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        // A file that was swapped for a pipe must not make a server wait for a writer.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    dir.open_with(path, &options).map(cap_std::fs::File::into_std)
}

pub(super) fn entry(path: String, kind: EntryKind, metadata: &Metadata) -> Entry {
    Entry { path, kind, mode: stamp::mode(metadata), modified: stamp::modified(metadata) }
}
