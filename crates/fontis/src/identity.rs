//! The identity of a user: an X25519 key pair (RFC 7748), which is the static key of the Noise
//! handshake, and lists of keys.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use etcetera::{BaseStrategy, choose_base_strategy};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::printable::{Printable, printable};
use crate::private_file::{self, NotPrivate};
use crate::random;

/// Bytes of a public or secret key.
pub const KEY_LEN: usize = 32;
/// The prefix of a secret key's text, by which people and scanners recognise one.
const SECRET_PREFIX: &str = "fontis-secret-";
/// The purpose of the key that a server sees of a client (BLAKE3, derive_key mode).
const CLIENT_CONTEXT: &str = "fontis 2026-11-25 client key for a server";
/// Larger files with keys are refused, in bytes.
const MAX_IDENTITY: u64 = 1 << 10;
const MAX_ALLOW_LIST: u64 = 16 << 20;

/// The reason why a key, an identity file or a list of keys was refused.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The text is no public key.
    #[error("'{}' is not a public key: expected 43 characters of base64url", Printable(.0))]
    Key(String),
    /// A secret key where a public one belongs. It is not repeated here, since messages end up in
    /// logs.
    #[error(
        "this is a secret key: give the public key, and make a new identity if others saw this"
    )]
    Exposed,
    /// The key is one of the few from which no secret can be agreed on.
    #[error("'{}' is a public key that keeps no secret: ask its owner for a real one", Printable(.0))]
    Weak(String),
    /// A line of an allow list is no public key.
    #[error("{}, line {line}: {source}", printable(.path))]
    Line {
        /// The list.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault.
        source: Box<IdentityError>,
    },
    /// The file holds something else than a secret key.
    #[error("{} holds no Fontis secret key: move it away to have a new one made", printable(.path))]
    Secret {
        /// The identity file.
        path: PathBuf,
    },
    /// Others may read or write the secret key.
    #[error(
        "{} is open to others (mode {mode:03o}): run chmod 600 {}", printable(.path), printable(.path)
    )]
    Open {
        /// The identity file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is another user's, who knows the secret key and may replace it.
    #[error("{} belongs to another user: name an identity file of your own", printable(.path))]
    Foreign {
        /// The identity file.
        path: PathBuf,
    },
    /// The list is longer than any real one.
    #[error("{} has over {MAX_ALLOW_LIST} bytes: name a list of public keys", printable(.path))]
    Long {
        /// The list.
        path: PathBuf,
    },
    /// The user has no home folder.
    #[error("no home folder is known: set HOME or XDG_CONFIG_HOME, or name an identity file")]
    NoHome,
    /// Without randomness nothing can be kept secret.
    #[error("the system gives no random numbers ({0}): mount /dev, or allow the call getrandom")]
    Randomness(io::Error),
    /// The system failed.
    #[error("cannot {action} {}: {source}", printable(.path))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// An X25519 public key; as text, 43 characters of base64url without padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// [`IdentityError::Weak`] for a point of small order, with which every shared secret would be
    /// known (RFC 7748, section 6.1).
    pub fn new(bytes: [u8; KEY_LEN]) -> Result<Self, IdentityError> {
        // Any scalar tells: clamping makes it a multiple of the small orders.
        let any = x25519_dalek::StaticSecret::from([1; KEY_LEN]);
        match any.diffie_hellman(&bytes.into()).was_contributory() {
            true => Ok(Self(bytes)),
            false => Err(IdentityError::Weak(BASE64URL_NOPAD.encode(&bytes))),
        }
    }

    /// The key's bytes, as Noise sends them.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if text.starts_with(SECRET_PREFIX) {
            return Err(IdentityError::Exposed);
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let bytes: Option<[u8; KEY_LEN]> = bytes.and_then(|bytes| bytes.try_into().ok());
        Self::new(bytes.ok_or_else(|| IdentityError::Key(text.to_owned()))?)
    }
}

/// A key pair. The secret is wiped from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct Identity {
    secret: Zeroizing<[u8; KEY_LEN]>,
    public: PublicKey,
}

impl Identity {
    /// A new one from the system's randomness.
    ///
    /// # Panics
    /// If the system has no randomness, without which nothing is secret.
    pub fn generate() -> Self {
        let mut secret = Zeroizing::new([0; KEY_LEN]);
        getrandom::fill(&mut *secret).expect("the system yields randomness");
        Self::of_secret(secret)
    }

