use std::ffi::{OsStr, OsString};
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};

use blake3::Hasher;

use super::assembler::{Destination, Received};
use super::invitation::STREAM;
use crate::dest::{Dest, open, resolve};
use crate::disk::Handle as _;
use crate::left_out::LeftOut;
use crate::partial::{Partial, is_partial};
use crate::sink::SinkError;
use crate::transfer::TransferError;

/// Where a stream goes.
pub(super) struct Recording {
    into: Into,
    hasher: Hasher,
    bytes: u64,
    /// Blocks that did not come, and all.
    gaps: u64,
    blocks: u64,
}

enum Into {
    Stdout,
    File(Unnamed),
}

/// A file that has not got its name.
struct Unnamed {
    partial: Partial,
    path: PathBuf,
    name: OsString,
    overwrite: bool,
    /// Whether something stands in it that does not come again.
    has_content: bool,
}

/// Names for files that are cut off, beside one another.
const MOST_CUT: u32 = 1000;

impl Recording {
    /// Makes the destination ready.
    pub(super) fn begin(destination: &Destination) -> Result<Self, TransferError> {
        let into = match &destination.dest {
            Dest::Stdout => Into::Stdout,
            Dest::Path(path) => {
                let own = destination.name.as_deref().unwrap_or(STREAM);
                file(path, own, destination.options.overwrite)?
            }
        };
        Ok(Self { into, hasher: Hasher::new(), bytes: 0, gaps: 0, blocks: 0 })
    }

    /// Bytes that were written.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Blocks that did not come.
    pub(super) const fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Writes a block.
    pub(super) fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        match &mut self.into {
            Into::Stdout => {
                let mut out = stdout().lock();
                let written = out.write_all(data).and_then(|()| out.flush());
                written.map_err(|error| SinkError::io(Path::new("-"), error))?;
            }
            Into::File(file) => {
                let written = file.partial.handle.write_at(data, self.bytes);
                written.map_err(|error| SinkError::io(&file.partial.path, error))?;
                file.partial.keep();
                file.has_content = true;
            }
        }
        self.hasher.update(data);
        self.bytes += data.len() as u64;
        self.blocks += 1;
        Ok(())
    }

    /// Notes that blocks did not come.
    pub(super) fn skip(&mut self, blocks: u32) {
        self.gaps += u64::from(blocks);
        self.blocks += u64::from(blocks);
    }

    /// The stream is over: a file gets its name if nothing is lacking.
    pub(super) fn finish(self) -> Result<Received, TransferError> {
        let (gaps, blocks) = (self.gaps, self.blocks);
        let lacking = |path| TransferError::Gaps { gaps, blocks, path };
        let path = match self.into {
            Into::Stdout if gaps > 0 => return Err(lacking(None)),
            Into::Stdout => None,
            Into::File(mut file) if gaps > 0 => return Err(lacking(file.cut())),
            Into::File(file) => Some(file.publish()?),
        };
        Ok(Received {
            name: STREAM.to_owned(),
            path,
            bytes: self.bytes,
            resumed: 0,
            hash: self.hasher.finalize().to_hex().to_string(),
            left_out: LeftOut::default(),
        })
    }
}

impl Unnamed {
    /// Gives the file its name.
    fn publish(mut self) -> Result<PathBuf, SinkError> {
        let partial = &self.partial;
        let error = |error| SinkError::io(&partial.path, error);
        partial.handle.set_mode(0o666 & partial.allowed).map_err(error)?;
        partial.handle.sync().map_err(error)?;
        match partial.publish(&self.name, self.overwrite) {
            Ok(()) => {
                self.has_content = false;
                Ok(self.path.clone())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let path = self.path.clone();
                let partial = self.cut().unwrap_or_else(|| self.partial.path.clone());
                Err(SinkError::Appeared { path, partial })
            }
            Err(error) => Err(SinkError::io(&self.path, error)),
        }
    }

    /// Gives the file a name that says that it is not whole, and returns its path.
    fn cut(&mut self) -> Option<PathBuf> {
        self.has_content = false;
        cut(&self.partial, &self.name, &self.path)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if self.has_content {
            self.cut();
        }
    }
}

fn cut(partial: &Partial, name: &OsStr, path: &Path) -> Option<PathBuf> {
    let _ = partial.handle.set_mode(0o666 & partial.allowed);
    for number in 1..MOST_CUT {
        let mut cut = name.to_owned();
        cut.push(".incomplete");
        if number > 1 {
            cut.push(format!("-{number}"));
        }
        match partial.publish(&cut, false) {
            Ok(()) => return Some(path.with_file_name(cut)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => break,
        }
    }
    partial.keep();
    Some(partial.path.clone())
}

fn file(path: &Path, own: &str, overwrite: bool) -> Result<Into, SinkError> {
    let (place, name) = resolve(path, own)?;
    let path = place.join(&name);
    if is_partial(&name.to_string_lossy()) {
        return Err(SinkError::Reserved { path });
    }
    let parent = open(&place, &name, false, overwrite)?;
    let mut partial = Partial::create(parent, &place, &name, false, true)?;
    if partial.adopted {
        // What was cut off before does not come again.
        cut(&partial, &name, &path);
        let parent = open(&place, &name, false, overwrite)?;
        partial = Partial::create(parent, &place, &name, false, false)?;
    }
    Ok(Into::File(Unnamed { partial, path, name, overwrite, has_content: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::SinkOptions;

    fn begin(folder: &Path) -> Result<Recording, TransferError> {
        let (dest, options) = (Dest::Path(folder.to_owned()), SinkOptions::default());
        Recording::begin(&Destination { name: None, dest, options })
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_stream_without_gaps_gets_its_name() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path();
        let mut cut_off = begin(folder).unwrap();
        cut_off.write(b"cut off").unwrap();
        drop(cut_off);
        drop(begin(folder).unwrap());
        assert_eq!(names(folder), ["stream.incomplete"], "of nothing nothing is left");

        let mut gaps = begin(folder).unwrap();
        gaps.write(b"with").unwrap();
        gaps.skip(2);
        gaps.write(b"gaps").unwrap();
        let error = gaps.finish().err().unwrap();
        let TransferError::Gaps { gaps: 2, blocks: 4, path: Some(path) } = error else {
            panic!("{error}")
        };
        assert_eq!(std::fs::read(path).unwrap(), b"withgaps");
        assert_eq!(names(folder), ["stream.incomplete", "stream.incomplete-2"]);

        // A process that was killed leaves a partial, which the next moves aside.
        let mut killed = begin(folder).unwrap();
        killed.write(b"killed").unwrap();
        let partial = match &killed.into {
            Into::File(file) => file.partial.path.clone(),
            Into::Stdout => panic!(),
        };
        drop(killed);
        std::fs::rename(folder.join("stream.incomplete-3"), partial).unwrap();
        let mut whole = begin(folder).unwrap();
        whole.write(b"whole").unwrap();
        let received = whole.finish().unwrap();
        assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), b"whole");
        let all = ["stream", "stream.incomplete", "stream.incomplete-2", "stream.incomplete-3"];
        assert_eq!(names(folder), all);
        assert!(matches!(begin(folder), Err(TransferError::Sink(SinkError::Exists { .. }))));
    }
}
