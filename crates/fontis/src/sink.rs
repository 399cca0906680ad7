//! An object written to the file system, in any order, and named only when it is complete.

mod error;
mod excluded;
mod holes;
mod resume;
mod skip;
#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges is meant")]
mod tests;

use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blake3::Hash;
use lru::LruCache;

pub use error::SinkError;

use self::excluded::Excluded;
use self::resume::{Found, new_journal};
use fontis_base::IntervalSet;

use crate::archive::{self, Archive};
use crate::dest::{self, Dest};
use crate::disk::{Access, Dir, File, Folder as _, Handle as _};
use crate::exclusions::Exclusions;
use crate::journal::{Journal, Record};
use crate::layout::{Layout, Piece};
use crate::left_out::LeftOut;
use crate::manifest::{Entry, EntryKind, Manifest, Omitted};
use crate::name;
use crate::partial::{self, Partial};

const HANDLES: NonZero<usize> = NonZero::new(64).unwrap();
/// Objects of more entries are flushed by one `syncfs` instead of an `fsync` for each.
const FEW_ENTRIES: usize = 64;

/// An object that is being written to the disk. It is written under `.NAME.fontis-partial`,
/// readable by this user only, beside its destination. Dropping the sink leaves a non-empty
/// partial, from which a later sink continues. Several threads may write different blocks at once.
#[derive(Debug)]
pub struct Sink {
    manifest: Manifest,
    layout: Layout,
    /// The destination.
    path: PathBuf,
    name: OsString,
    overwrite: bool,
    archive: Archive,
    /// Attributes and owners that could not be given.
    attributes_lost: AtomicU64,
    /// Bytes of blocks that hold nothing but what is excluded.
    spared: AtomicU64,
    /// The partial folder; none for a single file.
    dir: Option<Dir>,
    state: Mutex<State>,
    partial: Partial,
    journal: Journal,
    /// The unfinished blocks in the journal when the sink was created.
    begun: Vec<Record>,
}

/// The options of writing an object.
#[derive(Clone, Debug, Default)]
pub struct SinkOptions {
    /// True if an existing destination is replaced.
    pub overwrite: bool,
    /// True if the partial of an interrupted transfer is deleted instead of continued.
    pub restart: bool,
    /// True if symbolic links are kept that point out of the object. Whatever later follows such a
    /// link reads or writes elsewhere.
    pub outward_links: bool,
    /// The owners and extended attributes that are kept.
    pub archive: Archive,
    /// The parts of a folder that are not written. Rules of the folder's own files do not count.
    pub exclusions: Exclusions,
}

#[derive(Debug)]
struct State {
    handles: LruCache<usize, Arc<File>>,
    /// The progress of each entry of the manifest.
    progress: Vec<Progress>,
    written: IntervalSet,
    left_out: LeftOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Absent,
    Created,
    /// Mode and times are set: nothing may be written any more.
    Finished,
    /// It is left out.
    Skipped,
}

