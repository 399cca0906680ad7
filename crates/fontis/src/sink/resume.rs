use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::is_separator;

use fontis_proto::dfcp::{Checkpoint, Kept, KeptBlock};
use rayon::prelude::*;

use super::*;
use crate::disk::{Facts, Kind};
use crate::hash_tree::HashTree;
use crate::journal::{Header, journal_name};

/// The partial of an earlier transfer to the same place, and its journal if that can be read.
pub(super) struct Found(Option<(Journal, Header, Vec<Record>)>);

impl Found {
    /// Looks for it. Of a folder only one with the same files of the same sizes is of use, which
    /// its journal tells. A file needs none: its blocks show whether they are this object's.
    pub(super) fn look(parent: &Dir, name: &OsStr, manifest: &Manifest) -> Option<Self> {
        let partial = partial::partial_name(name);
        let Some(journal) = Journal::open(parent, &journal_name(&partial)) else {
            let is_there = parent.facts(Path::new(&partial)).is_ok();
            return (is_there && !manifest.is_folder()).then_some(Self(None));
        };
        let same = journal.1.layout == *layout_of(manifest).finalize().as_bytes();
        (same || !manifest.is_folder()).then_some(Self(Some(journal)))
    }

    /// The journal to continue, and its entries on this object's blocks.
    pub(super) fn journal(
        self,
        partial: &Partial,
        manifest: &Manifest,
        content: &[Hash],
    ) -> io::Result<(Journal, Vec<Record>)> {
        if let Some((journal, header, records)) = self.0 {
            let allowed = header.allowed;
            // The permission bits of an earlier transfer are not compared.
            if content.iter().any(|name| header == header_of(manifest, name, allowed)) {
                if manifest.is_folder() {
                    // The process that began the journal may have ended before it did this.
                    partial.parent.sync_names()?;
                }
                return Ok((journal, records));
            }
        }
        // Another object had this name: its whole blocks may serve still, its symbols may not.
        Ok((new_journal(partial, manifest, content)?, Vec::new()))
    }
}

pub(super) fn new_journal(
    partial: &Partial,
    manifest: &Manifest,
    content: &[Hash],
) -> io::Result<Journal> {
    let header = header_of(manifest, &content[0], partial.allowed);
    let names = (&*partial.journal(), &*partial.probe());
    // After a power loss a folder is of no use without its journal.
    Journal::create(&partial.parent, names, &header, manifest.is_folder())
}

fn layout_of(manifest: &Manifest) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    for entry in manifest.entries() {
        let (kind, size, target, holes) = match &entry.kind {
            EntryKind::File { size, holes } if holes.is_empty() => (0, *size, "", &[][..]),
            EntryKind::File { size, holes } => (3, *size, "", &holes[..]),
            EntryKind::Directory => (1, 0, "", &[][..]),
            EntryKind::Symlink { target } => (2, 0, target.as_str(), &[][..]),
        };
        for text in [&entry.path, target] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(&[kind]).update(&size.to_le_bytes());
        if !holes.is_empty() {
            hasher.update(&(holes.len() as u64).to_le_bytes());
        }
        for hole in holes {
            hasher.update(&hole.start.to_le_bytes()).update(&hole.end.to_le_bytes());
        }
    }
    hasher
}

fn header_of(manifest: &Manifest, content: &Hash, allowed: u32) -> Header {
    let mut hasher = layout_of(manifest);
    let layout = *hasher.finalize().as_bytes();
    Header { layout, object: *hasher.update(content.as_bytes()).finalize().as_bytes(), allowed }
}

impl Sink {
    /// Returns true if there is a partial of an interrupted transfer to `dest`; of any object, if
    /// its name is unknown.
    pub fn is_begun(dest: &Dest, name: Option<&str>) -> bool {
        let Dest::Path(path) = dest else { return false };
        let into =
            Dir::is_folder_at(path) || path.as_os_str().to_string_lossy().ends_with(is_separator);
        let own = name.map(name::to_os);
        let (place, name) = match (into, path.file_name()) {
            (true, _) => (path.as_path(), own.as_deref()),
            (false, Some(name)) => (dest::parent_of(path), Some(name)),
            (false, None) => return false,
        };
        match name {
            Some(name) => {
                let partial = partial::partial_name(name);
                Dir::is_there(&place.join(&partial))
            }
            None => Dir::names_at(place).iter().any(|name| partial::is_partial(name)),
        }
    }

