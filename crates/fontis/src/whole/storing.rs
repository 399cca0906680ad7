//! The code that stores an incoming object, on a disk that crashes, fails, fills and loses power.
//!
//! A run stores one object in as many processes as it takes. After each it may be that nothing has
//! the final name, or the whole object has it, with its attributes. An object that was reported as
//! stored is there for ever. Whatever is intact when a process begins is not fetched again.

use std::collections::BTreeSet;
use std::path::Path;

use fontis_base::Stream;
use fontis_proto::dfcp::Checkpoint;

use super::disk::Disk;
use super::{first_seed, runs};
use crate::dest::Dest;
use crate::hash_tree::HashTree;
use crate::manifest::{Entry, EntryKind, Manifest, Modified};
use crate::sink::{Sink, SinkError, SinkOptions};

const BLOCK: u32 = 1024;
const SYMBOL: u16 = 128;
const NAME: &str = "object";
const TARGET: &str = "elsewhere";
const MODIFIED: Modified = Modified { seconds: 1_000_000_000, nanos: 5 };

/// Seeds that have found something: a file whose journal a power loss took was fetched anew (10);
/// a name was reported as stored although the sync of its folder had failed (32); a crash while the
/// journal of another object was replaced made a folder useless (19553); so did a crash before the
/// journal's name was synced, and a power loss in the next process (5470).
const FOUND: [u64; 4] = [10, 32, 5470, 19_553];

/// An object, and what it replaces.
struct Object {
    manifest: Manifest,
    /// The contents of its files, by their paths; one without a path for a file.
    files: Vec<(String, Vec<u8>)>,
    content: Vec<u8>,
    tree: HashTree,
    replaces: Option<Vec<u8>>,
}

fn bytes(random: &mut Stream, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    random.fill(&mut bytes);
    bytes
}

