//! The choice between the system's disk and a simulated one, for tests.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Access, Facts, Folder, Handle};
use crate::manifest::Modified;
use crate::whole::disk::{Disk, Open, Place};

/// A folder, of the system or of the simulated machine that runs.
#[derive(Debug)]
pub(crate) enum Dir {
    System(cap_std::fs::Dir),
    Simulated(Place),
}

/// A file, likewise.
#[derive(Debug)]
pub(crate) enum File {
    System(std::fs::File),
    Simulated(Open),
}

macro_rules! choose {
    ($on:expr, $one:ident => $call:expr) => {
        match $on {
            Self::System($one) => $call,
            Self::Simulated($one) => $call,
        }
    };
}

impl Folder for Dir {
    type File = File;

    fn at(path: &Path) -> io::Result<Self> {
        match Disk::current() {
            Some(disk) => disk.at(path).map(Self::Simulated),
            None => cap_std::fs::Dir::at(path).map(Self::System),
        }
    }

    fn is_folder_at(path: &Path) -> bool {
        Disk::current().map_or_else(|| path.is_dir(), |disk| disk.at(path).is_ok())
    }

    fn is_there(path: &Path) -> bool {
        Disk::current().map_or_else(|| path.exists(), |disk| disk.is_there(path))
    }

    fn make_at(path: &Path) -> io::Result<()> {
        match Disk::current() {
            Some(disk) => disk.make_at(path),
            None => cap_std::fs::Dir::make_at(path),
        }
    }

    fn names_at(path: &Path) -> Vec<String> {
        match Disk::current() {
            Some(disk) => disk.names_at(path),
            None => cap_std::fs::Dir::names_at(path),
        }
    }

    fn below(&self, path: &Path) -> io::Result<Self> {
        Ok(match self {
            Self::System(dir) => Self::System(dir.below(path)?),
            Self::Simulated(place) => Self::Simulated(place.below(path)?),
        })
    }

    fn facts(&self, path: &Path) -> io::Result<Facts> {
        choose!(self, dir => dir.facts(path))
    }

    fn open_entry(&self, path: &Path, access: Access) -> io::Result<File> {
        Ok(match self {
            Self::System(dir) => File::System(dir.open_entry(path, access)?),
            Self::Simulated(place) => File::Simulated(place.open_entry(path, access)?),
        })
    }

    fn make_file(&self, path: &Path, access: Access, mode: u32) -> io::Result<File> {
        Ok(match self {
            Self::System(dir) => File::System(dir.make_file(path, access, mode)?),
            Self::Simulated(place) => File::Simulated(place.make_file(path, mode)?),
        })
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        choose!(self, dir => dir.make_folder(path))
    }

    fn make_link(&self, target: &Path, path: &Path) -> io::Result<()> {
        choose!(self, dir => dir.make_link(target, path))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        choose!(self, dir => dir.unlink(path))
    }

    fn unlink_folder(&self, path: &Path) -> io::Result<()> {
        choose!(self, dir => dir.unlink_folder(path))
    }

    fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        choose!(self, dir => dir.rename_over(from, to))
    }

    fn rename_new(&self, from: &OsStr, to: &OsStr, is_folder: bool) -> io::Result<()> {
        match self {
            Self::System(dir) => dir.rename_new(from, to, is_folder),
            Self::Simulated(place) => place.rename_new(from, to),
        }
    }

    fn exchange(&self, from: &OsStr, to: &OsStr, spare: &OsStr) -> io::Result<()> {
        match self {
            Self::System(dir) => dir.exchange(from, to, spare),
            Self::Simulated(place) => place.exchange(from, to),
        }
    }

    fn set_mode_of(&self, path: &Path, mode: u32) -> io::Result<()> {
        choose!(self, dir => dir.set_mode_of(path, mode))
    }

    fn set_link_time(&self, path: &Path, modified: Modified) -> io::Result<()> {
        match self {
            Self::System(dir) => dir.set_link_time(path, modified),
            Self::Simulated(place) => place.facts(path).map(drop),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        choose!(self, dir => dir.sync_names())
    }

    fn system(&self) -> Option<&cap_std::fs::Dir> {
        match self {
            Self::System(dir) => Some(dir),
            Self::Simulated(_) => None,
        }
    }
}

impl Handle for File {
    fn facts(&self) -> io::Result<Facts> {
        choose!(self, file => file.facts())
    }

    fn claim(&self) -> io::Result<bool> {
        choose!(self, file => file.claim())
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        choose!(self, file => file.set_mode(mode))
    }

    fn set_time(&self, modified: Modified) -> io::Result<()> {
        choose!(self, file => file.set_time(modified))
    }

    fn set_length(&self, len: u64) -> io::Result<()> {
        choose!(self, file => file.set_length(len))
    }

    fn clear(&self, start: u64, end: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.clear(start, end),
            Self::Simulated(file) => file.write_at(&vec![0; (end - start) as usize], start),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        choose!(self, file => file.write_at(bytes, offset))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        choose!(self, file => file.append(bytes))
    }

    fn read_at(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        choose!(self, file => file.read_at(offset, len, out))
    }

    fn sync(&self) -> io::Result<()> {
        choose!(self, file => file.sync())
    }

    fn sync_disk(&self) -> io::Result<bool> {
        choose!(self, file => file.sync_disk())
    }

    fn available(&self) -> Option<u64> {
        choose!(self, file => file.available())
    }

    fn system(&self) -> Option<&std::fs::File> {
        match self {
            Self::System(file) => Some(file),
            Self::Simulated(_) => None,
        }
    }
}