    /// Makes the partial of an earlier transfer writable.
    pub(super) fn adopt(&self) -> io::Result<()> {
        let Some(dir) = &self.dir else {
            // Another object of this name may have been longer.
            let file = &self.partial.handle;
            file.set_mode(0o600)?;
            let size = self.manifest.length();
            return if file.facts()?.len > size { file.set_length(size) } else { Ok(()) };
        };
        let mut state = self.state();
        // Two names may be one here.
        let mut files = std::collections::HashSet::new();
        for (i, entry) in self.manifest.entries().enumerate().skip(1) {
            let there = match dir.facts(&name::to_path(&entry.path)) {
                Ok(there) => there,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if state.progress[i] == Progress::Skipped {
                // An earlier transfer wanted it.
                match there.is_folder() {
                    true => dir.unlink_folder(&name::to_path(&entry.path))?,
                    false => dir.unlink(&name::to_path(&entry.path))?,
                }
                continue;
            }
            let writable = if there.is_folder() { 0o700 } else { 0o600 };
            let (is_own, is_file) = (there.is_own, there.kind == Kind::File);
            if is_own && there.kind != Kind::Link && there.mode & writable != writable {
                dir.set_mode_of(&name::to_path(&entry.path), writable)?;
            }
            match &entry.kind {
                EntryKind::Directory => {}
                EntryKind::File { .. }
                    if is_file && !files.insert(identity(&there, &entry.path)) =>
                {
                    self.skip(&mut state, i);
                }
                EntryKind::File { .. } if is_file && is_own => {
                    if has_holes(&entry.kind) {
                        let file = partial::open(dir, name::to_path(&entry.path), Access::Write)?;
                        holes::make(&file, &entry.kind)?;
                    }
                    state.progress[i] = Progress::Created;
                }
                EntryKind::File { .. } | EntryKind::Symlink { .. } => {
                    dir.unlink(&name::to_path(&entry.path))?;
                }
            }
        }
        Ok(())
    }

    /// The part of this object from an earlier transfer: every block is read and checked against
    /// `tree`; the journal's symbols of other blocks are taken unchecked until their block is
    /// complete. Blocks that hold nothing but what is excluded count as there. Calls `checked` with
    /// the number of checked bytes.
    ///
    /// # Errors
    /// What the system says, as [`SinkError`].
    pub fn resume(&self, tree: &HashTree, checked: impl Fn(u64) + Sync) -> Result<Kept, SinkError> {
        let spared = self.spared_blocks(tree);
        if !self.partial.adopted && spared.is_none() {
            return Ok(Kept::default());
        }
        let is_spared = |block: &u32| spared.as_ref().is_some_and(|all| all[*block as usize]);
        let blocks = u32::try_from(tree.block_count()).unwrap_or(u32::MAX);
        let looked = AtomicU64::new(0);
        let bytes = (0..blocks).filter(is_spared).map(|one| tree.block_len(one.into()) as u64);
        self.spared.store(bytes.sum(), Ordering::Relaxed);
        let is_whole = |block: &u32| {
            if is_spared(block) || !self.partial.adopted {
                return is_spared(block);
            }
            let len = tree.block_len(u64::from(*block));
            let offset = u64::from(*block) * u64::from(tree.block_size());
            let there = self
                .read(offset, len)
                .is_some_and(|bytes| tree.verify_block(u64::from(*block), &bytes));
            let before = looked.fetch_add(len as u64, Ordering::Relaxed);
            checked(before + len as u64);
            there
        };
        let whole: Vec<u32> = match self.partial.handle.system() {
            Some(_) => (0..blocks).into_par_iter().filter(is_whole).collect(),
            // Calls of a simulated disk have an order.
            None => (0..blocks).filter(is_whole).collect(),
        };
        let mut kept = Kept::default();
        for run in whole.chunk_by(|a, b| a + 1 == *b) {
            let (first, last) = (run[0], run[run.len() - 1]);
            kept.done.push(first..last + 1);
            let start = u64::from(first) * u64::from(tree.block_size());
            let end = u64::from(last) * u64::from(tree.block_size());
            let end = end + tree.block_len(u64::from(last)) as u64;
            self.state().written.insert(start, end);
        }
        kept.begun = self.begun(tree, &whole);
        Ok(kept)
    }

    /// Stores symbols of a block that is not complete, so that a later transfer need not fetch them
    /// again.
    ///
    /// # Errors
    /// As [`write_block`](Self::write_block).
    pub fn checkpoint(&self, block_size: u32, checkpoint: &Checkpoint) -> Result<(), SinkError> {
        let Checkpoint { block, symbol_size, offset, data, runs } = checkpoint;
        let start = u64::from(*block) * u64::from(block_size) + u64::from(*offset);
        if !self.layout.contains(start, data.len()) {
            let size = self.manifest.size();
            return Err(SinkError::Range { offset: start, len: data.len(), size });
        }
        self.partial.keep();
        let mut rest = &data[..];
        for piece in self.layout.pieces(start, data.len()) {
            let (bytes, after) = rest.split_at(piece.len);
            self.write_piece(piece, bytes, false)
                .map_err(|error| SinkError::io(&self.path_of(piece.entry), error))?;
            rest = after;
        }
        let record = |(first, count): &(u32, u32)| Record {
            block: *block,
            symbol_size: *symbol_size,
            first: *first,
            count: *count,
        };
        self.journal
            .append(runs.iter().map(record))
            .map_err(|error| SinkError::io(&self.partial.path, error))
    }

    /// The symbols of blocks that are not whole, as the journal tells them.
    fn begun(&self, tree: &HashTree, whole: &[u32]) -> Vec<KeptBlock> {
        let mut begun: BTreeMap<u32, KeptBlock> = BTreeMap::new();
        for record in &self.begun {
            let Record { block, symbol_size, first, count } = *record;
            let known = u64::from(block) < tree.block_count() && symbol_size > 0;
            if !known || whole.binary_search(&block).is_ok() {
                continue;
            }
            let size = u64::from(symbol_size);
            let len = tree.block_len(u64::from(block)) as u64;
            let start = u64::from(first).saturating_mul(size).min(len);
            let end = (u64::from(first) + u64::from(count)).saturating_mul(size).min(len);
            let offset = u64::from(block) * u64::from(tree.block_size()) + start;
            let Some(bytes) = self.read(offset, (end - start) as usize) else { continue };
            let entry =
                begun.entry(block).or_insert(KeptBlock { block, symbol_size, runs: Vec::new() });
            if entry.symbol_size != symbol_size {
                // The block had been begun anew.
                *entry = KeptBlock { block, symbol_size, runs: Vec::new() };
            }
            entry.runs.push((first, bytes.into()));
        }
        begun
            .into_values()
            .filter(|kept| kept.runs.iter().any(|(_, data)| !data.is_empty()))
            .collect()
    }

    /// Bytes of the partial; `None` if they are not there.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        for piece in self.layout.pieces(offset, len) {
            let file = match &self.dir {
                None => None,
                Some(dir) => {
                    let path = self.manifest.path(piece.entry);
                    Some(partial::open(dir, name::to_path(path), Access::Read).ok()?)
                }
            };
            let file = file.as_ref().unwrap_or(&self.partial.handle);
            file.read_at(piece.offset, piece.len, &mut bytes).ok()?;
        }
        (bytes.len() == len).then_some(bytes)
    }
}

fn has_holes(kind: &EntryKind) -> bool {
    matches!(kind, EntryKind::File { holes, .. } if !holes.is_empty())
}

/// A value that two names share only if they are one file; where the system does not tell, names
/// that differ in case count as one.
fn identity(file: &Facts, path: &str) -> ((u64, u64), String) {
    (file.id, if cfg!(unix) { String::new() } else { path.to_lowercase() })
}
