//! The partial file or folder beside a destination, which holds an object until it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use crate::journal;
use crate::manifest::MAX_COMPONENT;
use crate::sink::SinkError;
use crate::stamp;

const SUFFIX: &str = ".fontis-partial";
/// The number of attempts before giving up when another process takes or removes the partial
/// between two steps.
const ATTEMPTS: usize = 8;

/// The end of the name of a file that shows the umask.
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
        self.parent.open_dir(&self.name)
    }

    /// Gives the partial its final name. Without `overwrite` it fails with
    /// [`io::ErrorKind::AlreadyExists`] if the name exists; with it, the existing object is
    /// replaced, a folder as a whole.
    pub(crate) fn publish(&self, name: &OsStr, overwrite: bool) -> io::Result<()> {
        if !overwrite {
            rename_new(&self.parent, &self.name, name, self.folder)?;
            self.keep();
        } else if self.folder && self.parent.symlink_metadata(name).is_ok_and(|m| m.is_dir()) {
            // What was there has the partial's name now, and goes when the partial would.
            exchange(&self.parent, &self.name, name)?;
            self.keep.store(false, Ordering::Relaxed);
        } else {
            self.parent.rename(&self.name, &self.parent, name)?;
            self.keep();
        }
        let _ = self.parent.remove_file(self.journal());
        // The name is safe once the directory is on disk; one that cannot be opened or synced still
        // has it.
        if let Ok(dir) = self.parent.open(".") {
            let _ = dir.sync_all();
        }
        Ok(())
    }

    /// Leaves the partial where it is.
    pub(crate) fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
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
            let _ = self.parent.remove_file(self.journal());
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
            parent.create_dir(name).and_then(|()| open(parent, name, false))
        } else {
            create_file(parent, name)
        };
        match made {
            Ok(handle) => {
                // Without locks on this file system, creation was exclusive still.
                if matches!(handle.try_lock(), Err(TryLockError::WouldBlock)) {
                    return Err(SinkError::Busy { path: path.to_owned() });
                }
                if !is_at(parent, name, &handle) {
                    continue;
                }
                let metadata = Metadata::from_file(&handle).map_err(error)?;
                let allowed = stamp::mode(&metadata);
                set_mode(&handle, if folder { 0o700 } else { 0o600 }).map_err(error)?;
                return Ok((handle, allowed, false));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let same = |there: Metadata| there.is_dir() == folder && stamp::is_own(&there);
                let adopt = adopt && parent.symlink_metadata(name).is_ok_and(same);
                let stale = match open(parent, name, adopt && !folder) {
                    Ok(stale) => stale,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(error(e)),
                };
                if stale.try_lock().is_err() {
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

/// The permission bits that the umask leaves to a new file.
fn probe(parent: &Dir, name: &OsStr) -> io::Result<u32> {
    let mut probe = name.to_owned();
    probe.push(PROBE);
    match parent.remove_file(&probe) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = create_file(parent, &probe)?;
    let metadata = Metadata::from_file(&file);
    parent.remove_file(&probe)?;
    Ok(stamp::mode(&metadata?))
}

/// Permission bits of an open file or directory; systems without them ignore it.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, mode);
        Ok(())
    }
}

/// Opens the object of this name, not the target of a link.
pub(crate) fn open(dir: &Dir, path: impl AsRef<Path>, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).follow(FollowSymlinks::No);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    dir.open_with(path, &options).map(cap_std::fs::File::into_std)
}

/// Creates the file with all permissions that the umask leaves, which reveals the umask.
fn create_file(dir: &Dir, name: &OsStr) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.mode(0o777);
    }
    dir.open_with(name, &options).map(cap_std::fs::File::into_std)
}

/// Returns true if `name` is still the file that `handle` has open.
fn is_at(dir: &Dir, name: &OsStr, handle: &File) -> bool {
    match (dir.symlink_metadata(name), Metadata::from_file(handle)) {
        (Ok(named), Ok(open)) => stamp::file_id(&named) == stamp::file_id(&open),
        _ => false,
    }
}

fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    match dir.symlink_metadata(name)?.is_dir() {
        true => dir.remove_dir_all(name),
        false => dir.remove_file(name),
    }
}

/// Renames within `dir`, failing where `to` exists.
fn rename_new(dir: &Dir, from: &OsStr, to: &OsStr, folder: bool) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => {}
            done => return Ok(done?),
        }
    }
    if !folder {
        // A hard link, too, fails where something exists; file systems without either get the plain
        // check.
        match dir.hard_link(from, dir, to) {
            Ok(()) => return dir.remove_file(from),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
    match dir.symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => dir.rename(from, dir, to),
        Err(error) => Err(error),
    }
}

/// Swaps two names of `dir`, at once where the system can.
fn exchange(dir: &Dir, from: &OsStr, to: &OsStr) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(dir, from, dir, to, RenameFlags::EXCHANGE) {
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => {}
            done => return Ok(done?),
        }
    }
    let mut old = OsString::from(".");
    old.push(blake3::hash(to.as_encoded_bytes()).to_hex().as_str());
    old.push(SUFFIX);
    dir.rename(to, dir, &old)?;
    dir.rename(from, dir, to)?;
    dir.rename(&old, dir, from)
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
