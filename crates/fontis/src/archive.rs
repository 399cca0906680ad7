//! Owners and extended attributes of files, which travel on request.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

#[cfg(unix)]
use crate::file;
use crate::manifest::{Attribute, Extra, MAX_ATTRIBUTE, MAX_ATTRIBUTES};

/// The classes of attributes that decide what programs may do.
const PRIVILEGED: [&str; 3] = ["security.", "system.", "trusted."];

/// The owners and extended attributes that a side sends, or keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archive {
    /// None.
    #[default]
    None,
    /// Attributes of the class `user`, and owners. Only root can give a file to somebody: for
    /// others owners are without effect.
    User,
    /// Those of the classes `security`, `trusted` and `system`, too, if this process is root's.
    /// They decide what programs may do: take them only from a sender that may decide it.
    All,
}

impl Archive {
    fn takes(self, name: &str) -> bool {
        let is_of = |class: &str| name.starts_with(class);
        match self {
            Self::None => false,
            Self::User => is_of("user."),
            Self::All => is_of("user.") || PRIVILEGED.into_iter().any(is_of) && is_root(),
        }
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Reads what travels of an entry of a folder, or of the folder itself. Links have no attributes
/// that count.
pub(crate) fn read(
    archive: Archive,
    metadata: &Metadata,
    open: impl FnOnce() -> io::Result<File>,
) -> io::Result<Option<Box<Extra>>> {
    if archive == Archive::None {
        return Ok(None);
    }
    let mut attributes = if metadata.is_symlink() { Vec::new() } else { list(archive, &open()?)? };
    attributes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if attributes.len() > MAX_ATTRIBUTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(Box::new(Extra { owner: owner(metadata), attributes })))
}

#[cfg(unix)]
fn owner(metadata: &Metadata) -> Option<(u32, u32)> {
    use cap_std::fs::MetadataExt;
    Some((metadata.uid(), metadata.gid()))
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<(u32, u32)> {
    None
}

/// The attributes of an open file that are to travel; none where the file system has none.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn list(archive: Archive, file: &File) -> io::Result<Vec<Attribute>> {
    use rustix::buffer::spare_capacity;
    use rustix::fs::{fgetxattr, flistxattr};
    use rustix::io::Errno;
    let mut names = Vec::with_capacity(MAX_ATTRIBUTE);
    match flistxattr(file, spare_capacity(&mut names)) {
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut attributes = Vec::new();
    for name in names.split(|byte| *byte == 0) {
        // Names are texts everywhere.
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if !archive.takes(name) {
            continue;
        }
        let mut value = Vec::with_capacity(MAX_ATTRIBUTE);
        match fgetxattr(file, name, spare_capacity(&mut value)) {
            // It has gone meanwhile.
            Err(Errno::NODATA) => continue,
            read => read?,
        };
        value.shrink_to_fit();
        attributes.push(Attribute { name: name.to_owned(), value });
    }
    Ok(attributes)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn list(_: Archive, _: &File) -> io::Result<Vec<Attribute>> {
    Ok(Vec::new())
}

/// Gives a file its attributes; returns the number of those that it cannot or shall not have.
pub(crate) fn set_attributes(archive: Archive, extra: &Extra, file: &File) -> u64 {
    if archive == Archive::None {
        return 0;
    }
    let is_lost = |one: &&Attribute| !archive.takes(&one.name) || set(file, one).is_err();
    extra.attributes.iter().filter(is_lost).count() as u64
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn set(file: &File, attribute: &Attribute) -> io::Result<()> {
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::fsetxattr(file, &*attribute.name, &attribute.value, flags)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn set(_: &File, _: &Attribute) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives an entry of a folder to its owner, if this process is root's; `path` is not followed.
/// Returns false if it cannot.
pub(crate) fn set_owner(archive: Archive, extra: &Extra, dir: &Dir, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use rustix::fs::{AtFlags, Gid, Uid, chownat};
        let Some((user, group)) = extra.owner.filter(|_| archive != Archive::None && is_root())
        else {
            return true;
        };
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        file::place_of(dir, path).is_ok_and(|(parent, name)| {
            chownat(&parent, name, user, group, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        })
    }
    #[cfg(not(unix))]
    {
        let _ = (archive, extra, dir, path);
        true
    }
}

/// The same for an open file or folder.
pub(crate) fn set_owner_of(archive: Archive, extra: &Extra, file: &File) -> bool {
    #[cfg(unix)]
    {
        use rustix::fs::{Gid, Uid, fchown};
        let Some((user, group)) = extra.owner.filter(|_| archive != Archive::None && is_root())
        else {
            return true;
        };
        fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = (archive, extra, file);
        true
    }
}
