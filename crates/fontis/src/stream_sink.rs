//! An object written in order to standard output or any other stream.

use std::io::Write;
use std::path::Path;

use crate::manifest::Manifest;
use crate::sink::SinkError;

/// Takes the blocks of a single file in order. What it was given is out: a stream cannot be taken
/// back.
#[derive(Debug)]
pub struct StreamSink<W> {
    writer: W,
    size: u64,
    next: u64,
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
        Ok(Self { writer, size: manifest.size(), next: 0 })
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
        self.writer.write_all(block).map_err(stream_error)?;
        self.next += block.len() as u64;
        Ok(())
    }

    /// Flushes, and returns the stream, if everything was written.
    ///
    /// # Errors
    /// `Incomplete`, or what the stream says, as [`SinkError`].
    pub fn finish(mut self) -> Result<W, SinkError> {
        self.writer.flush().map_err(stream_error)?;
        match self.size - self.next {
            0 => Ok(self.writer),
            missing => Err(SinkError::Incomplete { path: "standard output".into(), missing }),
        }
    }
}

fn stream_error(error: std::io::Error) -> SinkError {
    SinkError::io(Path::new("standard output"), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

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
}
