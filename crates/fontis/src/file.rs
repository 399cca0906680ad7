//! Files, opened to be read, and read and written at a place.

#[cfg(unix)]
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};

use crate::manifest::Modified;
#[cfg(not(unix))]
use crate::stamp;

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

/// Sets the time of a symbolic link itself.
pub(crate) fn set_link_time(dir: &Dir, path: &Path, modified: Modified) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::{AtFlags, Nsecs, Timespec, Timestamps, UTIME_OMIT, utimensat};
        // cap-std panics at a time before 1970, which a peer may send.
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        // A manifest has less than a second of them.
        let nanos = i32::try_from(modified.nanos).unwrap_or_default();
        let (tv_sec, tv_nsec) = (modified.seconds, Nsecs::from(nanos));
        let times = Timestamps { last_access, last_modification: Timespec { tv_sec, tv_nsec } };
        let (parent, name) = place_of(dir, path)?;
        Ok(utimensat(&parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
    #[cfg(not(unix))]
    {
        use cap_fs_ext::{DirExt, SystemTimeSpec};
        let Some(time) = stamp::to_system_time(modified).filter(|_| modified.seconds >= 0) else {
            return Ok(());
        };
        let time = SystemTimeSpec::Absolute(cap_std::time::SystemTime::from_std(time));
        dir.set_symlink_times(path, None, Some(time))
    }
}

/// The folder that an entry is in, looked up within `dir`, and its name there.
#[cfg(unix)]
pub(crate) fn place_of<'a>(dir: &Dir, path: &'a Path) -> io::Result<(Dir, &'a OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        None => Ok((dir.try_clone()?, name)),
        Some(parent) => Ok((dir.open_dir(parent)?, name)),
    }
}
