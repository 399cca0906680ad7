//! A disk that crashes at any system call, fills, fails, and loses power.
//!
//! What is written is in memory until it is synced: losing power keeps, of every file, the synced
//! bytes and of the others some sectors; of the names, those of synced folders and of the other
//! changes the first few (a journal of the file system), or any of them.

mod state;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fontis_base::Stream;

use self::state::{Content, Inode, State, Write};
use crate::disk::{Access, Facts, Kind};
use crate::manifest::Modified;

/// The umask of simulated users.
const UMASK: u32 = 0o022;

thread_local! {
    static CURRENT: RefCell<Option<Disk>> = const { RefCell::new(None) };
}

/// A disk, which outlives the processes that use it. Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<State>>);

/// A folder that a process has open.
#[derive(Debug)]
pub(crate) struct Place {
    disk: Disk,
    inode: usize,
    process: u64,
}

/// A file that a process has open.
#[derive(Debug)]
pub(crate) struct Open {
    place: Place,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.place.disk.state();
        let holder = &mut state.inodes[self.place.inode].holder;
        if *holder == Some(self.id) {
            *holder = None;
        }
    }
}

fn error(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

/// The name and content of a file on the disk of the machine that runs. What is sent from there is
/// read at once.
pub(crate) fn found(path: &Path) -> Option<(String, Vec<u8>)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let bytes = Disk::current()?.read(path.strip_prefix("/").ok()?.to_str()?)?;
    Some((name, bytes))
}

