//! The partial file or folder beside a destination, which holds an object until it is complete.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{Access, Dir, Facts, File, Folder as _, Handle as _};
use crate::journal;
use crate::manifest::MAX_COMPONENT;
use crate::sink::SinkError;

const SUFFIX: &str = ".fontis-partial";
/// The number of attempts before giving up when another process takes or removes the partial
/// between two steps.
const ATTEMPTS: usize = 8;

/// The end of the name of a file that shows the umask, and of a journal that is being begun.
const PROBE: &str = "-new";

/// Returns true if a file of this name belongs to a transfer: a partial, its journal, or a probe.
/// File systems may not tell capitals from small letters.
pub(crate) fn is_partial(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [journal::SUFFIX, PROBE].iter().find_map(|end| name.strip_suffix(end));
    name.starts_with('.') && ends.unwrap_or(&name).ends_with(SUFFIX)
}

/// `.NAME.fontis-partial`; a name too long for that is cut and told apart by its hash.
pub(crate) fn partial_name(name: &OsStr) -> OsString {
    let mut partial = OsString::from(".");
    // The journal's name is a little longer.
    if name.len() + 1 + SUFFIX.len() + journal::SUFFIX.len() <= MAX_COMPONENT {
        partial.push(name);
    } else {
        let hash = blake3::hash(name.as_encoded_bytes()).to_hex();
        let text = name.to_string_lossy();
        let room = MAX_COMPONENT - 1 - SUFFIX.len() - journal::SUFFIX.len() - 17;
        partial.push(&text[..text.floor_char_boundary(room)]);
        partial.push(format!("-{}", &hash[..16]));
    }
    partial.push(SUFFIX);
    partial
}

/// A locked partial; dropping it removes it and its journal, unless it was kept or got its final
/// name.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) parent: Dir,
    name: OsString,
    /// For messages.
    pub(crate) path: PathBuf,
    folder: bool,
    /// The file or directory itself, open and locked.
    pub(crate) handle: File,
    /// The permission bits that the user's umask leaves to a new file.
    pub(crate) allowed: u32,
    /// True if it existed before.
    pub(crate) adopted: bool,
    keep: AtomicBool,
}

impl Partial {
    /// A partial for `name` in `parent`, which is at `place`. What a dead transfer of this user
    /// left is adopted if `adopt` says so, and replaced otherwise; one that a live transfer writes
    /// is [`SinkError::Busy`].
    pub(crate) fn create(
        parent: Dir,
        place: &Path,
        name: &OsStr,
        folder: bool,
        adopt: bool,
    ) -> Result<Self, SinkError> {
        let name = partial_name(name);
        let path = place.join(&name);
        let (handle, allowed, adopted) = take(&parent, &name, &path, folder, adopt)?;
        let keep = AtomicBool::new(adopted);
        Ok(Self { parent, name, path, folder, handle, allowed, adopted, keep })
    }

    /// The partial folder, to write below it.
    pub(crate) fn dir(&self) -> io::Result<Dir> {
        self.parent.below(Path::new(&self.name))
    }

    /// Gives the partial its final name. Without `overwrite` it fails with
    /// [`io::ErrorKind::AlreadyExists`] if the name exists; with it, the existing object is
    /// replaced, a folder as a whole.
    pub(crate) fn publish(&self, name: &OsStr, overwrite: bool) -> io::Result<()> {
        if !overwrite {
            self.parent.rename_new(&self.name, name, self.folder)?;
            self.keep();
        } else if self.folder && is_folder(&self.parent, name) {
            // What was there has the partial's name now, and goes when the partial would.
            self.parent.exchange(&self.name, name, &spare_name(name))?;
            self.keep.store(false, Ordering::Relaxed);
        } else {
            self.parent.rename_over(&self.name, name)?;
            self.keep();
        }
        // The name is safe once the directory is on disk. Until then the journal stays: a power
        // loss may undo the one change without the other.
        self.parent.sync_names()?;
        let _ = self.parent.unlink(Path::new(&self.journal()));
        Ok(())
    }

    /// Leaves the partial where it is.
    pub(crate) fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// The name of a file that is there for a moment.
    pub(crate) fn probe(&self) -> OsString {
        probe_name(&self.name)
    }

    /// The name of its journal.
    pub(crate) fn journal(&self) -> OsString {
        journal::journal_name(&self.name)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Relaxed) {
            // Nobody is left to tell; the next transfer to this name tries again.
            let _ = remove(&self.parent, &self.name);
            let _ = self.parent.unlink(Path::new(&self.journal()));
        }
    }
}

