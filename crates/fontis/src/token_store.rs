use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use etcetera::{BaseStrategy, choose_base_strategy};

use crate::protection::TOKEN_LIFE;

/// Larger files are no token files.
const MAX_SIZE: u64 = 1024;

/// The tokens that servers gave this user, in a folder: each saves the next connection to its
/// server a round trip.
///
/// A failure to read or write costs a token and is no error. A token that is taken is removed,
/// since a server accepts each once.
#[derive(Clone, Debug)]
pub struct TokenStore {
    folder: PathBuf,
}

impl TokenStore {
    /// In this folder, which is made when there is something to keep.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// In the user's cache folder, if there is one.
    pub fn of_user() -> Option<Self> {
        let folders = choose_base_strategy().ok()?;
        Some(Self::new(folders.cache_dir().join("fontis").join("tokens")))
    }

    fn path(&self, server: &[u8; 32], ip: IpAddr) -> PathBuf {
        let name = blake3::hash(&[&server[..], ip.to_string().as_bytes()].concat());
        self.folder.join(&name.to_hex()[..32])
    }

    /// The token of the server with this key at this address; it is not here any more afterwards.
    pub(crate) fn take(&self, server: &[u8; 32], ip: IpAddr) -> Option<Vec<u8>> {
        let path = self.path(server, ip);
        let metadata = path.symlink_metadata().ok()?;
        let good = metadata.is_file() && metadata.len() <= MAX_SIZE && !is_old(&metadata);
        let token = good.then(|| fs::read(&path)).and_then(io::Result::ok);
        // Two processes may have read it; the server gives it to one.
        fs::remove_file(&path).ok()?;
        token
    }

    /// Keeps a token in the place of any earlier one.
    pub(crate) fn put(&self, server: &[u8; 32], ip: IpAddr, token: &[u8]) -> io::Result<()> {
        make_folder(&self.folder)?;
        self.tidy()?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(token)?;
        file.persist(self.path(server, ip))?;
        Ok(())
    }

    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.metadata().is_ok_and(|metadata| metadata.is_file() && is_old(&metadata)) {
                // Another process may have been first.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

fn is_old(metadata: &fs::Metadata) -> bool {
    let age = metadata.modified().map(|at| SystemTime::now().duration_since(at));
    // A time to come is that of a clock that was set back.
    !matches!(age, Ok(Ok(age)) if age <= Duration::from_micros(TOKEN_LIFE.as_micros()))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_once_by_whoever_asks_for_its_server() {
        let temp = tempfile::tempdir().unwrap();
        let store = TokenStore::new(temp.path().join("deep/tokens"));
        let ip: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(store.take(&[1; 32], ip), None);
        store.put(&[1; 32], ip, b"first").unwrap();
        store.put(&[1; 32], ip, b"second").unwrap();
        assert_eq!(store.take(&[2; 32], ip), None);
        assert_eq!(store.take(&[1; 32], "192.0.2.2".parse().unwrap()), None);
        assert_eq!(store.take(&[1; 32], ip).as_deref(), Some(&b"second"[..]));
        assert_eq!(store.take(&[1; 32], ip), None);
    }

    #[test]
    fn old_tokens_are_cleared_away() {
        let temp = tempfile::tempdir().unwrap();
        let store = TokenStore::new(temp.path());
        let ip: IpAddr = "::1".parse().unwrap();
        let age = |server: &[u8; 32], seconds| {
            let file = fs::File::options().write(true).open(store.path(server, ip)).unwrap();
            let then = SystemTime::now() - Duration::from_secs(seconds);
            file.set_times(fs::FileTimes::new().set_modified(then)).unwrap();
        };
        store.put(&[1; 32], ip, b"old").unwrap();
        age(&[1; 32], 25 * 3600);
        assert_eq!(store.take(&[1; 32], ip), None);
        store.put(&[1; 32], ip, b"old").unwrap();
        age(&[1; 32], 25 * 3600);
        store.put(&[2; 32], ip, b"new").unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
