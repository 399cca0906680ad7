use std::path::Path;

use super::error::SinkError;
use crate::exclusions::Exclusions;
use crate::manifest::{EntryKind, Manifest};

/// The parts of a folder that the user does not want.
pub(super) struct Excluded {
    /// Whether an entry is one of them.
    pub(super) is_excluded: Vec<bool>,
    /// How many are excluded, and bytes of the object in them.
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl Excluded {
    /// Looks at every entry of the object that is to be at `path`.
    ///
    /// # Errors
    /// Nothing remains.
    pub(super) fn find(
        manifest: &Manifest,
        exclusions: &Exclusions,
        path: &Path,
    ) -> Result<Self, SinkError> {
        let count = manifest.entries().len();
        let mut found = Self { is_excluded: vec![false; count], entries: 0, bytes: 0 };
        if exclusions.is_empty() {
            return Ok(found);
        }
        // The excluded folder that the entries lie in.
        let mut within = String::new();
        for (i, entry) in manifest.entries().enumerate().skip(1) {
            let is_beneath = !within.is_empty() && entry.path.starts_with(&within);
            let is_folder = entry.kind == EntryKind::Directory;
            if !is_beneath && !exclusions.leave_out(&entry.path, is_folder, None) {
                continue;
            }
            if let EntryKind::File { size, holes } = &entry.kind {
                let empty: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
                found.bytes += size - empty;
            }
            if is_folder && !is_beneath {
                within = format!("{}/", entry.path);
            }
            found.is_excluded[i] = true;
            found.entries += 1;
        }
        if found.entries > 0 && found.entries + 1 == count as u64 {
            return Err(SinkError::AllExcluded { path: path.to_owned() });
        }
        Ok(found)
    }
}
