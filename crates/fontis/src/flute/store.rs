use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use crate::dest::parent_of;
use crate::disk::{Dir, Folder as _, Handle as _};
use crate::name;
use crate::partial::Partial;
use crate::sink::SinkError;

/// The folder that files are received into.
pub(super) struct FileStore {
    place: PathBuf,
    dir: Dir,
    overwrite: bool,
}

/// A file that is being written. It has its name only when it is whole; dropping it before removes
/// what there is.
pub(super) struct StoredFile {
    partial: Partial,
    name: OsString,
    path: PathBuf,
    length: u64,
    overwrite: bool,
}

/// The permissions of a file, before the user's umask.
const MODE: u32 = 0o666;
/// Bytes that are hashed at once.
const PIECE: u64 = 1 << 20;

impl FileStore {
    /// The folder at `place`, which is made if its parent is there.
    pub(super) fn open(place: &Path, overwrite: bool) -> Result<Self, SinkError> {
        if !Dir::is_there(place) {
            Dir::make_at(place).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    SinkError::NoFolder { path: parent_of(place).to_owned() }
                }
                _ => SinkError::io(place, error),
            })?;
        }
        let dir = Dir::at(place).map_err(|error| SinkError::io(place, error))?;
        Ok(Self { place: place.to_owned(), dir, overwrite })
    }

    /// Begins a file with these names of folders and of itself, of which none leads out of the
    /// folder: a link on the way is followed only within it.
    pub(super) fn begin(&self, names: &[String], length: u64) -> Result<StoredFile, SinkError> {
        let (mut place, mut parent) = (self.place.clone(), None);
        let Some((last, folders)) = names.split_last() else {
            return Err(SinkError::Name { path: place });
        };
        for folder in folders {
            let own = name::to_path(folder);
            let dir = parent.as_ref().unwrap_or(&self.dir);
            place.push(&own);
            match dir.make_folder(&own) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(SinkError::io(&place, error));
                }
                _ => {}
            }
            parent = Some(dir.below(&own).map_err(|error| SinkError::io(&place, error))?);
        }
        let parent = match parent {
            Some(parent) => parent,
            None => self.dir.below(Path::new(".")).map_err(|e| SinkError::io(&place, e))?,
        };
        let name = name::to_os(last).into_owned();
        let path = place.join(&name);
        match parent.facts(Path::new(&name)) {
            Ok(_) if !self.overwrite => return Err(SinkError::Exists { path }),
            Ok(there) if there.is_folder() => return Err(SinkError::Kind { path, folder: true }),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SinkError::io(&path, error));
            }
            _ => {}
        }
        let partial = Partial::create(parent, &place, &name, false, false)?;
        let available = partial.handle.available().unwrap_or(u64::MAX);
        if length > available {
            return Err(SinkError::Space { path, needed: length, available });
        }
        let made = partial.handle.set_length(length);
        made.map_err(|error| SinkError::io(&partial.path, error))?;
        Ok(StoredFile { partial, name, path, length, overwrite: self.overwrite })
    }
}

impl StoredFile {
    /// Writes a part of the file.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let written = self.partial.handle.write_at(bytes, offset);
        written.map_err(|error| SinkError::io(&self.partial.path, error))
    }

    /// The MD5 hash of what was written.
    pub(super) fn hash(&self) -> Result<[u8; 16], SinkError> {
        let (mut hash, mut bytes, mut offset) = (Md5::new(), Vec::new(), 0);
        while offset < self.length {
            let piece = PIECE.min(self.length - offset);
            bytes.clear();
            let read = self.partial.handle.read_at(offset, piece as usize, &mut bytes);
            read.map_err(|error| SinkError::io(&self.partial.path, error))?;
            hash.update(&bytes);
            offset += piece;
        }
        Ok(hash.finalize().into())
    }

    /// Gives the file its name, once it is on the disk; returns its path.
    pub(super) fn finish(self) -> Result<PathBuf, SinkError> {
        let failed = |error| SinkError::io(&self.partial.path, error);
        self.partial.handle.set_mode(MODE & self.partial.allowed).map_err(failed)?;
        self.partial.handle.sync().map_err(failed)?;
        match self.partial.publish(&self.name, self.overwrite) {
            Ok(()) => Ok(self.path.clone()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A complete file is worth more than a tidy folder.
                self.partial.keep();
                let (path, partial) = (self.path.clone(), self.partial.path.clone());
                Err(SinkError::Appeared { path, partial })
            }
            Err(error) => Err(SinkError::io(&self.path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<String> {
        path.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_leaves_nothing_before() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("in");
        let store = FileStore::open(&place, false).unwrap();
        let file = store.begin(&names("a/b.txt"), 5).unwrap();
        file.write(2, b"llo").unwrap();
        file.write(0, b"he").unwrap();
        assert!(!place.join("a/b.txt").exists());
        // RFC 1321 has no such string; this is `printf hello | md5sum`.
        let expected = 0x5d41_402a_bc4b_2a76_b971_9d91_1017_c592_u128;
        assert_eq!(file.hash().unwrap(), expected.to_be_bytes());
        assert_eq!(file.finish().unwrap(), place.join("a/b.txt"));
        assert_eq!(std::fs::read(place.join("a/b.txt")).unwrap(), b"hello");
        drop(store.begin(&names("a/c"), 5).unwrap());
        assert_eq!(place.join("a").read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_stays_unless_it_is_to_be_replaced() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("x"), "old").unwrap();
        let store = FileStore::open(temp.path(), false).unwrap();
        assert!(matches!(store.begin(&names("x"), 1), Err(SinkError::Exists { .. })));
        let store = FileStore::open(temp.path(), true).unwrap();
        let file = store.begin(&names("x"), 1).unwrap();
        file.write(0, b"n").unwrap();
        assert_eq!(std::fs::read(temp.path().join("x")).unwrap(), b"old");
        file.finish().unwrap();
        assert_eq!(std::fs::read(temp.path().join("x")).unwrap(), b"n");
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let (place, outside) = (temp.path().join("in"), temp.path().join("out"));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, place.join("link")).unwrap();
        let store = FileStore::open(&place, true).unwrap();
        assert!(store.begin(&names("link/x"), 1).is_err());
        assert!(store.begin(&names("link"), 1).and_then(StoredFile::finish).is_ok());
        assert_eq!(outside.read_dir().unwrap().count(), 0);
    }
}