impl Disk {
    /// An empty disk with room for `room` bytes.
    pub(crate) fn new(seed: u64, room: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            inodes: vec![Inode::folder(0o755)],
            changes: Vec::new(),
            calls: 0,
            opened: 0,
            process: 0,
            crash_at: None,
            fail_at: None,
            is_dead: false,
            has_failed: false,
            room,
            random: Stream::new(seed, "disk"),
            writeback: 0,
        })))
    }

    /// The disk of the machine that this thread simulates.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes it the disk of the machine that this thread simulates while `work` runs.
    pub(crate) fn while_current<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(self.clone()));
        let result = work();
        CURRENT.set(before);
        result
    }

    /// Ends the process at its system call number `at`, which is not done, or done in part.
    pub(crate) fn crash_at(&self, at: Option<u64>) {
        self.state().crash_at = at;
    }

    /// Lets system call number `at` fail.
    pub(crate) fn fail_at(&self, at: Option<u64>) {
        self.state().fail_at = at;
    }

    /// Lets the system write of its own accord after one call in `every`.
    pub(crate) fn writeback(&self, every: u64) {
        self.state().writeback = every;
    }

    pub(crate) fn set_room(&self, room: u64) {
        self.state().room = room;
    }

    /// System calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Whether a call has failed in this process.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Ends the process now.
    pub(crate) fn crash(&self) {
        self.state().is_dead = true;
    }

    /// Another process begins: the last one's open files and locks are gone.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        state.process += 1;
        (state.is_dead, state.has_failed) = (false, false);
        (state.crash_at, state.fail_at) = (None, None);
        for inode in &mut state.inodes {
            inode.holder = None;
        }
    }

    /// The machine loses power and starts again.
    pub(crate) fn lose_power(&self) {
        self.state().lose_power();
        self.restart();
    }

    /// The content of a file at `path`, as the next process would read it.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state();
        match &state.inodes[state.find(0, Path::new(path)).ok()?].content {
            Content::File { now, .. } => Some(now.clone()),
            _ => None,
        }
    }

    /// The target of the link at `path`.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let state = self.state();
        match &state.inodes[state.find(0, Path::new(path)).ok()?].content {
            Content::Link(target) => Some(target.to_string_lossy().into_owned()),
            _ => None,
        }
    }

    /// Writes a file at `path` as if it had always been there.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let inode = state.add(Inode::file(0o644));
        state.inodes[inode].content =
            Content::File { now: bytes.to_vec(), synced: bytes.to_vec(), unsynced: Vec::new() };
        state.change(vec![(0, path.into(), Some(inode))]);
        state.commit(0);
    }

    /// Permission bits and time of the entry at `path`.
    pub(crate) fn attributes(&self, path: &str) -> Option<(u32, Modified)> {
        let state = self.state();
        let inode = &state.inodes[state.find(0, Path::new(path)).ok()?];
        Some((inode.mode, inode.modified))
    }

    /// The names in the root folder, without asking the process.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.state().inodes[0].content {
            Content::Folder { now, .. } => {
                now.keys().map(|name| name.to_string_lossy().into_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn at(&self, path: &Path) -> io::Result<Place> {
        let mut state = self.state();
        state.call(None)?;
        let inode = state.find(0, path)?;
        state.folder(inode)?;
        Ok(Place { disk: self.clone(), inode, process: state.process })
    }

    pub(crate) fn is_there(&self, path: &Path) -> bool {
        let mut state = self.state();
        state.call(None).is_ok() && state.find(0, path).is_ok()
    }

    pub(crate) fn make_at(&self, path: &Path) -> io::Result<()> {
        self.at(Path::new("/"))?.make_folder(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn names_at(&self, path: &Path) -> Vec<String> {
        let Ok(place) = self.at(path) else { return Vec::new() };
        let mut state = self.state();
        let Ok(names) = state.folder(place.inode) else { return Vec::new() };
        names.keys().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn next_id(&self) -> u64 {
        let mut state = self.state();
        state.opened += 1;
        state.opened
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.disk.state();
        state.call(Some(self.process))?;
        Ok(state)
    }

    fn with(&self, inode: usize) -> Self {
        Self { disk: self.disk.clone(), inode, process: self.process }
    }

    pub(crate) fn below(&self, path: &Path) -> io::Result<Self> {
        let mut state = self.enter()?;
        let inode = state.find(self.inode, path)?;
        state.folder(inode)?;
        Ok(self.with(inode))
    }

    pub(crate) fn facts(&self, path: &Path) -> io::Result<Facts> {
        let state = self.enter()?;
        let inode = state.find(self.inode, path)?;
        Ok(state.inodes[inode].facts(inode))
    }

    pub(crate) fn open_entry(&self, path: &Path, access: Access) -> io::Result<Open> {
        let state = self.enter()?;
        let inode = state.find(self.inode, path)?;
        let needed = if access == Access::Read { 0o400 } else { 0o600 };
        let entry = &state.inodes[inode];
        match &entry.content {
            Content::Link(_) => Err(error(io::ErrorKind::InvalidInput)),
            Content::Folder { .. } if access != Access::Read => {
                Err(error(io::ErrorKind::IsADirectory))
            }
            _ if entry.mode & needed != needed => Err(error(io::ErrorKind::PermissionDenied)),
            _ => {
                drop(state);
                Ok(Open { id: self.disk.next_id(), place: self.with(inode) })
            }
        }
    }

    pub(crate) fn make_file(&self, path: &Path, mode: u32) -> io::Result<Open> {
        let inode = self.enter()?.make(self.inode, path, Inode::file(mode & !UMASK))?;
        Ok(Open { id: self.disk.next_id(), place: self.with(inode) })
    }

    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.enter()?.make(self.inode, path, Inode::folder(0o777 & !UMASK)).map(drop)
    }

    pub(crate) fn make_link(&self, target: &Path, path: &Path) -> io::Result<()> {
        let link = Inode::new(Content::Link(target.to_owned()), 0o777);
        self.enter()?.make(self.inode, path, link).map(drop)
    }

    pub(crate) fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter()?;
        let inode = state.find(self.inode, path)?;
        if matches!(state.inodes[inode].content, Content::Folder { .. }) {
            return Err(error(io::ErrorKind::IsADirectory));
        }
        let (folder, name) = state.place(self.inode, path)?;
        state.change(vec![(folder, name, None)]);
        Ok(())
    }

    /// One call for each entry, as the system does it.
    pub(crate) fn unlink_folder(&self, path: &Path) -> io::Result<()> {
        let folder = self.below(path)?;
        let names: Vec<_> = folder.enter()?.folder(folder.inode)?.keys().cloned().collect();
        for name in names {
            let name = Path::new(&name);
            match folder.facts(name)?.kind {
                Kind::Folder => folder.unlink_folder(name)?,
                _ => folder.unlink(name)?,
            }
        }
        let mut state = self.enter()?;
        let (parent, name) = state.place(self.inode, path)?;
        state.change(vec![(parent, name, None)]);
        Ok(())
    }

    pub(crate) fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let mut state = self.enter()?;
        let inode = state.find(self.inode, Path::new(from))?;
        let (from, to) = (from.to_owned(), to.to_owned());
        state.change(vec![(self.inode, from, None), (self.inode, to, Some(inode))]);
        Ok(())
    }

    pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if self.disk.state().find(self.inode, Path::new(to)).is_ok() {
            drop(self.enter()?);
            return Err(error(io::ErrorKind::AlreadyExists));
        }
        self.rename_over(from, to)
    }

    pub(crate) fn exchange(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let mut state = self.enter()?;
        let (one, other) =
            (state.find(self.inode, Path::new(from))?, state.find(self.inode, Path::new(to))?);
        let (from, to) = (from.to_owned(), to.to_owned());
        state.change(vec![(self.inode, from, Some(other)), (self.inode, to, Some(one))]);
        Ok(())
    }

    pub(crate) fn set_mode_of(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut state = self.enter()?;
        let inode = state.find(self.inode, path)?;
        state.inodes[inode].mode = mode;
        Ok(())
    }

    pub(crate) fn sync_names(&self) -> io::Result<()> {
        self.enter()?.commit(self.inode);
        Ok(())
    }
}

