//! An object of anybody's making, written to a disk, interrupted, and gone on with.
//!
//! The input is a length (2 bytes, big-endian), an encoded manifest of that length, and commands of
//! four bytes: what to do, a place in the object, and a number of bytes.

use std::fs;
use std::path::Path;

use fontis::{Dest, Manifest, Sink, SinkOptions};

/// More bytes and entries would only cost time.
const MAX_BYTES: u64 = 1 << 16;
const MAX_LENGTH: u64 = 1 << 24;
const MAX_ENTRIES: usize = 64;

/// Nothing panics, nothing outside the destination changes, and what is finished has the sizes of
/// its manifest.
pub(crate) fn run(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let (encoded, commands) = rest.split_at(length);
    let Ok(manifest) = Manifest::decode(encoded) else { return };
    let is_small = manifest.size() <= MAX_BYTES && manifest.length() <= MAX_LENGTH;
    if !is_small || manifest.entries().len() > MAX_ENTRIES {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let (inside, beside) = (temp.path().join("in"), temp.path().join("beside"));
    fs::create_dir(&inside).expect("a folder of our own");
    fs::write(&beside, b"untouched").expect("a file of our own");
    write(&inside, &manifest, commands);
    assert_eq!(fs::read(&beside).expect("it is there"), b"untouched");
    let names = fs::read_dir(temp.path()).expect("a folder").count();
    assert_eq!(names, 2, "something was made outside of the destination");
}

/// Writes by the commands; a sink that is dropped leaves what the next goes on with.
fn write(inside: &Path, manifest: &Manifest, commands: &[u8]) {
    let dest = Dest::new(inside.join("object"));
    let names = [blake3::hash(b"content")];
    let create = |outward_links| {
        let options = SinkOptions { outward_links, ..SinkOptions::default() };
        Sink::create(&dest, manifest.clone(), &names, options).ok()
    };
    let Some(mut sink) = create(false) else { return };
    for command in commands.as_chunks::<4>().0.iter().take(32) {
        let [what, high, low, count] = *command;
        let offset = u64::from(u16::from_be_bytes([high, low]));
        match what % 4 {
            0 | 1 => drop(sink.write_block(offset, &vec![what; usize::from(count)])),
            2 => {
                drop(sink);
                let Some(next) = create(count & 1 == 0) else { return };
                sink = next;
            }
            _ => break,
        }
    }
    let end = manifest.size();
    for offset in (0..end).step_by(4096) {
        let len = (end - offset).min(4096) as usize;
        if sink.write_block(offset, &vec![7; len]).is_err() {
            return;
        }
    }
    let Ok((path, left_out)) = sink.finish() else { return };
    let root = fs::symlink_metadata(&path).expect("what is finished is there");
    assert_eq!(root.is_dir(), manifest.is_folder());
    if !manifest.is_folder() {
        assert_eq!(root.len(), manifest.length());
    } else if left_out.total() == 0 {
        // Every entry is there, whatever the links among them point to.
        assert_eq!(count(&path) + 1, manifest.entries().len());
    }
}

/// Entries below a folder that can be read; all of them, for a folder that cannot.
fn count(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries.map(|path| 1 + if path.is_dir() && !path.is_symlink() { count(&path) } else { 0 }).sum()
}
