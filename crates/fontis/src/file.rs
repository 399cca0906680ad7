//! Files, opened to be read, and read and written at a place.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};

/// Opens a file to read it.
pub(crate) fn open(dir: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        // A file that was swapped for a pipe must not make a server wait for a writer.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    dir.open_with(path, &options).map(cap_std::fs::File::into_std)
}

/// Appends `len` bytes of a file, from `offset` on, to `out`.
pub(crate) fn append_at(file: &File, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let end = out.len() + len;
    #[cfg(unix)]
    {
        // Into memory that nobody clears before, which would take as long again as the reading
        // itself. There may be more room than bytes wanted.
        let mut offset = offset;
        out.reserve(len);
        while out.len() < end {
            let room = rustix::buffer::spare_capacity(out);
            match rustix::io::pread(file, room, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => offset += read as u64,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        out.truncate(end);
        Ok(())
    }
    #[cfg(not(unix))]
    {
        let (mut offset, mut at) = (offset, out.len());
        out.resize(end, 0);
        while at < end {
            match std::os::windows::fs::FileExt::seek_read(file, &mut out[at..], offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => (at, offset) = (at + read, offset + read as u64),
            }
        }
        Ok(())
    }
}

/// Writes bytes at their place.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes bytes at their place.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
