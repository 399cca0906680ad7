//! The reason why an object is not sent.

use std::io;
use std::path::{Path, PathBuf};

use crate::manifest::ManifestError;
use crate::printable::printable;

/// The reason why an object cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no such file or folder.
    #[error("{} does not exist: check the path", printable(.path))]
    NotFound {
        /// The requested path.
        path: PathBuf,
    },
    /// The path, or a symlink on it, leads out of the served folder.
    #[error("{} leads out of the served folder: ask for a path within it", printable(.path))]
    Outside {
        /// The requested path.
        path: PathBuf,
    },
    /// The system refuses to read it.
    #[error("cannot read {}: {source}; check its permissions", printable(.path))]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A device, pipe or socket.
    #[error("{} is no file, folder or symlink: move it elsewhere", printable(.path))]
    Special {
        /// The culprit.
        path: PathBuf,
    },
    /// A name that this system holds and cannot tell.
    #[error("{} has a name that is no text: rename it", printable(.path))]
    NoText {
        /// The culprit.
        path: PathBuf,
    },
    /// The file has changed since the source was opened.
    #[error("{} changed while it was being sent: send it again when it is at rest", printable(.path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The contents do not fit into a manifest.
    #[error("cannot send {}: {source}", printable(.path))]
    Manifest {
        /// The file or folder.
        path: PathBuf,
        /// The rule that it breaks.
        source: ManifestError,
    },
    /// More was asked for than the object has.
    #[error("{len} bytes at {offset} are beyond the object's {size}: ask for less")]
    Range {
        /// Offset asked for.
        offset: u64,
        /// Bytes asked for.
        len: usize,
        /// Bytes of the object.
        size: u64,
    },
}

pub(super) fn source_error(path: &Path, source: io::Error) -> SourceError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SourceError::NotFound { path },
        // cap-std's own refusal, as opposed to the system's, has no error number.
        io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
            SourceError::Outside { path }
        }
        _ => SourceError::Unreadable { path, source },
    }
}