    /// The identity of the secret key `secret`.
    pub fn of_secret(secret: Zeroizing<[u8; KEY_LEN]>) -> Self {
        let key = x25519_dalek::StaticSecret::from(*secret);
        let public = PublicKey(x25519_dalek::PublicKey::from(&key).to_bytes());
        Self { secret, public }
    }

    /// The user's own file: `fontis/identity` in the configuration folder, which is
    /// `$XDG_CONFIG_HOME` or `~/.config`, on Windows `%APPDATA%`.
    ///
    /// # Errors
    /// [`IdentityError::NoHome`].
    pub fn default_path() -> Result<PathBuf, IdentityError> {
        let folder = choose_base_strategy().map(|folders| folders.config_dir());
        // Who says where configuration is needs no home.
        let folder = folder.or_else(|_| {
            let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            named.filter(|path| path.is_absolute()).ok_or(IdentityError::NoHome)
        });
        Ok(folder?.join("fontis").join("identity"))
    }

    /// Reads the identity at `path`; on first use makes one there, readable by this user only.
    ///
    /// # Errors
    /// [`IdentityError`]: `Open` if others may read it, `Foreign` if it is another user's, `Secret`
    /// if it is not an identity, `Randomness` if the system has no randomness, or `Io`.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        match Self::load(path) {
            Err(IdentityError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            loaded => return loaded,
        }
        let identity = Self::generate();
        match identity.store(path) {
            Ok(()) => Ok(identity),
            // Another process was first: one user has one identity.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load(path),
            Err(source) => Err(IdentityError::Io { action: "write", path: path.into(), source }),
        }
    }

    /// Reads the identity at `path`.
    ///
    /// # Errors
    /// As [`load_or_create`](Self::load_or_create).
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        random::check().map_err(IdentityError::Randomness)?;
        let error = |source| IdentityError::Io { action: "read", path: path.into(), source };
        let file = File::open(path).map_err(error)?;
        match private_file::check(&file).map_err(error)? {
            Ok(()) => {}
            Err(NotPrivate::Foreign) => return Err(IdentityError::Foreign { path: path.into() }),
            Err(NotPrivate::Open(mode)) => {
                return Err(IdentityError::Open { path: path.into(), mode });
            }
        }
        // Room for all of it at once: growing would leave copies behind in memory.
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_IDENTITY as usize + 1));
        file.take(MAX_IDENTITY).read_to_end(&mut text).map_err(error)?;
        let secret = text.trim_ascii().strip_prefix(SECRET_PREFIX.as_bytes());
        let bytes = secret.and_then(|secret| BASE64URL_NOPAD.decode(secret).ok());
        let bytes = Zeroizing::new(bytes.unwrap_or_default());
        match <[u8; KEY_LEN]>::try_from(&bytes[..]) {
            Ok(secret) => Ok(Self::of_secret(Zeroizing::new(secret))),
            Err(_) => Err(IdentityError::Secret { path: path.into() }),
        }
    }

    /// The identity that this one shows to the server with the key `server`: always the same, so
    /// that the server's tokens stay valid, and different for each server, so that servers cannot
    /// find out together that they have the same client.
    pub fn towards(&self, server: &PublicKey) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CLIENT_CONTEXT);
        hasher.update(&*self.secret).update(server.as_bytes());
        Self::of_secret(Zeroizing::new(*hasher.finalize().as_bytes()))
    }

    /// The public key, to give to others.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret key, for the Noise handshake and nothing else.
    pub fn secret(&self) -> &[u8; KEY_LEN] {
        &self.secret
    }

    /// Writes a file that is complete as soon as it has its name, and never replaces another.
    fn store(&self, path: &Path) -> io::Result<()> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder)?;
        let mut text = Zeroizing::new(String::with_capacity(80));
        text.push_str(SECRET_PREFIX);
        BASE64URL_NOPAD.encode_append(&*self.secret, &mut text);
        text.push('\n');
        // Temporary files have mode 600 from the start.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public)
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl ZeroizeOnDrop for Identity {}

/// The public keys that may connect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    keys: BTreeSet<PublicKey>,
}

impl AllowList {
    /// Reads a file with one public key a line; blank lines and comments after `#` are ignored. An
    /// empty list allows nobody.
    ///
    /// # Errors
    /// [`IdentityError::Line`] with the first line that is no key, `Long`, or `Io`.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let error = |source| IdentityError::Io { action: "read", path: path.into(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(error)?;
        file.take(MAX_ALLOW_LIST + 1).read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 > MAX_ALLOW_LIST {
            return Err(IdentityError::Long { path: path.into() });
        }
        Self::parse(&String::from_utf8_lossy(&bytes), path)
    }

    /// Returns true if `key` is on the list.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.keys.contains(key)
    }

    /// The keys, in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter()
    }

    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, IdentityError> {
        let mut keys = BTreeSet::new();
        for (i, line) in text.lines().enumerate() {
            let key = line.split('#').next().unwrap_or_default().trim();
            if key.is_empty() {
                continue;
            }
            keys.insert(key.parse().map_err(|source| IdentityError::Line {
                path: path.into(),
                line: i + 1,
                source: Box::new(source),
            })?);
        }
        Ok(Self { keys })
    }
}

