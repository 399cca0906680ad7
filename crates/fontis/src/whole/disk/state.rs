use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use fontis_base::Stream;

use super::error;
use crate::disk::{Facts, Kind};
use crate::manifest::Modified;

/// The part of a write that reaches a disk as a whole.
const SECTOR: usize = 512;
#[derive(Debug)]
pub(super) struct State {
    pub(super) inodes: Vec<Inode>,
    /// Changes of names that are not on the disk, in their order.
    pub(super) changes: Vec<Change>,
    pub(super) calls: u64,
    /// Files opened so far.
    pub(super) opened: u64,
    /// The number of the running process.
    pub(super) process: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) fail_at: Option<u64>,
    pub(super) is_dead: bool,
    pub(super) has_failed: bool,
    pub(super) room: u64,
    pub(super) random: Stream,
    /// One call in so many is followed by the system's own writing to the disk; 0: none is.
    pub(super) writeback: u64,
}

/// Names that change at once: folder, name, and what it stands for from now on.
pub(super) type Change = Vec<(usize, OsString, Option<usize>)>;

#[derive(Debug)]
pub(super) struct Inode {
    pub(super) content: Content,
    pub(super) mode: u32,
    pub(super) modified: Modified,
    pub(super) names: u32,
    pub(super) holder: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Content {
    File { now: Vec<u8>, synced: Vec<u8>, unsynced: Vec<Write> },
    Folder { now: BTreeMap<OsString, usize>, synced: BTreeMap<OsString, usize> },
    Link(PathBuf),
}

#[derive(Debug)]
pub(super) enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

impl Inode {
    pub(super) fn new(content: Content, mode: u32) -> Self {
        Self { content, mode, modified: Modified::default(), names: 0, holder: None }
    }

    pub(super) fn file(mode: u32) -> Self {
        let (now, synced, unsynced) = (Vec::new(), Vec::new(), Vec::new());
        Self::new(Content::File { now, synced, unsynced }, mode)
    }

    pub(super) fn folder(mode: u32) -> Self {
        Self::new(Content::Folder { now: BTreeMap::new(), synced: BTreeMap::new() }, mode)
    }

    pub(super) fn facts(&self, number: usize) -> Facts {
        let (kind, len) = match &self.content {
            Content::File { now, .. } => (Kind::File, now.len() as u64),
            Content::Folder { .. } => (Kind::Folder, 0),
            Content::Link(_) => (Kind::Link, 0),
        };
        let is_own = kind == Kind::Folder || kind == Kind::File && self.names == 1;
        let id = (1, number as u64);
        Facts { kind, len, mode: self.mode, is_own, id, allocated: Some(len) }
    }
}

impl State {
    /// Counts a system call of a process; an error if the process has ended, or the call fails.
    pub(super) fn call(&mut self, process: Option<u64>) -> io::Result<()> {
        if self.is_dead || process.is_some_and(|process| process != self.process) {
            return Err(io::Error::other("the process has ended"));
        }
        self.calls += 1;
        if self.crash_at.is_some_and(|at| at <= self.calls) {
            self.is_dead = true;
            return Err(io::Error::other("the process has ended"));
        }
        if self.fail_at == Some(self.calls) {
            self.has_failed = true;
            return Err(io::Error::other("the disk failed"));
        }
        if self.writeback > 0 && self.random.below(self.writeback) == 0 {
            self.write_back();
        }
        Ok(())
    }

    pub(super) fn write_back(&mut self) {
        let first = self.random.below(self.changes.len() as u64 + 1) as usize;
        let all = std::mem::take(&mut self.changes);
        for (number, change) in all.into_iter().enumerate() {
            if number < first { self.apply(change) } else { self.changes.push(change) }
        }
        let inode = self.random.below(self.inodes.len() as u64) as usize;
        if let Content::File { now, synced, unsynced } = &mut self.inodes[inode].content {
            synced.clone_from(now);
            unsynced.clear();
        }
    }

    pub(super) fn add(&mut self, inode: Inode) -> usize {
        self.inodes.push(inode);
        self.inodes.len() - 1
    }

    pub(super) fn folder(&mut self, inode: usize) -> io::Result<&mut BTreeMap<OsString, usize>> {
        match &mut self.inodes[inode].content {
            Content::Folder { now, .. } => Ok(now),
            _ => Err(error(io::ErrorKind::NotADirectory)),
        }
    }

    pub(super) fn find(&self, from: usize, path: &Path) -> io::Result<usize> {
        let mut at = from;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Content::Folder { now, .. } = &self.inodes[at].content else {
                return Err(error(io::ErrorKind::NotADirectory));
            };
            at = *now.get(name).ok_or(error(io::ErrorKind::NotFound))?;
        }
        Ok(at)
    }

