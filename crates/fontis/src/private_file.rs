//! Files with secrets: whom they must belong to, and who may open them.

use std::fs::File;
use std::io;

/// The reason why a file is not private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPrivate {
    /// It belongs to another user, who can open and replace it.
    Foreign,
    /// Others may open it; its permission bits.
    Open(u32),
}

/// Checks that only this user may open `file`, where the system has owners and permissions.
#[cfg(unix)]
pub(crate) fn check(file: &File) -> io::Result<Result<(), NotPrivate>> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    // A terminal or a pipe has no content to be opened.
    let mode = if metadata.is_file() { metadata.mode() } else { 0 };
    Ok(judge(user, metadata.uid(), mode))
}

/// Checks nothing: the system has no such owners and permissions.
#[cfg(not(unix))]
pub(crate) fn check(_file: &File) -> io::Result<Result<(), NotPrivate>> {
    Ok(Ok(()))
}

#[cfg(unix)]
fn judge(user: u32, owner: u32, mode: u32) -> Result<(), NotPrivate> {
    match mode & 0o777 {
        // Root may use the files of those for whom it acts.
        _ if owner != user && user != 0 => Err(NotPrivate::Foreign),
        mode if mode & 0o077 != 0 => Err(NotPrivate::Open(mode)),
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_private_if_it_is_this_users_and_nobody_else_may_open_it() {
        assert_eq!(judge(1000, 1000, 0o100_600), Ok(()));
        assert_eq!(judge(1000, 1000, 0o100_640), Err(NotPrivate::Open(0o640)));
        assert_eq!(judge(1000, 1000, 0o100_602), Err(NotPrivate::Open(0o602)));
        assert_eq!(judge(1000, 1001, 0o100_600), Err(NotPrivate::Foreign));
        assert_eq!(judge(1000, 0, 0o100_600), Err(NotPrivate::Foreign));
        assert_eq!(judge(0, 1000, 0o100_600), Ok(()));
        assert_eq!(judge(0, 1000, 0o100_644), Err(NotPrivate::Open(0o644)));
    }
}