impl FromIterator<PublicKey> for AllowList {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self { keys: keys.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_identity_is_made_once_and_then_read() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("config/fontis/identity");
        let made = Identity::load_or_create(&path).unwrap();
        let read = Identity::load_or_create(&path).unwrap();
        assert_eq!((made.public(), made.secret()), (read.public(), read.secret()));
        assert_ne!(made.public(), Identity::generate().public());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), SECRET_PREFIX.len() + 43 + 1);
        assert!(!format!("{made:?}").contains(&text[SECRET_PREFIX.len()..][..43]));
    }

    #[test]
    fn a_client_has_one_key_for_each_server_and_none_tells_its_own() {
        let client = Identity::generate();
        let [one, other] = [Identity::generate(), Identity::generate()].map(|one| one.public());
        let seen = client.towards(&one).public();
        assert_eq!(client.towards(&one).public(), seen);
        assert!(seen != client.towards(&other).public() && seen != client.public());
        assert_ne!(Identity::generate().towards(&one).public(), seen);
    }

    #[test]
    fn many_processes_at_first_use_agree_on_one_identity() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("fontis/identity");
        let load = || Identity::load_or_create(&path).unwrap().public();
        let keys: BTreeSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(keys.len(), 1);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn the_public_key_belongs_to_the_secret_as_in_rfc_7748() {
        // RFC 7748, section 6.1: Alice's keys.
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        let secret = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let identity = Identity::of_secret(Zeroizing::new(secret.try_into().unwrap()));
        assert_eq!(&identity.public().as_bytes()[..], public);
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_that_others_may_read_is_refused_with_the_remedy() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("identity");
        Identity::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Identity::load_or_create(&path).unwrap_err();
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(Identity::load(&path).is_ok());
    }

    #[test]
    fn a_file_that_is_no_identity_is_neither_used_nor_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("identity");
        Identity::load_or_create(&path).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for text in ["", "fontis-secret-", &whole[..50], &whole[14..], &"x".repeat(1 << 20)] {
            fs::write(&path, text).unwrap();
            let refused = Identity::load_or_create(&path);
            assert!(matches!(refused, Err(IdentityError::Secret { .. })), "{text:.60}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_public_key_survives_as_text_and_nothing_else_passes() {
        let key = Identity::generate().public();
        let text = key.to_string();
        assert_eq!((text.len(), text.parse::<PublicKey>().unwrap()), (43, key));
        for wrong in ["", &text[1..], &format!("{text}="), &format!(" {text}"), &"+".repeat(43)] {
            assert!(matches!(wrong.parse::<PublicKey>(), Err(IdentityError::Key(_))), "{wrong}");
        }
        let secret = format!("{SECRET_PREFIX}{text}");
        assert!(!secret.parse::<PublicKey>().unwrap_err().to_string().contains(&text));
    }

    #[test]
    fn keys_that_agree_on_a_known_secret_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        for bytes in [[0; 32], one, minus_one] {
            assert!(matches!(PublicKey::new(bytes), Err(IdentityError::Weak(_))));
        }
    }

    #[test]
    fn an_allow_list_names_the_line_that_is_wrong() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("allow");
        let (a, b, c) = (Identity::generate(), Identity::generate(), Identity::generate());
        let text = format!("# friends\n\n  {}\r\n{} # Bob\n", a.public(), b.public());
        fs::write(&path, &text).unwrap();
        let list = AllowList::read(&path).unwrap();
        assert!(list.contains(&a.public()) && list.contains(&b.public()));
        assert!(!list.contains(&c.public()));
        assert_eq!(list, [b.public(), a.public()].into_iter().collect());
        fs::write(&path, text + "nonsense\n").unwrap();
        match AllowList::read(&path) {
            Err(error @ IdentityError::Line { line: 5, .. }) => {
                assert!(error.to_string().contains("line 5"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        fs::write(&path, b"\xff\xfe").unwrap();
        assert!(matches!(AllowList::read(&path), Err(IdentityError::Line { line: 1, .. })));
    }
}