impl Sink {
    /// Prepares to write `manifest`'s object at `dest`, under the manifest's name if `dest` is a
    /// folder. `content` are the names of its content (its BLAKE3 hash is one). With `overwrite`,
    /// [`finish`](Self::finish) replaces an existing object: a file by a file, a symlink itself and
    /// not its target, a folder by a folder as a whole.
    ///
    /// # Errors
    /// [`SinkError`]: the destination exists, cannot be written, is too small, or another transfer
    /// writes there.
    ///
    /// # Panics
    /// If `dest` is [`Dest::Stdout`], which is for [`StreamSink`](crate::StreamSink), or `content`
    /// is empty.
    pub fn create(
        dest: &Dest,
        manifest: Manifest,
        content: &[Hash],
        options: SinkOptions,
    ) -> Result<Self, SinkError> {
        let SinkOptions { overwrite, restart, outward_links, archive, exclusions } = options;
        let Dest::Path(dest) = dest else { panic!("standard output takes a StreamSink") };
        let (place, name) = dest::resolve(dest, manifest.name())?;
        let path = place.join(&name);
        check_names(&manifest, &path)?;
        let excluded = Excluded::find(&manifest, &exclusions, &path)?;
        let parent = dest::open(&place, &name, manifest.is_folder(), overwrite)?;
        let found = Found::look(&parent, &name, &manifest).filter(|_| !restart);
        let adopt = found.is_some();
        let partial = Partial::create(parent, &place, &name, manifest.is_folder(), adopt)?;
        let error = |error| SinkError::io(&partial.path, error);
        let (journal, begun) = match found.filter(|_| partial.adopted) {
            Some(found) => found.journal(&partial, &manifest, content).map_err(error)?,
            None => (new_journal(&partial, &manifest, content).map_err(error)?, Vec::new()),
        };
        if !manifest.is_folder() {
            holes::make(&partial.handle, &manifest.root().kind).map_err(error)?;
        }
        let there = partial.handle.facts().ok().and_then(|facts| facts.allocated);
        let there = there.filter(|_| !manifest.is_folder());
        let needed = manifest.size() - excluded.bytes;
        check_space(&partial.handle, &path, needed.saturating_sub(there.unwrap_or(0)))?;
        let dir = if manifest.is_folder() {
            Some(partial.dir().map_err(|error| SinkError::io(&partial.path, error))?)
        } else {
            None
        };
        let Omitted { special, unreadable } = manifest.omitted();
        let progress_of =
            |is_out: &bool| if *is_out { Progress::Skipped } else { Progress::Absent };
        let state = Mutex::new(State {
            handles: LruCache::new(HANDLES),
            progress: excluded.is_excluded.iter().map(progress_of).collect(),
            written: IntervalSet::default(),
            left_out: LeftOut {
                special,
                unreadable,
                excluded: excluded.entries,
                ..LeftOut::default()
            },
        });
        let layout = Layout::new(&manifest);
        let (attributes_lost, spared) = (AtomicU64::new(0), AtomicU64::new(0));
        let sink = Self {
            manifest,
            layout,
            path,
            name,
            overwrite,
            archive,
            attributes_lost,
            spared,
            dir,
            state,
            partial,
            journal,
            begun,
        };
        sink.skip_at_once(outward_links);
        sink.make_directories()?;
        if sink.partial.adopted {
            sink.adopt().map_err(|error| SinkError::io(&sink.partial.path, error))?;
        }
        Ok(sink)
    }

    /// The path of the object.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entries that are left out so far.
    pub fn left_out(&self) -> LeftOut {
        let attributes = self.attributes_lost.load(Ordering::Relaxed);
        LeftOut { attributes, ..self.state().left_out.clone() }
    }