impl Object {
    fn new(random: &mut Stream) -> Self {
        let entry = |path: &str, kind, mode| {
            let path = path.to_owned();
            Entry { path, kind, mode, modified: MODIFIED, extra: None }
        };
        let is_folder = random.below(2) == 0;
        let mut entries = Vec::new();
        let mut files = Vec::new();
        if is_folder {
            entries.push(entry("", EntryKind::Directory, 0o755));
            for number in 0..1 + random.below(4) {
                let path = format!("{number}");
                if random.below(4) == 0 {
                    entries.push(entry(&path, EntryKind::Directory, 0o755));
                    continue;
                }
                if random.below(4) == 0 {
                    let target = TARGET.to_owned();
                    entries.push(entry(&path, EntryKind::Symlink { target }, 0o777));
                    continue;
                }
                let len = random.below(5 * u64::from(BLOCK));
                entries.push(entry(&path, EntryKind::file(len), 0o644));
                files.push((path, bytes(random, len)));
            }
            if random.below(16) == 0 {
                // More than are synced one by one.
                for number in 100..170 {
                    let (path, len) = (format!("{number}"), random.below(40));
                    entries.push(entry(&path, EntryKind::file(len), 0o644));
                    files.push((path, bytes(random, len)));
                }
            }
        } else {
            let len = random.below(10 * u64::from(BLOCK));
            entries.push(entry("", EntryKind::file(len), 0o644));
            files.push((String::new(), bytes(random, len)));
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        files.sort();
        let content: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let tree = HashTree::of_reader(&content[..], BLOCK, |_| ()).unwrap();
        let replaces = (!is_folder && random.below(3) == 0).then(|| bytes(random, 700));
        let manifest = Manifest::new(NAME, entries).unwrap();
        Self { manifest, files, content, tree, replaces }
    }

    /// Another object with the same names and sizes, and some of the content.
    fn other(&self, random: &mut Stream) -> Self {
        let mut files = self.files.clone();
        for (_, bytes) in &mut files {
            if random.below(2) == 0 {
                random.fill(bytes);
            }
        }
        let content: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let tree = HashTree::of_reader(&content[..], BLOCK, |_| ()).unwrap();
        let (manifest, replaces) = (self.manifest.clone(), self.replaces.clone());
        Self { manifest, files, content, tree, replaces }
    }

    /// Whether the object has its final name, with all that belongs to it.
    fn is_stored(&self, disk: &Disk) -> Result<bool, String> {
        if self.replaces.is_some() && !disk.names().iter().any(|name| name == NAME) {
            return Err("what was to be replaced is gone".to_owned());
        }
        if !self.is_there(disk) {
            return Ok(false);
        }
        for entry in self.manifest.entries() {
            let path = format!("{NAME}/{}", entry.path);
            let is_there = match &entry.kind {
                EntryKind::Symlink { target } => disk.link(&path).as_ref() == Some(target),
                _ => disk.attributes(path.trim_end_matches('/')).is_some(),
            };
            if !is_there {
                return Err(format!("{path} is not there"));
            }
        }
        for (path, bytes) in &self.files {
            let path = Path::new(NAME).join(path);
            let path = path.to_string_lossy();
            let path = path.trim_end_matches('/');
            let there = disk.read(path).ok_or_else(|| format!("{path} is not there"))?;
            if there != *bytes {
                return Err(format!("{path} has other bytes than were sent"));
            }
            if disk.attributes(path) != Some((0o644, MODIFIED)) {
                return Err(format!("{path} has other attributes: {:?}", disk.attributes(path)));
            }
        }
        Ok(true)
    }

    /// Whether something beside what it replaces has its name.
    fn is_there(&self, disk: &Disk) -> bool {
        let is_named = disk.names().iter().any(|name| name == NAME);
        is_named && (self.replaces.is_none() || disk.read(NAME) != self.replaces)
    }

    fn block(&self, block: u32) -> &[u8] {
        let start = block as usize * BLOCK as usize;
        &self.content[start..start + self.tree.block_len(u64::from(block))]
    }

    /// The blocks that are whole in the partial.
    fn intact(&self, disk: &Disk) -> BTreeSet<u32> {
        let partial = format!(".{NAME}.fontis-partial");
        let mut there = Vec::new();
        for (path, bytes) in &self.files {
            let path = Path::new(&partial).join(path);
            let path = path.to_string_lossy();
            let mut file = disk.read(path.trim_end_matches('/')).unwrap_or_default();
            // What is not there differs from what should be.
            while file.len() < bytes.len() {
                file.push(!bytes[file.len()]);
            }
            there.extend_from_slice(&file[..bytes.len()]);
        }
        let blocks = 0..self.tree.block_count() as u32;
        let whole = |block: &u32| {
            let start = *block as usize * BLOCK as usize;
            there[start..].starts_with(self.block(*block))
        };
        blocks.filter(whole).collect()
    }
}

/// What one process did.
struct Done {
    /// The blocks that it did not have to fetch.
    resumed: BTreeSet<u32>,
    /// Those that it stored.
    stored: BTreeSet<u32>,
    finished: Result<(), SinkError>,
}

/// Stores all of the object that is not there.
fn store(object: &Object, random: &mut Stream) -> Done {
    let mut done = Done { resumed: BTreeSet::new(), stored: BTreeSet::new(), finished: Ok(()) };
    done.finished = try_store(object, random, &mut done.resumed, &mut done.stored);
    done
}

fn try_store(
    object: &Object,
    random: &mut Stream,
    resumed: &mut BTreeSet<u32>,
    stored: &mut BTreeSet<u32>,
) -> Result<(), SinkError> {
    let dest = Dest::new(format!("/{NAME}"));
    let options = SinkOptions { overwrite: object.replaces.is_some(), ..SinkOptions::default() };
    let names = [object.tree.root()];
    let sink = Sink::create(&dest, object.manifest.clone(), &names, options)?;
    let kept = sink.resume(&object.tree, |_| ())?;
    resumed.extend(kept.done.iter().cloned().flatten());
    for part in &kept.begun {
        // Symbols of the journal count only if their block is right, and are mostly right.
        assert!(!resumed.contains(&part.block));
    }
    let mut lacking: Vec<u32> =
        (0..object.tree.block_count() as u32).filter(|block| !resumed.contains(block)).collect();
    while !lacking.is_empty() {
        let block = lacking.swap_remove(random.below(lacking.len() as u64) as usize);
        let data = object.block(block);
        if random.below(3) == 0 && data.len() > usize::from(SYMBOL) {
            let data = data[..usize::from(SYMBOL)].to_vec().into();
            let runs = vec![(0, 1)];
            let part = Checkpoint { block, symbol_size: SYMBOL, offset: 0, data, runs };
            sink.checkpoint(BLOCK, &part)?;
        }
        sink.write_block(u64::from(block) * u64::from(BLOCK), data)?;
        stored.insert(block);
    }
    sink.finish().map(drop)
}

/// How the process of a run ends before its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Crash,
    PowerLoss,
    /// A call fails, and the process goes on.
    Failure,
    Full,
}

/// One object, stored through as many ends as happen. Returns how many power losses there were.
fn run(seed: u64) -> Result<u64, String> {
    let mut random = Stream::new(seed, "storing");
    let object = Object::new(&mut random);
    let disk = Disk::new(seed, u64::MAX);
    if let Some(before) = &object.replaces {
        disk.put(NAME, before);
    }
    disk.writeback([0, 3, 20][random.below(3) as usize]);
    let mut losses = 0;
    let mut is_stored = false;
    if random.below(4) == 0 {
        let other = object.other(&mut random);
        disk.crash_at(Some(1 + random.below(40)));
        disk.while_current(|| store(&other, &mut random).finished.is_ok());
        disk.restart();
        if other.is_stored(&disk)? {
            return Ok(0);
        }
    }
    for _ in 0..1 + random.below(4) {
        let end = [End::Crash, End::PowerLoss, End::Failure, End::Full];
        let end = end[random.below(4) as usize];
        let at = disk.calls() + 1 + random.below(60);
        match end {
            End::Crash | End::PowerLoss => disk.crash_at(Some(at)),
            End::Failure => disk.fail_at(Some(at)),
            End::Full => disk.set_room(random.below(object.content.len() as u64 + 200)),
        }
        is_stored |= process(&object, &disk, &mut random, is_stored)?;
        disk.set_room(u64::MAX);
        if end == End::PowerLoss {
            disk.lose_power();
            losses += 1;
        } else if disk.is_dead() || random.below(2) == 0 {
            disk.restart();
        }
        check(&object, &disk, is_stored)?;
    }
    disk.lose_power();
    losses += 1;
    check(&object, &disk, is_stored)?;
    // An end without trouble.
    last(&object, &disk, &mut random, is_stored)?;
    Ok(losses + 1)
}

