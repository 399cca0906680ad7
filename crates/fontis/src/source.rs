//! A file or folder to send, read by object offset.

mod error;
mod holes;
#[cfg(test)]
mod tests;
mod walk;

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use blake3::Hash;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use lru::LruCache;

pub use self::error::SourceError;
use self::error::source_error;
use self::walk::{Walk, Walked, entry, join};
use crate::archive::{self, Archive};
use crate::exclusions::Exclusions;
use crate::file::{append_at, open};
use crate::hash_tree::{HashTree, block_size_for};
use crate::layout::{Layout, Piece};
use crate::left_out::LeftOut;
use crate::manifest::{Collected, Entry, EntryKind, MAX_HOLES, Manifest, ManifestError, Omitted};
use crate::name;
use crate::stamp::{self, COARSEST_CLOCK, Stamp, Stamps};

/// Files kept open at once: enough for a window of blocks, far below any system's limit.
const HANDLES: NonZero<usize> = NonZero::new(64).unwrap();
/// The name of an object whose path has none, such as `/` or a served folder itself.
const NAMELESS: &str = "files";

/// An object to send. All of it may be used from several threads at once.
#[derive(Debug)]
pub struct Source {
    manifest: Manifest,
    layout: Layout,
    /// One per entry of the manifest, as it was when the source was opened; none for data in
    /// memory.
    stamps: Stamps,
    /// True if every file was last changed so long before it was opened that a later change has a
    /// different time.
    at_rest: bool,
    place: Place,
    /// For messages.
    path: PathBuf,
    left_out: LeftOut,
    handles: Mutex<LruCache<usize, Arc<File>>>,
}

/// What of a file or folder is sent.
#[derive(Clone, Debug, Default)]
pub struct SourceOptions {
    /// The parts of a folder that are not.
    pub exclusions: Exclusions,
    /// The owners and attributes that go with it.
    pub archive: Archive,
}

#[derive(Debug)]
enum Place {
    Memory(Vec<u8>),
    File(File),
    Folder(Dir),
}

