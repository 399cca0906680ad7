use std::io;

use super::{Progress, Sink, State};
use crate::dest;
use crate::disk::{Dir, Folder as _, Kind};
use crate::hash_tree::HashTree;
use crate::layout::Piece;
use crate::manifest::{Entry, EntryKind};
use crate::name;

impl Sink {
    /// For each block whether it holds nothing but what is excluded, if anything is.
    pub(super) fn spared_blocks(&self, tree: &HashTree) -> Option<Vec<bool>> {
        let state = self.state();
        let is_skipped = |piece: Piece| state.progress[piece.entry] == Progress::Skipped;
        let is_spared = |block: u64| {
            let offset = block * u64::from(tree.block_size());
            self.layout.pieces(offset, tree.block_len(block)).all(is_skipped)
        };
        (state.left_out.excluded > 0).then(|| (0..tree.block_count()).map(is_spared).collect())
    }

    pub(super) fn is_skipped(&self, entry: usize) -> bool {
        self.state().progress[entry] == Progress::Skipped
    }

    /// Leaves out what this system cannot or should not have.
    pub(super) fn skip_at_once(&self, outward_links: bool) {
        let mut state = self.state();
        for (i, entry) in self.manifest.entries().enumerate().skip(1) {
            if self.manifest.is_outward(i) && !outward_links {
                state.progress[i] = Progress::Skipped;
                state.left_out.links += 1;
                state.left_out.name(&self.path_of(i));
            } else if cfg!(windows) && entry.path.split('/').any(dest::is_odd_on_windows) {
                self.skip(&mut state, i);
            }
        }
    }

    /// The result of making an entry; `None` if the file system cannot hold its name, so that it is
    /// left out with all beneath it.
    pub(super) fn unless_unstorable<T>(
        &self,
        state: &mut State,
        entry: usize,
        made: io::Result<T>,
    ) -> io::Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if is_unstorable(&error) && !self.is_planted(entry) => {
                self.skip(state, entry);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns true if a link is in the place of a file or folder. Links are made last, so it is
    /// another's.
    fn is_planted(&self, entry: usize) -> bool {
        let Entry { path, kind, .. } = self.manifest.entry(entry);
        let is_link = |dir: &Dir| {
            dir.facts(&name::to_path(&path)).is_ok_and(|there| there.kind == Kind::Link)
        };
        !matches!(kind, EntryKind::Symlink { .. }) && self.dir.as_ref().is_some_and(is_link)
    }

    pub(super) fn skip(&self, state: &mut State, entry: usize) {
        let Entry { path, kind, .. } = self.manifest.entry(entry);
        let (above, entries) = (format!("{path}/"), self.manifest.entries().len());
        let is_folder = kind == EntryKind::Directory;
        let beneath = |i: &usize| is_folder && self.manifest.path(*i).starts_with(&above);
        for i in std::iter::once(entry).chain((entry + 1..entries).take_while(beneath)) {
            if state.progress[i] != Progress::Skipped {
                state.progress[i] = Progress::Skipped;
                state.left_out.names += 1;
                state.left_out.name(&self.path_of(i));
            }
        }
    }
}

/// Returns true if a name cannot be here: the file system has other rules for names, or takes it
/// for one that is there.
fn is_unstorable(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput};
    let is_unknown_text = {
        #[cfg(unix)]
        {
            error.raw_os_error() == Some(rustix::io::Errno::ILSEQ.raw_os_error())
        }
        #[cfg(not(unix))]
        {
            false
        }
    };
    matches!(error.kind(), AlreadyExists | InvalidFilename | InvalidInput) || is_unknown_text
}