/// Lets a process store the object, unless it is there; returns whether it said that it had.
fn process(
    object: &Object,
    disk: &Disk,
    random: &mut Stream,
    was_stored: bool,
) -> Result<bool, String> {
    if was_stored || object.is_stored(disk)? {
        return Ok(was_stored);
    }
    let intact = object.intact(disk);
    let done = disk.while_current(|| store(object, random));
    let is_unhurt = !disk.is_dead() && !disk.has_failed() && done.finished.is_ok();
    if is_unhurt && !intact.is_subset(&done.resumed) {
        return Err(format!("{intact:?} were intact, and {:?} were resumed", done.resumed));
    }
    if !disk.is_dead() && done.finished.is_err() && !object.is_stored(disk)? {
        // It lives, and has closed its files.
        let (after, before) = (object.intact(disk), done.stored);
        if !before.is_subset(&after) {
            return Err(format!("{before:?} were stored, and {after:?} are intact"));
        }
    }
    // Nobody hears the words of a process that has ended.
    Ok(done.finished.is_ok() && !disk.is_dead())
}

fn check(object: &Object, disk: &Disk, was_stored: bool) -> Result<(), String> {
    let is_stored = object.is_stored(disk)?;
    if was_stored && !is_stored {
        Err("an object that was stored is lost".to_owned())
    } else {
        Ok(())
    }
}

#[test]
fn an_object_is_stored_whole_or_not_at_all_whatever_the_disk_does() {
    let first = first_seed(1);
    let mut losses = 0;
    for seed in FOUND.into_iter().chain(first..first + runs(20_000)) {
        losses += run(seed).unwrap_or_else(|fault| panic!("FONTIS_SEED={seed}: {fault}"));
    }
    println!("{losses} power losses");
}

/// Every call of a transfer is the last one of a process, once followed by a power loss, once not.
#[test]
fn a_crash_at_each_call_leaves_nothing_wrong() {
    let first = first_seed(1);
    let mut crashes = 0;
    // A seed is hundreds of runs.
    for seed in first..first + runs(20_000).div_ceil(500) {
        let object = Object::new(&mut Stream::new(seed, "storing"));
        for is_power_loss in [false, true] {
            for at in 1.. {
                let mut random = Stream::new(seed, "order");
                let disk = Disk::new(seed ^ at, u64::MAX);
                if let Some(before) = &object.replaces {
                    disk.put(NAME, before);
                }
                if seed % 2 == 0 {
                    // The beginning of another object has the name.
                    let other = object.other(&mut random);
                    disk.crash_at(Some(45));
                    disk.while_current(|| store(&other, &mut random).finished.is_ok());
                    disk.restart();
                    if object.is_there(&disk) {
                        break;
                    }
                }
                disk.crash_at(Some(disk.calls() + at));
                let crashed = crash(&object, &disk, &mut random, is_power_loss);
                match crashed {
                    Ok(true) => crashes += 1,
                    Ok(false) => break,
                    Err(fault) => panic!("FONTIS_SEED={seed}, call {at}: {fault}"),
                }
            }
        }
    }
    println!("{crashes} crashes");
}

/// Stores the object in two processes, of which the first may crash; false if it did not.
fn crash(
    object: &Object,
    disk: &Disk,
    random: &mut Stream,
    is_power_loss: bool,
) -> Result<bool, String> {
    let is_stored = process(object, disk, random, false)?;
    if !disk.is_dead() {
        return Ok(false);
    }
    if is_power_loss {
        disk.lose_power();
    } else {
        disk.restart();
    }
    check(object, disk, is_stored)?;
    last(object, disk, random, is_stored).map(|()| true)
}

/// A process that nothing hurts, and a power loss.
fn last(object: &Object, disk: &Disk, random: &mut Stream, was: bool) -> Result<(), String> {
    let is_stored = process(object, disk, random, was)?;
    if !object.is_stored(disk)? {
        return Err("an object is not stored although nothing fails".to_owned());
    }
    disk.lose_power();
    check(object, disk, is_stored)
}