impl Source {
    /// The file or folder at `path`, which the user named and may be a symlink. Symlinks within a
    /// folder are sent as symlinks; partial files of transfers under way are left out, and so is
    /// what cannot be read in a folder. File contents are not read yet.
    ///
    /// # Errors
    /// [`SourceError`]: not there, not readable, or nothing that a manifest can hold.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        Self::open_with(path, &SourceOptions::default())
    }

    /// The same, without what `options` exclude from a folder; their rules begin in it. A file that
    /// is named is sent.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, options: &SourceOptions) -> Result<Self, SourceError> {
        #[cfg(test)]
        if let Some((name, bytes)) = crate::whole::disk::found(path) {
            return Self::memory_of(&name, bytes, SystemTime::UNIX_EPOCH);
        }
        let error = |error| source_error(path, error);
        let absolute = path.canonicalize().map_err(error)?;
        let name = name_of(&absolute)?;
        // The kind comes first, because opening a pipe to look at it would wait for a writer.
        let metadata = std::fs::metadata(&absolute).map_err(error)?;
        if metadata.is_dir() {
            let dir = Dir::open_ambient_dir(&absolute, ambient_authority()).map_err(error)?;
            Self::folder(&name, dir, path, &Walk::new(&options.exclusions, options.archive))
        } else if metadata.is_file() {
            let parent = absolute.parent().unwrap_or(&absolute);
            let dir = Dir::open_ambient_dir(parent, ambient_authority()).map_err(error)?;
            Self::file(&name, &dir, &name::to_path(&name), path, options.archive)
        } else {
            Err(SourceError::Special { path: path.to_owned() })
        }
    }

    /// The file or folder at `path` below the served folder `root`. No symlink leads out of `root`;
    /// an empty path means all of it.
    ///
    /// # Errors
    /// [`SourceError`]; a server should tell strangers the same for `NotFound`, `Outside` and
    /// `Unreadable`.
    pub fn beneath(root: &Dir, path: &Path) -> Result<Self, SourceError> {
        Self::beneath_with(root, path, &SourceOptions::default())
    }

    /// The same, without what `options` exclude; their rules begin in `root`. What is excluded is
    /// not there, by whatever path it is asked for.
    ///
    /// # Errors
    /// As [`beneath`](Self::beneath).
    pub fn beneath_with(
        root: &Dir,
        path: &Path,
        options: &SourceOptions,
    ) -> Result<Self, SourceError> {
        let error = |error| source_error(path, error);
        let within = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let metadata = root.metadata(within).map_err(error)?;
        let name = name_of(path)?;
        let mut walk = Walk::new(&options.exclusions, options.archive);
        if !options.exclusions.is_empty() {
            let real = root.canonicalize(within).map_err(error)?;
            if walk.descend(root, &real, metadata.is_dir()).map_err(error)? {
                return Err(SourceError::NotFound { path: path.to_owned() });
            }
        }
        if metadata.is_dir() {
            Self::folder(&name, root.open_dir(within).map_err(error)?, path, &walk)
        } else if metadata.is_file() {
            Self::file(&name, root, within, path, options.archive)
        } else {
            Err(SourceError::Special { path: path.to_owned() })
        }
    }

    /// An object called `name` with the content `bytes`, as for input from a pipe.
    ///
    /// # Errors
    /// [`SourceError::Manifest`] if `name` is not a plain file name.
    pub fn memory(name: &str, bytes: Vec<u8>) -> Result<Self, SourceError> {
        Self::memory_of(name, bytes, SystemTime::now())
    }

    /// The same, last changed at a time.
    pub(crate) fn memory_of(
        name: &str,
        bytes: Vec<u8>,
        modified: SystemTime,
    ) -> Result<Self, SourceError> {
        let entry = Entry {
            path: String::new(),
            kind: EntryKind::file(bytes.len() as u64),
            mode: 0o644,
            modified: stamp::to_modified(modified),
            extra: None,
        };
        let path = Path::new(name);
        let mut entries = Collected::default();
        entries.push(&entry).map_err(refused(path))?;
        let contents = (entries, Stamps::default(), LeftOut::default());
        Self::new(name, contents, Place::Memory(bytes), path)
    }

    fn file(
        name: &str,
        dir: &Dir,
        within: &Path,
        shown: &Path,
        archive: Archive,
    ) -> Result<Self, SourceError> {
        let error = |error| source_error(shown, error);
        let file = open(dir, within).map_err(error)?;
        let metadata = Metadata::from_file(&file).map_err(error)?;
        if !metadata.is_file() {
            return Err(SourceError::Changed { path: shown.to_owned() });
        }
        let holes = holes::find(&file, &metadata, MAX_HOLES).map_err(error)?;
        let kind = EntryKind::File { size: metadata.len(), holes };
        let extra = archive::read(archive, &metadata, || file.try_clone()).map_err(error)?;
        let entry = Entry { extra, ..entry(String::new(), kind, &metadata) };
        let (mut entries, mut stamps) = (Collected::default(), Stamps::default());
        entries.push(&entry).map_err(refused(shown))?;
        stamps.push(&Stamp::of(&metadata));
        Self::new(name, (entries, stamps, LeftOut::default()), Place::File(file), shown)
    }

    fn folder(name: &str, dir: Dir, shown: &Path, walk: &Walk<'_>) -> Result<Self, SourceError> {
        let Walked { entries, stamps, left_out, .. } = walk.walk(&dir, shown)?;
        Self::new(name, (entries, stamps, left_out), Place::Folder(dir), shown)
    }

    fn new(
        name: &str,
        (entries, stamps, left_out): (Collected, Stamps, LeftOut),
        place: Place,
        path: &Path,
    ) -> Result<Self, SourceError> {
        let LeftOut { special, unreadable, .. } = left_out;
        let omitted = Omitted { special, unreadable };
        let manifest = Manifest::of(name, entries, omitted).map_err(refused(path))?;
        let handles = Mutex::new(LruCache::new(HANDLES));
        let layout = Layout::new(&manifest);
        let now = stamp::to_modified(SystemTime::now()).seconds;
        let at_rest = stamps.are_before(now - COARSEST_CLOCK);
        Ok(Self {
            manifest,
            layout,
            stamps,
            at_rest,
            place,
            path: path.to_owned(),
            left_out,
            handles,
        })
    }

    /// The contents of the object.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The sockets, pipes and devices in a folder, and what cannot be read in it: none is sent.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Bytes of the object.
    pub fn size(&self) -> u64 {
        self.manifest.size()
    }

    /// Appends `len` of the object's bytes, from `offset` on, to `out`.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if a file is not what it was when the source was opened,
    /// `Unreadable`, or `Range` beyond the object's end.
    pub fn read_block(
        &self,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        if !self.layout.contains(offset, len) {
            return Err(SourceError::Range { offset, len, size: self.size() });
        }
        out.reserve_exact(len);
        if let Place::Memory(bytes) = &self.place {
            out.extend_from_slice(&bytes[offset as usize..][..len]);
            return Ok(());
        }
        self.layout.pieces(offset, len).try_for_each(|piece| self.read_piece(piece, out))
    }

    /// Hashes the whole object, in blocks of [`block_size_for`] its size; calls `progress` with the
    /// number of hashed bytes.
    ///
    /// # Errors
    /// Those of [`read_block`](Self::read_block).
    pub fn hash_tree(&self, progress: impl FnMut(u64)) -> Result<HashTree, SourceError> {
        let read = |offset, len, out: &mut Vec<u8>| self.read_block(offset, len, out);
        HashTree::of_blocks(self.size(), block_size_for(self.size()), read, progress)
    }

    /// A value that is the same for two sources only if they are the same files in the same state;
    /// `None` for data in memory, and for files that may change unseen.
    pub(crate) fn state(&self) -> Option<Hash> {
        let mut hasher = blake3::Hasher::new();
        if !self.at_rest || self.stamps.len() == 0 {
            return None;
        }
        for (i, entry) in self.manifest.entries().enumerate() {
            let stamp = self.stamp_of(i, &entry);
            hasher.update(&(entry.path.len() as u64).to_le_bytes());
            hasher.update(entry.path.as_bytes()).update(&stamp.to_bytes());
            // A file system may find others when it has written the file to its disk.
            if let EntryKind::File { holes, .. } = &entry.kind {
                hasher.update(&(holes.len() as u64).to_le_bytes());
                for hole in holes {
                    hasher.update(&hole.start.to_le_bytes()).update(&hole.end.to_le_bytes());
                }
            }
        }
        Some(hasher.finalize())
    }

    /// Returns true if changes are detected: [`read_block`](Self::read_block) cannot detect one
    /// within a tick of the file system's clock.
    pub(crate) const fn is_at_rest(&self) -> bool {
        self.at_rest
    }

    /// Fails if any file has been changed since the source was opened, even if its time of
    /// modification was set back. Reading alone cannot detect that without an earlier hash; this
    /// check needs none.
    ///
    /// # Errors
    /// [`SourceError::Changed`], `Unreadable`.
    pub(crate) fn check_untouched(&self) -> Result<(), SourceError> {
        for i in 0..self.stamps.len() {
            let entry = self.manifest.entry(i);
            let now = match &self.place {
                Place::File(file) => Metadata::from_file(file),
                Place::Folder(dir) => {
                    if !matches!(entry.kind, EntryKind::File { .. }) {
                        continue;
                    }
                    dir.symlink_metadata(name::to_path(&entry.path))
                }
                Place::Memory(_) => return Ok(()),
            };
            let changed = || SourceError::Changed { path: self.path_of(i) };
            let now = now.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => changed(),
                _ => source_error(&self.path_of(i), error),
            })?;
            if Stamp::of(&now) != self.stamp_of(i, &entry) {
                return Err(changed());
            }
        }
        Ok(())
    }

    fn read_piece(&self, piece: Piece, out: &mut Vec<u8>) -> Result<(), SourceError> {
        let Piece { entry, offset, len, whole } = piece;
        let changed = || SourceError::Changed { path: self.path_of(entry) };
        let unreadable = |error| source_error(&self.path_of(entry), error);
        let shared;
        let file = match &self.place {
            Place::File(file) => file,
            Place::Folder(dir) => {
                shared = self.handle(dir, entry, whole).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => changed(),
                    _ => unreadable(error),
                })?;
                &shared
            }
            Place::Memory(_) => unreachable!("memory is read without files"),
        };
        append_at(file, offset, len, out).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => unreadable(error),
        })?;
        // After reading: a change before or during it shows, a later one does not concern these
        // bytes.
        let now = Metadata::from_file(file).map_err(unreadable)?;
        let before = self.stamp_of(entry, &self.manifest.entry(entry));
        if Stamp::of(&now).is_same_content(&before) { Ok(()) } else { Err(changed()) }
    }

    /// The open file of an entry, kept open unless this read is the only one it needs.
    fn handle(&self, dir: &Dir, entry: usize, whole: bool) -> io::Result<Arc<File>> {
        let handles = || self.handles.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(file) = handles().get(&entry) {
            return Ok(file.clone());
        }
        let file = Arc::new(open(dir, &name::to_path(self.manifest.path(entry)))?);
        if !whole {
            handles().put(entry, file.clone());
        }
        Ok(file)
    }

    /// The stamp that an entry had when the source was opened.
    fn stamp_of(&self, index: usize, entry: &Entry) -> Stamp {
        let size = if let EntryKind::File { size, .. } = entry.kind { size } else { 0 };
        self.stamps.get(index, size, entry.modified)
    }

    fn path_of(&self, entry: usize) -> PathBuf {
        join(&self.path, self.manifest.path(entry))
    }
}

/// The error of what a manifest cannot hold.
fn refused(path: &Path) -> impl Fn(ManifestError) -> SourceError + '_ {
    |source| SourceError::Manifest { path: path.to_owned(), source }
}

fn name_of(path: &Path) -> Result<String, SourceError> {
    match path.components().next_back() {
        Some(Component::Normal(name)) => {
            name::from_os(name).ok_or_else(|| SourceError::NoText { path: path.to_owned() })
        }
        _ => Ok(NAMELESS.to_owned()),
    }
}