    /// The folder that an entry is in, and the entry's name.
    pub(super) fn place(&self, from: usize, path: &Path) -> io::Result<(usize, OsString)> {
        let name = path.file_name().ok_or(error(io::ErrorKind::InvalidFilename))?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.find(from, parent)?, name.to_owned()))
    }

    /// Changes names, in memory.
    pub(super) fn change(&mut self, change: Change) {
        for (folder, name, inode) in &change {
            let Ok(names) = self.folder(*folder) else { continue };
            let before = match inode {
                Some(inode) => names.insert(name.clone(), *inode),
                None => names.remove(name),
            };
            if let Some(before) = before {
                self.inodes[before].names -= 1;
            }
            if let Some(inode) = inode {
                self.inodes[*inode].names += 1;
            }
        }
        self.changes.push(change);
    }

    /// Changes names on the disk.
    pub(super) fn apply(&mut self, change: Change) {
        for (folder, name, inode) in change {
            let Content::Folder { synced, .. } = &mut self.inodes[folder].content else { continue };
            match inode {
                Some(inode) => synced.insert(name, inode),
                None => synced.remove(&name),
            };
        }
    }

    /// Brings the names of a folder to the disk.
    pub(super) fn commit(&mut self, folder: usize) {
        let all = std::mem::take(&mut self.changes);
        for change in all {
            let is_of = change.iter().any(|(of, ..)| *of == folder);
            if is_of { self.apply(change) } else { self.changes.push(change) }
        }
    }

    pub(super) fn sync(&mut self, inode: usize) {
        if let Content::File { now, synced, unsynced } = &mut self.inodes[inode].content {
            synced.clone_from(now);
            unsynced.clear();
        } else {
            self.commit(inode);
        }
    }

    pub(super) fn make(&mut self, from: usize, path: &Path, inode: Inode) -> io::Result<usize> {
        let (folder, name) = self.place(from, path)?;
        if self.folder(folder)?.contains_key(&name) {
            return Err(error(io::ErrorKind::AlreadyExists));
        }
        if self.room == 0 {
            return Err(error(io::ErrorKind::StorageFull));
        }
        let inode = self.add(inode);
        self.change(vec![(folder, name, Some(inode))]);
        Ok(inode)
    }

    pub(super) fn write(&mut self, inode: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let fitting = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        self.room -= fitting as u64;
        self.write_part(inode, &bytes[..fitting], offset)?;
        if fitting < bytes.len() { Err(error(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }

    pub(super) fn write_part(
        &mut self,
        inode: usize,
        bytes: &[u8],
        offset: usize,
    ) -> io::Result<()> {
        let Content::File { now, unsynced, .. } = &mut self.inodes[inode].content else {
            return Err(error(io::ErrorKind::IsADirectory));
        };
        if now.len() < offset + bytes.len() {
            now.resize(offset + bytes.len(), 0);
        }
        now[offset..offset + bytes.len()].copy_from_slice(bytes);
        unsynced.push(Write::Bytes(offset, bytes.to_vec()));
        Ok(())
    }

    pub(super) fn lose_power(&mut self) {
        let in_order = self.random.below(2) == 0;
        let first = self.random.below(self.changes.len() as u64 + 1) as usize;
        for (number, change) in std::mem::take(&mut self.changes).into_iter().enumerate() {
            let stays = if in_order { number < first } else { self.random.below(2) == 0 };
            if stays {
                self.apply(change);
            }
        }
        for number in 0..self.inodes.len() {
            let inode = &mut self.inodes[number];
            inode.names = 0;
            match &mut inode.content {
                Content::File { now, synced, unsynced } => {
                    let kept = self.random.below(3);
                    for write in unsynced.drain(..) {
                        write.survive(
                            synced,
                            |random| match kept {
                                0 => false,
                                1 => true,
                                _ => random.below(2) == 0,
                            },
                            &mut self.random,
                        );
                    }
                    now.clone_from(synced);
                }
                Content::Folder { now, synced } => now.clone_from(synced),
                Content::Link(_) => {}
            }
        }
        for number in 0..self.inodes.len() {
            let Content::Folder { now, .. } = &self.inodes[number].content else { continue };
            for inode in now.values().copied().collect::<Vec<_>>() {
                self.inodes[inode].names += 1;
            }
        }
    }
}

impl Write {
    /// Brings the sectors that `stays` names to the disk.
    pub(super) fn survive(
        self,
        synced: &mut Vec<u8>,
        stays: impl Fn(&mut Stream) -> bool,
        random: &mut Stream,
    ) {
        match self {
            Self::Length(len) => {
                if stays(random) {
                    synced.resize(len, 0);
                }
            }
            Self::Bytes(offset, bytes) => {
                let mut at = 0;
                while at < bytes.len() {
                    let end = bytes.len().min(at + SECTOR - (offset + at) % SECTOR);
                    if stays(random) {
                        if synced.len() < offset + end {
                            synced.resize(offset + end, 0);
                        }
                        synced[offset + at..offset + end].copy_from_slice(&bytes[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
}
