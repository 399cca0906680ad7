//! The system's own folders and files.

use std::ffi::OsStr;
use std::fs::{FileTimes, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::{Access, Facts, Folder, Handle, Kind};
use crate::file;
use crate::manifest::Modified;
use crate::stamp;

/// Zeros that are written at once where a file system has no holes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

fn facts_of(metadata: &Metadata) -> Facts {
    let kind = match metadata.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Special,
    };
    Facts {
        kind,
        len: metadata.len(),
        mode: stamp::mode(metadata),
        is_own: stamp::is_own(metadata),
        id: stamp::file_id(metadata),
        allocated: stamp::allocated(metadata),
    }
}

impl Folder for Dir {
    type File = std::fs::File;

    fn at(path: &Path) -> io::Result<Self> {
        Self::open_ambient_dir(path, ambient_authority())
    }

    fn is_folder_at(path: &Path) -> bool {
        path.is_dir()
    }

    fn is_there(path: &Path) -> bool {
        path.exists()
    }

    fn make_at(path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn names_at(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn below(&self, path: &Path) -> io::Result<Self> {
        self.open_dir(path)
    }

    fn facts(&self, path: &Path) -> io::Result<Facts> {
        Ok(facts_of(&self.symlink_metadata(path)?))
    }

    fn open_entry(&self, path: &Path, access: Access) -> io::Result<std::fs::File> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        options.write(access == Access::Write).append(access == Access::Append);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        }
        self.open_with(path, &options).map(cap_std::fs::File::into_std)
    }

    fn make_file(&self, path: &Path, access: Access, mode: u32) -> io::Result<std::fs::File> {
        let mut options = OpenOptions::new();
        options.create_new(true);
        match access {
            Access::Append => options.append(true),
            Access::Read | Access::Write => options.read(true).write(true),
        };
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(mode);
        }
        #[cfg(not(unix))]
        let _ = mode;
        self.open_with(path, &options).map(cap_std::fs::File::into_std)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.create_dir(path)
    }

    fn make_link(&self, target: &Path, path: &Path) -> io::Result<()> {
        #[cfg(unix)]
        {
            self.symlink_contents(target, path)
        }
        #[cfg(not(unix))]
        {
            cap_fs_ext::DirExt::symlink(self, target, path)
        }
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }

    fn unlink_folder(&self, path: &Path) -> io::Result<()> {
        self.remove_dir_all(path)
    }

    fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.rename(from, self, to)
    }

    fn rename_new(&self, from: &OsStr, to: &OsStr, is_folder: bool) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            match renameat_with(self, from, self, to, RenameFlags::NOREPLACE) {
                Err(
                    rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
                ) => {}
                done => return Ok(done?),
            }
        }
        if !is_folder {
            // A hard link, too, fails where something exists; file systems without either get the
            // plain check.
            match self.hard_link(from, self, to) {
                Ok(()) => return self.remove_file(from),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
        }
        match self.symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.rename(from, self, to),
            Err(error) => Err(error),
        }
    }

    fn exchange(&self, from: &OsStr, to: &OsStr, spare: &OsStr) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            match renameat_with(self, from, self, to, RenameFlags::EXCHANGE) {
                Err(
                    rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
                ) => {}
                done => return Ok(done?),
            }
        }
        self.rename(to, self, spare)?;
        self.rename(from, self, to)?;
        self.rename(spare, self, from)
    }

    fn set_mode_of(&self, path: &Path, mode: u32) -> io::Result<()> {
        #[cfg(unix)]
        {
            use cap_std::fs::PermissionsExt;
            self.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
        }
        #[cfg(not(unix))]
        {
            let _ = (path, mode);
            Ok(())
        }
    }

    fn set_link_time(&self, path: &Path, modified: Modified) -> io::Result<()> {
        file::set_link_time(self, path, modified)
    }

    fn sync_names(&self) -> io::Result<()> {
        // Not every system opens a folder, and a user may not be allowed to.
        let Ok(folder) = self.open(".") else { return Ok(()) };
        match folder.sync_all() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                        | io::ErrorKind::PermissionDenied
                ) =>
            {
                Ok(())
            }
            synced => synced,
        }
    }

    fn system(&self) -> Option<&Dir> {
        Some(self)
    }
}

impl Handle for std::fs::File {
    fn facts(&self) -> io::Result<Facts> {
        Ok(facts_of(&Metadata::from_file(self)?))
    }

    fn claim(&self) -> io::Result<bool> {
        match self.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            self.set_permissions(std::fs::Permissions::from_mode(mode))
        }
        #[cfg(not(unix))]
        {
            let _ = mode;
            Ok(())
        }
    }

    fn set_time(&self, modified: Modified) -> io::Result<()> {
        match stamp::to_system_time(modified) {
            Some(time) => self.set_times(FileTimes::new().set_modified(time)),
            None => Ok(()),
        }
    }

    fn set_length(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn clear(&self, start: u64, end: u64) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            use rustix::io::Errno;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(self, flags, start, end - start) {
                Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {}
                done => return Ok(done?),
            }
        }
        let mut at = start;
        while at < end {
            let length = (end - at).min(ZEROS.len() as u64);
            file::write_all_at(self, &ZEROS[..length as usize], at)?;
            at += length;
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        file::write_all_at(self, bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }

    fn read_at(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        file::append_at(self, offset, len, out)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn sync_disk(&self) -> io::Result<bool> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            Ok(rustix::fs::syncfs(self).map(|()| true)?)
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            Ok(false)
        }
    }

    fn available(&self) -> Option<u64> {
        #[cfg(unix)]
        {
            let told = rustix::fs::fstatvfs(self).ok()?;
            (told.f_blocks > 0).then(|| told.f_bavail.saturating_mul(told.f_frsize))
        }
        #[cfg(not(unix))]
        {
            None
        }
    }

    fn system(&self) -> Option<&std::fs::File> {
        Some(self)
    }
}
