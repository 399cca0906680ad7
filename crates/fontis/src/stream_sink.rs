//! An object written in order to standard output or any other stream.

use std::io::Write;
use std::path::Path;

use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::sink::SinkError;

/// Zeros that are written at once for a hole.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Takes the blocks of a single file in order. What it was given is out: a stream cannot be taken
/// back.
#[derive(Debug)]
pub struct StreamSink<W> {
    writer: W,
    layout: Layout,
    size: u64,
    next: u64,
    /// The size of the file, and the bytes of it that have been written: a stream has no holes.
    length: u64,
    place: u64,
}

impl<W: Write> StreamSink<W> {
    /// A sink for `manifest`'s file.
    ///
    /// # Errors
    /// [`SinkError::FolderToStream`].
    pub fn new(writer: W, manifest: &Manifest) -> Result<Self, SinkError> {
        if manifest.is_folder() {
            return Err(SinkError::FolderToStream { name: manifest.name().to_owned() });
        }
        let (layout, size, length) = (Layout::new(manifest), manifest.size(), manifest.length());
        Ok(Self { writer, layout, size, next: 0, length, place: 0 })
    }

    /// Offset of the byte to write next.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Writes the block at `offset`, which must be [`position`](Self::position).
    ///
    /// # Errors
    /// `Order`, `Range`, or what the stream says, as [`SinkError`].
    pub fn write_block(&mut self, offset: u64, block: &[u8]) -> Result<(), SinkError> {
        if offset != self.next {
            return Err(SinkError::Order { expected: self.next, actual: offset });
        }
        if block.len() as u64 > self.size - self.next {
            return Err(SinkError::Range { offset, len: block.len(), size: self.size });
        }
        let mut rest = block;
        for piece in self.layout.pieces(offset, block.len()) {
            let (bytes, after) = rest.split_at(piece.len);
            fill(&mut self.writer, &mut self.place, piece.offset)?;
            self.writer.write_all(bytes).map_err(stream_error)?;
            self.place += bytes.len() as u64;
            rest = after;
        }
        self.next += block.len() as u64;
        Ok(())
    }

    /// Flushes, and returns the stream, if everything was written.
    ///
    /// # Errors
    /// `Incomplete`, or what the stream says, as [`SinkError`].
    pub fn finish(mut self) -> Result<W, SinkError> {
        match self.size - self.next {
            0 => {
                fill(&mut self.writer, &mut self.place, self.length)?;
                self.writer.flush().map_err(stream_error)?;
                Ok(self.writer)
            }
            missing => Err(SinkError::Incomplete { path: "standard output".into(), missing }),
        }
    }
}

/// Writes zeros from `place` to `end`.
fn fill(writer: &mut impl Write, place: &mut u64, end: u64) -> Result<(), SinkError> {
    while *place < end {
        let length = (end - *place).min(ZEROS.len() as u64);
        writer.write_all(&ZEROS[..length as usize]).map_err(stream_error)?;
        *place += length;
    }
    Ok(())
}

fn stream_error(error: std::io::Error) -> SinkError {
    SinkError::io(Path::new("standard output"), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::manifest::{Entry, EntryKind, Hole, Modified};

    #[test]
    fn a_stream_takes_blocks_in_order_and_only_complete_objects_finish() {
        let source = Source::memory("x", b"abcdef".to_vec()).unwrap();
        let sink = || StreamSink::new(Vec::new(), source.manifest()).unwrap();
        let mut complete = sink();
        complete.write_block(0, b"abc").unwrap();
        let early = complete.write_block(4, b"ef");
        assert!(matches!(early, Err(SinkError::Order { expected: 3, actual: 4 })));
        assert!(matches!(complete.write_block(3, b"defg"), Err(SinkError::Range { .. })));
        complete.write_block(3, b"def").unwrap();
        assert_eq!(complete.finish().unwrap(), b"abcdef");
        assert!(matches!(sink().finish(), Err(SinkError::Incomplete { missing: 6, .. })));
    }

    #[test]
    fn holes_are_zeros_in_a_stream() {
        let holes = vec![Hole { start: 0, end: 70_000 }, Hole { start: 70_002, end: 70_005 }];
        let kind = EntryKind::File { size: 70_010, holes };
        let (path, modified) = (String::new(), Modified::default());
        let entry = Entry { path, kind, mode: 0o644, modified, extra: None };
        let mut sink =
            StreamSink::new(Vec::new(), &Manifest::new("x", vec![entry]).unwrap()).unwrap();
        sink.write_block(0, b"abc").unwrap();
        sink.write_block(3, b"defg").unwrap();
        let mut expected = vec![0; 70_010];
        expected[70_000..70_002].copy_from_slice(b"ab");
        expected[70_005..].copy_from_slice(b"cdefg");
        assert_eq!(sink.finish().unwrap(), expected);
    }
}
