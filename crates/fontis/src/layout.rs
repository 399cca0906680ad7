//! The layout of an object: its offsets mapped to its files.

use crate::manifest::{EntryKind, Manifest};

/// The files of an object that have content, by where they start in it.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Object offset at which each file starts, ascending.
    starts: Vec<u64>,
    /// Index of each file's entry in the manifest.
    entries: Vec<usize>,
    size: u64,
}

/// A run of bytes of an object that lies in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Index of the file's entry in the manifest.
    pub(crate) entry: usize,
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    /// Bytes of the run, at least 1.
    pub(crate) len: usize,
    /// Returns true if the run is the whole file.
    pub(crate) whole: bool,
}

impl Layout {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        let (mut starts, mut entries, mut size) = (Vec::new(), Vec::new(), 0);
        for (i, entry) in manifest.entries().iter().enumerate() {
            if let EntryKind::File { size: bytes @ 1.. } = entry.kind {
                starts.push(size);
                entries.push(i);
                size += bytes;
            }
        }
        Self { starts, entries, size }
    }

    /// Returns true if `len` bytes at `offset` are within the object.
    pub(crate) fn contains(&self, offset: u64, len: usize) -> bool {
        offset.checked_add(len as u64).is_some_and(|end| end <= self.size)
    }

    /// The pieces that make up `len` bytes at `offset`, in order; they end where the object ends.
    pub(crate) fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> {
        let end = offset.saturating_add(len as u64).min(self.size);
        let first = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let mut at = offset;
        (first..self.starts.len()).map_while(move |i| {
            let file_end = self.starts.get(i + 1).copied().unwrap_or(self.size);
            let piece_len = end.min(file_end).checked_sub(at).filter(|&len| len > 0)?;
            let piece = Piece {
                entry: self.entries[i],
                offset: at - self.starts[i],
                len: piece_len as usize,
                whole: at == self.starts[i] && piece_len == file_end - at,
            };
            at += piece_len;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Entry, Modified};

    fn layout(sizes: &[u64]) -> Layout {
        let entry =
            |path: String, kind| Entry { path, kind, mode: 0, modified: Modified::default() };
        let files = sizes
            .iter()
            .enumerate()
            .map(|(i, &size)| entry(format!("{i:03}"), EntryKind::File { size }));
        let root = entry(String::new(), EntryKind::Directory);
        Layout::new(&Manifest::new("x", [root].into_iter().chain(files).collect()).unwrap())
    }

    #[test]
    fn every_range_maps_to_the_bytes_that_a_naive_count_finds() {
        let sizes = [0, 3, 1, 0, 0, 5, 2, 0];
        let layout = layout(&sizes);
        let naive: Vec<(usize, u64)> = sizes
            .iter()
            .enumerate()
            .flat_map(|(i, &size)| (0..size).map(move |offset| (i + 1, offset)))
            .collect();
        for start in 0..=naive.len() {
            for end in start..=naive.len() {
                let pieces: Vec<_> = layout.pieces(start as u64, end - start).collect();
                let bytes: Vec<_> = pieces
                    .iter()
                    .flat_map(|p| (0..p.len as u64).map(|i| (p.entry, p.offset + i)))
                    .collect();
                assert_eq!(bytes, naive[start..end]);
                for piece in pieces {
                    let size = sizes[piece.entry - 1];
                    assert_eq!(piece.whole, piece.offset == 0 && piece.len as u64 == size);
                }
            }
        }
        assert!(layout.contains(11, 0) && !layout.contains(11, 1));
        assert!(!layout.contains(u64::MAX, 2));
    }

    #[test]
    fn an_object_without_bytes_has_no_pieces() {
        assert_eq!(layout(&[0, 0]).pieces(0, 10).count(), 0);
    }
}