    /// Bytes of blocks that need not come, because they hold nothing but what is excluded.
    pub(crate) fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }

    /// Bytes written so far, each counted once. Those of files that are left out count, too.
    pub fn written(&self) -> u64 {
        self.state().written.total()
    }

    /// Writes verified bytes of the object at `offset`. A file that one call holds as a whole is
    /// finished by it; writing it again changes nothing.
    ///
    /// # Errors
    /// `Range`, or what the system says, as [`SinkError`].
    pub fn write_block(&self, offset: u64, block: &[u8]) -> Result<(), SinkError> {
        if !self.layout.contains(offset, block.len()) {
            let (len, size) = (block.len(), self.manifest.size());
            return Err(SinkError::Range { offset, len, size });
        }
        // From here on there is something to go on from.
        self.partial.keep();
        let mut rest = block;
        for piece in self.layout.pieces(offset, block.len()) {
            let (bytes, after) = rest.split_at(piece.len);
            self.write_piece(piece, bytes, piece.whole)
                .map_err(|error| SinkError::io(&self.path_of(piece.entry), error))?;
            rest = after;
        }
        self.state().written.insert(offset, offset + block.len() as u64);
        Ok(())
    }

    /// Sets modes and times, brings everything to disk, then gives the object its name, at once.
    /// Returns that path, and the entries that were left out. Modes are the sender's without what
    /// this user's umask denies to new files, as with `cp`.
    ///
    /// # Errors
    /// `Incomplete` if a byte was never written; `Appeared` if something took the name meanwhile;
    /// or what the system says, as [`SinkError`].
    pub fn finish(self) -> Result<(PathBuf, LeftOut), SinkError> {
        let missing = self.manifest.size() - self.written();
        if missing > 0 {
            return Err(SinkError::Incomplete { path: self.path.clone(), missing });
        }
        self.state().handles.clear();
        let flush_each = self.manifest.entries().len() <= FEW_ENTRIES;
        // Files and symlinks before directories, whose times they change; directories deepest
        // first, because one that loses its write or search permission locks what is below.
        let mut directories = Vec::new();
        let mut below = Vec::new();
        for (i, entry) in (0..).zip(self.manifest.entries()) {
            let is_directory = entry.kind == EntryKind::Directory;
            if is_directory { &mut directories } else { &mut below }.push(i);
        }
        for i in below.into_iter().chain(directories.into_iter().rev()).map(|i: u32| i as usize) {
            self.finish_entry(i, flush_each)
                .map_err(|error| SinkError::io(&self.path_of(i), error))?;
        }
        if !flush_each {
            self.flush_all().map_err(|error| SinkError::io(&self.path, error))?;
        }
        match self.partial.publish(&self.name, self.overwrite) {
            Ok(()) => Ok((self.path.clone(), self.left_out())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A complete object is worth more than a tidy folder.
                self.partial.keep();
                let _ = self.partial.parent.unlink(Path::new(&self.partial.journal()));
                let (path, partial) = (self.path.clone(), self.partial.path.clone());
                Err(SinkError::Appeared { path, partial })
            }
            Err(error) => Err(SinkError::io(&self.path, error)),
        }
    }

    fn make_directories(&self) -> Result<(), SinkError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        for (i, entry) in self.manifest.entries().enumerate().skip(1) {
            if entry.kind == EntryKind::Directory && !self.is_skipped(i) {
                match dir.make_folder(&name::to_path(&entry.path)) {
                    Err(error)
                        if error.kind() == io::ErrorKind::AlreadyExists && self.partial.adopted => {
                    }
                    made => self
                        .unless_unstorable(&mut self.state(), i, made)
                        .map_err(|error| SinkError::io(&self.path_of(i), error))?
                        .unwrap_or_default(),
                }
            }
        }
        Ok(())
    }

    /// Writes bytes of one file; `last` says that nothing more will be written to it.
    fn write_piece(&self, piece: Piece, bytes: &[u8], last: bool) -> io::Result<()> {
        let shared;
        let file = match &self.dir {
            None => &self.partial.handle,
            Some(dir) => {
                let mut state = self.state();
                if matches!(state.progress[piece.entry], Progress::Finished | Progress::Skipped) {
                    return Ok(());
                }
                shared = match state.handles.get(&piece.entry) {
                    Some(file) => file.clone(),
                    None => {
                        let opened = self.open(dir, &mut state, piece.entry);
                        match self.unless_unstorable(&mut state, piece.entry, opened)? {
                            Some(file) => Arc::new(file),
                            None => return Ok(()),
                        }
                    }
                };
                if !last {
                    state.handles.put(piece.entry, shared.clone());
                }
                &shared
            }
        };
        file.write_at(bytes, piece.offset)?;
        if last && self.dir.is_some() {
            self.set_attributes(file, piece.entry)?;
            self.state().progress[piece.entry] = Progress::Finished;
        }
        Ok(())
    }

    /// The file of an entry, made at its full length if it is not there yet.
    fn open(&self, dir: &Dir, state: &mut State, i: usize) -> io::Result<File> {
        let entry = self.manifest.entry(i);
        if state.progress[i] != Progress::Absent {
            return partial::open(dir, name::to_path(&entry.path), Access::Write);
        }
        let file = dir.make_file(&name::to_path(&entry.path), Access::Write, 0o600)?;
        state.progress[i] = Progress::Created;
        if let EntryKind::File { size, .. } = entry.kind {
            file.set_length(size)?;
        }
        Ok(file)
    }

    fn finish_entry(&self, i: usize, flush: bool) -> io::Result<()> {
        if self.is_skipped(i) {
            return Ok(());
        }
        let entry = self.manifest.entry(i);
        let path = name::to_path(&entry.path);
        let Some(dir) = &self.dir else {
            self.set_attributes(&self.partial.handle, i)?;
            self.set_owner(i, Some(&self.partial.handle));
            return self.partial.handle.sync();
        };
        match &entry.kind {
            EntryKind::File { .. } => {
                let mut state = self.state();
                let finished = state.progress[i] == Progress::Finished;
                // Only now: what another owns would not be gone on with.
                if finished && !flush {
                    self.set_owner(i, None);
                    return Ok(());
                }
                let file = match finished {
                    true => partial::open(dir, &path, Access::Read)?,
                    false => {
                        let opened = self.open(dir, &mut state, i);
                        match self.unless_unstorable(&mut state, i, opened)? {
                            Some(file) => file,
                            None => return Ok(()),
                        }
                    }
                };
                if !finished {
                    self.set_attributes(&file, i)?;
                }
                self.set_owner(i, Some(&file));
                if flush { file.sync() } else { Ok(()) }
            }
            EntryKind::Symlink { target } => {
                let made = dir.make_link(&name::to_path(target), &path);
                if self.unless_unstorable(&mut self.state(), i, made)?.is_none() {
                    return Ok(());
                }
                self.set_owner(i, None);
                dir.set_link_time(&path, entry.modified)
            }
            // Elsewhere directories have no modes, and cannot be opened like files.
            EntryKind::Directory if cfg!(not(unix)) => Ok(()),
            EntryKind::Directory => {
                let place = if entry.path.is_empty() { Path::new(".") } else { &path };
                let file = partial::open(dir, place, Access::Read)?;
                self.set_attributes(&file, i)?;
                self.set_owner(i, Some(&file));
                if flush { file.sync() } else { Ok(()) }
            }
        }
    }

    fn set_attributes(&self, file: &File, i: usize) -> io::Result<()> {
        let Entry { mode, modified, extra, .. } = self.manifest.entry(i);
        // The mode may take the permission to set attributes away.
        if let (Some(extra), Some(file)) = (&extra, file.system()) {
            let lost = archive::set_attributes(self.archive, extra, file);
            self.attributes_lost.fetch_add(lost, Ordering::Relaxed);
        }
        // Times first: setting them needs no permission that the mode could take away on any
        // system.
        file.set_time(modified)?;
        file.set_mode(mode & self.partial.allowed)
    }

    /// Gives an entry, open or not, to its owner.
    fn set_owner(&self, i: usize, file: Option<&File>) {
        let entry = self.manifest.entry(i);
        let Some(extra) = &entry.extra else { return };
        let (file, dir) = (file.and_then(File::system), self.dir.as_ref().and_then(Dir::system));
        let is_set = match (file, dir) {
            (Some(file), _) => archive::set_owner_of(self.archive, extra, file),
            (None, Some(dir)) => {
                archive::set_owner(self.archive, extra, dir, &name::to_path(&entry.path))
            }
            (None, None) => true,
        };
        self.attributes_lost.fetch_add(u64::from(!is_set), Ordering::Relaxed);
    }

    fn flush_all(&self) -> io::Result<()> {
        if self.partial.handle.sync_disk()? {
            return Ok(());
        }
        let Some(dir) = &self.dir else { return Ok(()) };
        for entry in self.manifest.entries() {
            if let EntryKind::File { .. } = entry.kind
                && let Ok(file) = partial::open(dir, name::to_path(&entry.path), Access::Read)
            {
                file.sync()?;
            }
        }
        Ok(())
    }

    fn path_of(&self, i: usize) -> PathBuf {
        match self.manifest.path(i) {
            "" => self.path.clone(),
            below => self.path.join(name::to_path(below)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state consistent: every step of it is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_names(manifest: &Manifest, path: &Path) -> Result<(), SinkError> {
    // Under such a name a later transfer would look for its own beginning.
    let reserved = |name: &str| partial::is_partial(name);
    if path.file_name().is_some_and(|name| reserved(&name.to_string_lossy())) {
        return Err(SinkError::Reserved { path: path.to_owned() });
    }
    let mut paths = (0..manifest.entries().len()).map(|i| manifest.path(i));
    if let Some(below) = paths.find(|one| one.split('/').any(reserved)) {
        return Err(SinkError::Reserved { path: path.join(name::to_path(below)) });
    }
    let is_odd = |name: &std::ffi::OsStr| dest::is_odd_on_windows(&name.to_string_lossy());
    if cfg!(windows) && path.file_name().is_some_and(is_odd) {
        return Err(SinkError::Name { path: path.to_owned() });
    }
    Ok(())
}

/// Fails early where the object cannot fit. File systems that tell no size are taken at their word
/// later.
fn check_space(file: &File, path: &Path, needed: u64) -> Result<(), SinkError> {
    match file.available() {
        Some(available) if needed > available => {
            Err(SinkError::Space { path: path.to_owned(), needed, available })
        }
        _ => Ok(()),
    }
}
