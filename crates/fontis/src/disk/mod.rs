//! The file system as an incoming object uses it: folders, files, and the few calls on them.
//!
//! [`Folder`] and [`Handle`] are the edge between the library and the disk. The system's own types
//! implement them, and [`Dir`] and [`File`] are names for these types: a call of the edge is a call
//! of the system, without a table or a branch between. In the crate's unit tests the names stand
//! for a choice between the system's disk and a simulated one, which loses power.

#[cfg(test)]
mod choice;
mod system;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

#[cfg(test)]
pub(crate) use choice::{Dir, File};

use crate::manifest::Modified;

/// A folder that is open; paths lead on from it, and not out of it.
#[cfg(not(test))]
pub(crate) type Dir = cap_std::fs::Dir;
/// A file or folder that is open.
#[cfg(not(test))]
pub(crate) type File = std::fs::File;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Special,
}

/// What the file system tells of an entry or of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) len: u64,
    /// The permission bits.
    pub(crate) mode: u32,
    /// True for a folder of this user, or a file of this user that has one name.
    pub(crate) is_own: bool,
    /// Device and inode; zeros where the system has none.
    pub(crate) id: (u64, u64),
    /// Bytes on the disk, holes left out, where the system tells.
    pub(crate) allocated: Option<u64>,
}

impl Facts {
    pub(crate) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }
}

/// The way to open a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// To read it, and to write at its end.
    Append,
}

/// A folder that is open. Links at the end of a path are not followed.
pub(crate) trait Folder: Sized {
    type File: Handle;

    /// Opens the folder at `path`, wherever that leads.
    fn at(path: &Path) -> io::Result<Self>;
    /// Returns true if there is a folder at `path`.
    fn is_folder_at(path: &Path) -> bool;
    /// Returns true if something is at `path`.
    fn is_there(path: &Path) -> bool;
    /// Makes the folder `path`.
    fn make_at(path: &Path) -> io::Result<()>;
    /// The names in the folder at `path`, as far as they can be read.
    fn names_at(path: &Path) -> Vec<String>;

    /// Opens a folder below this one.
    fn below(&self, path: &Path) -> io::Result<Self>;
    fn facts(&self, path: &Path) -> io::Result<Facts>;
    /// Opens an entry that is there. A pipe is not waited for.
    fn open_entry(&self, path: &Path, access: Access) -> io::Result<Self::File>;
    /// Makes a file that is not there, with the permissions of `mode` that the umask leaves.
    fn make_file(&self, path: &Path, access: Access, mode: u32) -> io::Result<Self::File>;
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a link to exactly this target, absolute or not.
    fn make_link(&self, target: &Path, path: &Path) -> io::Result<()>;
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with all in it.
    fn unlink_folder(&self, path: &Path) -> io::Result<()>;
    /// Renames an entry of this folder; what has the name `to` is replaced.
    fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()>;
    /// Renames an entry of this folder, failing where `to` exists.
    fn rename_new(&self, from: &OsStr, to: &OsStr, is_folder: bool) -> io::Result<()>;
    /// Swaps two names of this folder, at once where the system can; `spare` is a name for the
    /// time between where it cannot.
    fn exchange(&self, from: &OsStr, to: &OsStr, spare: &OsStr) -> io::Result<()>;
    fn set_mode_of(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Sets the time of a link itself.
    fn set_link_time(&self, path: &Path, modified: Modified) -> io::Result<()>;
    /// Brings the names in this folder to the disk, where the file system can.
    fn sync_names(&self) -> io::Result<()>;
    /// The folder on the system's disk, for what a simulated one does not have.
    fn system(&self) -> Option<&cap_std::fs::Dir>;
}

/// A file or folder that is open.
pub(crate) trait Handle: Sized {
    fn facts(&self) -> io::Result<Facts>;
    /// Locks it against other transfers; false if one has it. A file system without locks is an
    /// error.
    fn claim(&self) -> io::Result<bool>;
    fn set_mode(&self, mode: u32) -> io::Result<()>;
    fn set_time(&self, modified: Modified) -> io::Result<()>;
    fn set_length(&self, len: u64) -> io::Result<()>;
    /// Makes a range read as zeros, and takes no room for them if that can be.
    fn clear(&self, start: u64, end: u64) -> io::Result<()>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Writes at the end of a file that is open to append.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Appends `len` bytes of the file, from `offset` on, to `out`.
    fn read_at(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()>;
    /// Brings content and attributes to the disk.
    fn sync(&self) -> io::Result<()>;
    /// The same for all of the file system; false where the system has no such call.
    fn sync_disk(&self) -> io::Result<bool>;
    /// Bytes that this user may write yet, where the file system tells.
    fn available(&self) -> Option<u64>;
    /// The file on the system's disk, for what a simulated one does not have.
    fn system(&self) -> Option<&std::fs::File>;
}
