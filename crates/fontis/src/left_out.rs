use std::path::Path;

use crate::printable::printable;

/// The paths that are named at most.
const NAMED: usize = 16;

/// The entries of a folder that a transfer left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Sockets, pipes and devices at the sender.
    pub special: u64,
    /// Files and folders that the sender may not read; a folder counts once.
    pub unreadable: u64,
    /// Symbolic links that point out of the folder, and that the receiver does not keep.
    pub links: u64,
    /// Files, folders and links whose names the receiver's file system cannot hold.
    pub names: u64,
    /// Extended attributes and owners that the receiver cannot or shall not give; see
    /// [`Archive`](crate::Archive).
    pub attributes: u64,
    /// Files, folders and links that the receiver excluded. They are in no total: the user did not
    /// want them.
    pub excluded: u64,
    /// The first paths that this side left out, escaped for terminals.
    pub first: Vec<String>,
}

impl LeftOut {
    /// Entries in all that were left out although they were wanted.
    pub const fn total(&self) -> u64 {
        let sender = self.special.saturating_add(self.unreadable);
        let receiver = self.links.saturating_add(self.names).saturating_add(self.attributes);
        sender.saturating_add(receiver)
    }

    /// Names a path, if few are named yet.
    pub(crate) fn name(&mut self, path: &Path) {
        if self.first.len() < NAMED {
            self.first.push(printable(path));
        }
    }
}
