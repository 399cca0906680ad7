//! The layout of an object: its offsets mapped to its files.

use crate::manifest::{EntryKind, Hole, Manifest, reserve};

/// The runs of bytes between the holes of an object's files, by where they start in it. A run takes
/// 12 bytes, because there may be a million of them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Object offset at which each run starts, ascending.
    starts: Vec<u64>,
    /// The file of each run.
    files: Vec<Of>,
    /// Bytes from the start of the file, for the runs of files with holes, by their indices.
    offsets: Vec<(u32, u64)>,
    size: u64,
}

/// The file of a run: its entry in the manifest, which has at most 2²⁰, and two flags.
#[derive(Debug, Clone, Copy)]
struct Of(u32);

impl Of {
    /// The file has holes.
    const SPARSE: u32 = 1 << 31;
    /// The file has other runs, too.
    const SEVERAL: u32 = 1 << 30;

    const fn entry(self) -> usize {
        (self.0 & !(Self::SPARSE | Self::SEVERAL)) as usize
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
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
    /// True if it is all that the file has beside holes.
    pub(crate) whole: bool,
}

impl Layout {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        let (mut starts, mut files) = (Vec::new(), Vec::new());
        let (mut offsets, mut size) = (Vec::new(), 0);
        for (entry, of) in (0..).zip(manifest.entries()) {
            let EntryKind::File { size: length, holes } = &of.kind else { continue };
            let sparse = if holes.is_empty() { 0 } else { Of::SPARSE };
            let first = files.len();
            let mut offset = 0;
            for (start, end) in data_ends(*length, holes) {
                if start > offset {
                    if !holes.is_empty() {
                        offsets.push((files.len() as u32, offset));
                    }
                    reserve(&mut starts);
                    reserve(&mut files);
                    starts.push(size);
                    files.push(Of(entry | sparse));
                    size += start - offset;
                }
                offset = end;
            }
            if files.len() - first > 1 {
                files[first..].iter_mut().for_each(|of| of.0 |= Of::SEVERAL);
            }
        }
        Self { starts, files, offsets, size }
    }

    /// The offset in its file at which a run begins.
    fn offset_of(&self, run: usize) -> u64 {
        if !self.files[run].has(Of::SPARSE) {
            return 0;
        }
        let at = self.offsets.binary_search_by_key(&(run as u32), |(run, _)| *run);
        at.map_or(0, |at| self.offsets[at].1)
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
            let run_end = self.starts.get(i + 1).copied().unwrap_or(self.size);
            let piece_len = end.min(run_end).checked_sub(at).filter(|&len| len > 0)?;
            let file = self.files[i];
            let alone = !file.has(Of::SEVERAL);
            let piece = Piece {
                entry: file.entry(),
                offset: self.offset_of(i) + (at - self.starts[i]),
                len: piece_len as usize,
                whole: alone && at == self.starts[i] && piece_len == run_end - at,
            };
            at += piece_len;
            Some(piece)
        })
    }
}

/// The ends of a file's runs, each with the start of the next.
fn data_ends(size: u64, holes: &[Hole]) -> impl Iterator<Item = (u64, u64)> {
    holes.iter().map(|hole| (hole.start, hole.end)).chain([(size, size)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Entry, Modified};

    fn layout(sizes: &[u64]) -> Layout {
        layout_of(sizes.iter().map(|&size| EntryKind::file(size)))
    }

    fn layout_of(files: impl IntoIterator<Item = EntryKind>) -> Layout {
        let entry = |path: String, kind| Entry {
            path,
            kind,
            mode: 0,
            modified: Modified::default(),
            extra: None,
        };
        let files = files.into_iter().enumerate().map(|(i, kind)| entry(format!("{i:03}"), kind));
        let root = entry(String::new(), EntryKind::Directory);
        Layout::new(&Manifest::new("x", [root].into_iter().chain(files).collect()).unwrap())
    }

    /// Every range of the object is in the pieces of these bytes: of which entry, and where there.
    fn check(layout: &Layout, naive: &[(usize, u64)]) {
        for start in 0..=naive.len() {
            for end in start..=naive.len() {
                let pieces: Vec<_> = layout.pieces(start as u64, end - start).collect();
                let bytes: Vec<_> = pieces
                    .iter()
                    .flat_map(|p| (0..p.len as u64).map(|i| (p.entry, p.offset + i)))
                    .collect();
                assert_eq!(bytes, naive[start..end]);
                for piece in pieces {
                    let all = naive.iter().filter(|(entry, _)| *entry == piece.entry).count();
                    assert_eq!(piece.whole, piece.len == all, "{piece:?}");
                }
            }
        }
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
        check(&layout, &naive);
        assert!(layout.contains(11, 0) && !layout.contains(11, 1));
        assert!(!layout.contains(u64::MAX, 2));
    }

    #[test]
    fn holes_are_passed_over() {
        let hole = |start, end| Hole { start, end };
        let sparse = |size, holes: &[Hole]| EntryKind::File { size, holes: holes.to_vec() };
        let layout = layout_of([
            sparse(10, &[hole(0, 4), hole(6, 7)]),
            sparse(9, &[hole(0, 9)]),
            sparse(8, &[hole(2, 8)]),
            EntryKind::file(3),
        ]);
        // The bytes of the object: two and three of the first file, two of the third, the last.
        let naive =
            [(1, 4), (1, 5), (1, 7), (1, 8), (1, 9), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2)];
        check(&layout, &naive);
        assert!(layout.contains(0, 10) && !layout.contains(0, 11));
    }

    #[test]
    fn an_object_without_bytes_has_no_pieces() {
        assert_eq!(layout(&[0, 0]).pieces(0, 10).count(), 0);
    }
}
