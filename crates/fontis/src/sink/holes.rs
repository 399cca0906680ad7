use std::fs::File;
use std::io;

use crate::file::write_all_at;
use crate::manifest::{EntryKind, Hole};

/// Zeros that are written at once where a file system has no holes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Gives a file its length and its holes if it has any. What an earlier transfer, or anybody else,
/// wrote into them goes: no hash covers it.
pub(super) fn make(file: &File, kind: &EntryKind) -> io::Result<()> {
    let EntryKind::File { size, holes } = kind else { return Ok(()) };
    if holes.is_empty() {
        return Ok(());
    }
    let had = file.metadata()?.len();
    file.set_len(*size)?;
    holes.iter().filter(|hole| hole.start < had).try_for_each(|hole| clear(file, *hole, had))
}

/// Makes a range that lies within the former length of the file read as zeros.
fn clear(file: &File, hole: Hole, had: u64) -> io::Result<()> {
    let end = hole.end.min(had);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(file, flags, hole.start, end - hole.start) {
            Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {}
            done => return Ok(done?),
        }
    }
    let mut at = hole.start;
    while at < end {
        let length = (end - at).min(ZEROS.len() as u64);
        write_all_at(file, &ZEROS[..length as usize], at)?;
        at += length;
    }
    Ok(())
}
