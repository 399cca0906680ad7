use std::fs::File;
use std::io;

use cap_std::fs::Metadata;

use crate::manifest::Hole;
#[cfg(unix)]
use crate::stamp::{self, Stamp};

/// The least size of a hole that is kept if there are few: a page. Smaller ones take more in a
/// manifest than they are worth.
#[cfg(unix)]
const LEAST: u64 = 4096;

/// The holes of a file whose metadata were taken before, at most `room`: the largest ones.
#[cfg(unix)]
pub(super) fn find(file: &File, before: &Metadata, room: usize) -> io::Result<Vec<Hole>> {
    if stamp::is_dense(before) {
        return Ok(Vec::new());
    }
    let Some(mut holes) = seek(file, before.len()) else { return Ok(Vec::new()) };
    let mut least = LEAST;
    holes.retain(|hole| hole.end - hole.start >= least);
    while holes.len() > room {
        least *= 2;
        holes.retain(|hole| hole.end - hole.start >= least);
    }
    // Of a file that changes meanwhile all bytes count, so that reading notices it.
    let now = Metadata::from_file(file)?;
    if Stamp::of(&now) != Stamp::of(before) {
        holes.clear();
    }
    Ok(holes)
}

/// The ranges between the data of a file; `None` if the file system does not tell.
#[cfg(unix)]
fn seek(file: &File, size: u64) -> Option<Vec<Hole>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let mut holes = Vec::new();
    let mut at = 0;
    while at < size {
        let start = seek(file, SeekFrom::Hole(at)).ok()?;
        if start >= size {
            break;
        }
        let end = match seek(file, SeekFrom::Data(start)) {
            Ok(end) => end.min(size),
            // There is no more data.
            Err(Errno::NXIO) => size,
            Err(_) => return None,
        };
        // It is being filled.
        if end <= start {
            return None;
        }
        holes.push(Hole { start, end });
        at = end;
    }
    Some(holes)
}

#[cfg(not(unix))]
pub(super) fn find(_: &File, _: &Metadata, _: usize) -> io::Result<Vec<Hole>> {
    Ok(Vec::new())
}
