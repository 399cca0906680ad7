use std::io;

use crate::disk::{File, Handle as _};
use crate::manifest::EntryKind;

/// Gives a file its length and its holes if it has any. What an earlier transfer, or anybody else,
/// wrote into them goes: no hash covers it.
pub(super) fn make(file: &File, kind: &EntryKind) -> io::Result<()> {
    let EntryKind::File { size, holes } = kind else { return Ok(()) };
    if holes.is_empty() {
        return Ok(());
    }
    let had = file.facts()?.len;
    file.set_length(*size)?;
    let mut within = holes.iter().filter(|hole| hole.start < had);
    within.try_for_each(|hole| file.clear(hole.start, hole.end.min(had)))
}