/// Creates or adopts the partial `name`, and locks it: the open file or directory, the permission
/// bits allowed, and whether it was adopted.
fn take(
    parent: &Dir,
    name: &OsStr,
    path: &Path,
    folder: bool,
    adopt: bool,
) -> Result<(File, u32, bool), SinkError> {
    let error = |error| SinkError::io(path, error);
    for _ in 0..ATTEMPTS {
        let made = if folder {
            parent.make_folder(Path::new(name)).and_then(|()| open(parent, name, Access::Read))
        } else {
            create_file(parent, name)
        };
        match made {
            Ok(handle) => {
                // Without locks on this file system, creation was exclusive still.
                if matches!(handle.claim(), Ok(false)) {
                    return Err(SinkError::Busy { path: path.to_owned() });
                }
                if !is_at(parent, name, &handle) {
                    continue;
                }
                let allowed = handle.facts().map_err(error)?.mode;
                handle.set_mode(if folder { 0o700 } else { 0o600 }).map_err(error)?;
                return Ok((handle, allowed, false));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let same = |there: Facts| there.is_folder() == folder && there.is_own;
                let adopt = adopt && parent.facts(Path::new(name)).is_ok_and(same);
                let access = if adopt && !folder { Access::Write } else { Access::Read };
                let stale = match open(parent, name, access) {
                    Ok(stale) => stale,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(error(e)),
                };
                if !matches!(stale.claim(), Ok(true)) {
                    return Err(SinkError::Busy { path: path.to_owned() });
                }
                if !is_at(parent, name, &stale) {
                    continue;
                }
                if adopt {
                    let allowed = probe(parent, name).map_err(error)?;
                    return Ok((stale, allowed, true));
                }
                remove(parent, name).map_err(error)?;
            }
            Err(e) => return Err(error(e)),
        }
    }
    Err(SinkError::Busy { path: path.to_owned() })
}

fn probe_name(partial: &OsStr) -> OsString {
    let mut probe = partial.to_owned();
    probe.push(PROBE);
    probe
}

/// The permission bits that the umask leaves to a new file.
fn probe(parent: &Dir, name: &OsStr) -> io::Result<u32> {
    let probe = probe_name(name);
    match parent.unlink(Path::new(&probe)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = create_file(parent, &probe)?;
    let facts = file.facts();
    parent.unlink(Path::new(&probe))?;
    Ok(facts?.mode)
}

/// Opens the object of this name, not the target of a link.
pub(crate) fn open(dir: &Dir, path: impl AsRef<Path>, access: Access) -> io::Result<File> {
    dir.open_entry(path.as_ref(), access)
}

/// Creates the file with all permissions that the umask leaves, which reveals the umask.
fn create_file(dir: &Dir, name: &OsStr) -> io::Result<File> {
    dir.make_file(Path::new(name), Access::Write, 0o777)
}

/// Returns true if `name` is still the file that `handle` has open.
fn is_at(dir: &Dir, name: &OsStr, handle: &File) -> bool {
    match (dir.facts(Path::new(name)), handle.facts()) {
        (Ok(named), Ok(open)) => named.id == open.id,
        _ => false,
    }
}

fn is_folder(dir: &Dir, name: &OsStr) -> bool {
    dir.facts(Path::new(name)).is_ok_and(|facts| facts.is_folder())
}

fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let name = Path::new(name);
    if dir.facts(name)?.is_folder() { dir.unlink_folder(name) } else { dir.unlink(name) }
}

/// The name that an object which is replaced has for a moment.
fn spare_name(name: &OsStr) -> OsString {
    let mut spare = OsString::from(".");
    spare.push(blake3::hash(name.as_encoded_bytes()).to_hex().as_str());
    spare.push(SUFFIX);
    spare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_name_is_recognised_and_never_too_long() {
        assert_eq!(partial_name(OsStr::new("x.iso")), ".x.iso.fontis-partial");
        let (a, b) = ("ä".repeat(127) + "a", "ä".repeat(127) + "b");
        let names = [&a, &b].map(|name| partial_name(OsStr::new(name)).into_string().unwrap());
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.len() <= MAX_COMPONENT && is_partial(&name), "{name}");
        }
        for end in ["-log", "-new"] {
            assert!(is_partial(&format!(".x.Fontis-Partial{end}")), "{end}");
        }
        assert!(!is_partial("x.iso"));
    }
}
