//! The destination of an object.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf, is_separator};

use crate::disk::{Dir, Folder as _};
use crate::name;
use crate::sink::SinkError;

/// A destination as users write it, with the meaning that `cp` gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dest {
    /// `-`: standard output, for [`StreamSink`](crate::StreamSink).
    Stdout,
    /// An existing folder, or a name ending in `/`, receives the object under its own name;
    /// anything else becomes the object's name.
    Path(PathBuf),
}

impl Dest {
    /// The destination that `text` on the command line means.
    pub fn new(text: impl Into<PathBuf>) -> Self {
        let path = text.into();
        if path.as_os_str() == "-" { Self::Stdout } else { Self::Path(path) }
    }
}

/// Folder and name that an object called `name` gets at `path`; a folder that `path` asks for is
/// made.
pub(crate) fn resolve(path: &Path, name: &str) -> Result<(PathBuf, OsString), SinkError> {
    let into = path.as_os_str().to_string_lossy().ends_with(is_separator);
    if Dir::is_folder_at(path) || into {
        if !Dir::is_folder_at(path) {
            Dir::make_at(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => SinkError::NoFolder { path: parent_of(path).to_owned() },
                _ => SinkError::io(path, error),
            })?;
        }
        return Ok((path.to_owned(), name::to_os(name).into_owned()));
    }
    match path.file_name() {
        Some(file) => Ok((parent_of(path).to_owned(), file.to_owned())),
        None => Err(SinkError::Name { path: path.to_owned() }),
    }
}

/// Opens the folder at `place`, in which something may get this name.
pub(crate) fn open(
    place: &Path,
    name: &OsStr,
    folder: bool,
    overwrite: bool,
) -> Result<Dir, SinkError> {
    let parent = Dir::at(place).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SinkError::NoFolder { path: place.to_owned() },
        _ => SinkError::io(place, error),
    })?;
    let path = place.join(name);
    match parent.facts(Path::new(name)) {
        Ok(_) if !overwrite => Err(SinkError::Exists { path }),
        Ok(there) if there.is_folder() != folder => {
            Err(SinkError::Kind { path, folder: there.is_folder() })
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SinkError::io(&path, error)),
        Ok(_) | Err(_) => Ok(parent),
    }
}

pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns true if Windows takes this component for something other than a plain file name: a
/// device, a stream, a path, or the same name without its last dot.
pub(crate) fn is_odd_on_windows(component: &str) -> bool {
    let stem = component.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let port = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    component.contains(['\\', ':', '*', '?', '"', '<', '>', '|'])
        || component.ends_with(['.', ' '])
        || matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || port.is_some_and(|port| port.chars().count() == 1 && port != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_means_what_cp_takes_it_for() {
        let temp = tempfile::tempdir().unwrap();
        let (folder, file) = (temp.path().to_owned(), temp.path().join("x"));
        assert_eq!(resolve(&folder, "a").unwrap(), (folder.clone(), "a".into()));
        assert_eq!(resolve(&file, "a").unwrap(), (folder.clone(), "x".into()));
        assert_eq!(resolve(Path::new("x"), "a").unwrap(), (".".into(), "x".into()));
        let new = folder.join("new/");
        assert_eq!(resolve(&new, "a").unwrap(), (new.clone(), "a".into()));
        assert!(new.is_dir());
        let deep = folder.join("no/such/");
        assert!(matches!(resolve(&deep, "a"), Err(SinkError::NoFolder { .. })));
        let odd = folder.join("no/..");
        assert!(matches!(resolve(&odd, "a"), Err(SinkError::Name { .. })));
        assert_eq!(Dest::new("-"), Dest::Stdout);
        assert_eq!(Dest::new("./-"), Dest::Path("./-".into()));
    }

    #[test]
    fn names_that_windows_misreads_are_known() {
        for name in ["a:b", "..\\x", "nul", "Com1.txt", "lpt9", "a.", "a ", "aux .c", "com²"] {
            assert!(is_odd_on_windows(name), "{name}");
        }
        for name in ["a.b", "null", "com10", "com0", ".config", "größe"] {
            assert!(!is_odd_on_windows(name), "{name}");
        }
    }
}