impl Open {
    pub(crate) fn facts(&self) -> io::Result<Facts> {
        let (state, inode) = (self.place.enter()?, self.place.inode);
        Ok(state.inodes[inode].facts(inode))
    }

    pub(crate) fn claim(&self) -> io::Result<bool> {
        let mut state = self.place.enter()?;
        let holder = &mut state.inodes[self.place.inode].holder;
        Ok(*holder.get_or_insert(self.id) == self.id)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.place.enter()?.inodes[self.place.inode].mode = mode;
        Ok(())
    }

    pub(crate) fn set_time(&self, modified: Modified) -> io::Result<()> {
        self.place.enter()?.inodes[self.place.inode].modified = modified;
        Ok(())
    }

    pub(crate) fn set_length(&self, len: u64) -> io::Result<()> {
        let mut state = self.place.enter()?;
        let Content::File { now, unsynced, .. } = &mut state.inodes[self.place.inode].content
        else {
            return Err(error(io::ErrorKind::IsADirectory));
        };
        now.resize(len as usize, 0);
        unsynced.push(Write::Length(len as usize));
        Ok(())
    }

    /// A process that ends here has written a part.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.place.disk.state();
        let is_alive = !state.is_dead && state.process == self.place.process;
        if let Err(error) = state.call(Some(self.place.process)) {
            if is_alive {
                let part = state.random.below(bytes.len() as u64 + 1) as usize;
                let _ = state.write_part(self.place.inode, &bytes[..part], offset as usize);
            }
            return Err(error);
        }
        state.write(self.place.inode, bytes, offset as usize)
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let end = {
            let state = self.place.disk.state();
            state.inodes[self.place.inode].facts(0).len
        };
        self.write_at(bytes, end)
    }

    pub(crate) fn read_at(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let state = self.place.enter()?;
        let Content::File { now, .. } = &state.inodes[self.place.inode].content else {
            return Err(error(io::ErrorKind::IsADirectory));
        };
        let offset = offset as usize;
        let bytes = now.get(offset..offset + len).ok_or(error(io::ErrorKind::UnexpectedEof))?;
        out.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.place.enter()?.sync(self.place.inode);
        Ok(())
    }

    pub(crate) fn sync_disk(&self) -> io::Result<bool> {
        let mut state = self.place.enter()?;
        (0..state.inodes.len()).for_each(|inode| state.sync(inode));
        Ok(true)
    }

    pub(crate) fn available(&self) -> Option<u64> {
        Some(self.place.enter().ok()?.room)
    }
}
