//! What an object holds: one file, or a folder with all that is in it.
//!
//! The object's content is the content of its files, one after another in the manifest's order; that order is
//! fixed (ascending by path components), so that one folder has one manifest. A manifest that exists is valid:
//! [`Manifest::new`] and [`Manifest::decode`] refuse everything else, because what follows writes these paths.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::printable::Printable;

/// Encoded bytes of a manifest at most: room for [`MAX_ENTRIES`] paths of 60 bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Entries of a manifest at most, the root included.
pub const MAX_ENTRIES: usize = 1 << 20;
/// Bytes of a path, and of a symlink's target, at most: Linux's `PATH_MAX` without its final NUL.
pub const MAX_PATH: usize = 4095;
/// Bytes of a path's component at most: `NAME_MAX` of the common file systems.
pub const MAX_COMPONENT: usize = 255;
/// Seconds that a time may lie before or after 1970 at most: about two thousand years.
pub const MAX_SECONDS: u64 = 1 << 36;

const VERSION: u8 = 1;
const PERMISSIONS: u32 = 0o777;

/// Name, contents and size of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    name: String,
    entries: Vec<Entry>,
    size: u64,
}

/// One file, directory or symlink of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Components below the root, joined by `/`; empty for the root itself.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits, at most `0o777`.
    pub mode: u32,
    /// When the content last changed.
    pub modified: Modified,
}

/// What an [`Entry`] is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file of so many bytes.
    File {
        /// Bytes.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Relative to the link's directory, components joined by `/`; it stays within the object.
        target: String,
    },
}

/// A time since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modified {
    /// Whole seconds, rounded down; at most [`MAX_SECONDS`] either way.
    pub seconds: i64,
    /// Nanoseconds on top, below 1 000 000 000.
    pub nanos: u32,
}

/// Why a manifest was refused. Paths are relative to the object's root, escaped for terminals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields are paths, names and counts; the messages say which")]
pub enum ManifestError {
    #[error("manifest has version {0}, this Fontis reads {VERSION}: update the older side")]
    Version(u8),
    #[error("manifest is damaged after {0} bytes: fetch it again")]
    Malformed(usize),
    #[error("manifest has {0} bytes, the limit is {MAX_BYTES}: send the folder in parts")]
    TooLong(usize),
    #[error("object has {0} entries, the limit is {MAX_ENTRIES}: send the folder in parts")]
    TooManyEntries(u64),
    #[error("object's name '{}' is not a plain file name: rename it", Printable(.0))]
    Name(String),
    #[error("object has no root entry: the sender's manifest is broken")]
    NoRoot,
    #[error("the object's root is a symlink: send what it points to")]
    RootIsSymlink,
    #[error("absolute path '{}' in the object: only relative ones are accepted", Printable(.0))]
    Absolute(String),
    #[error("path '{}' has an empty component: the sender's manifest is broken", Printable(.0))]
    EmptyComponent(String),
    #[error("path '{}' has a '.' or '..' component: the sender's manifest is broken", Printable(.0))]
    DotComponent(String),
    #[error("path '{}' has a control character: rename it", Printable(.0))]
    ControlCharacter(String),
    #[error("path '{}' has a component over {MAX_COMPONENT} bytes: rename it", Printable(.0))]
    LongComponent(String),
    #[error("path '{}' has over {MAX_PATH} bytes: shorten it", Printable(.0))]
    LongPath(String),
    #[error("path '{}' is there twice: the sender's manifest is broken", Printable(.0))]
    Duplicate(String),
    #[error("path '{}' is not in ascending order: the sender's manifest is broken", Printable(.0))]
    OutOfOrder(String),
    #[error(
        "paths '{}' and '{}' differ only in case, which many systems take for one: rename one",
        Printable(.path), Printable(.other)
    )]
    CaseCollision { path: String, other: String },
    #[error("path '{}' has no directory above it: the sender's manifest is broken", Printable(.0))]
    NoParent(String),
    #[error("path '{}' lies beneath a file or symlink: the sender's manifest is broken", Printable(.0))]
    BeneathFile(String),
    #[error("'{}' has mode {mode:o}, only permission bits up to 777 are accepted", Printable(.path))]
    Mode { path: String, mode: u32 },
    #[error("'{}' has an impossible modification time: touch it", Printable(.0))]
    Time(String),
    #[error("symlink '{}' has an empty, overlong or unprintable target: remove it", Printable(.0))]
    Target(String),
    #[error(
        "symlink '{}' points to the absolute path '{}': make it relative or remove it",
        Printable(.path), Printable(.target)
    )]
    TargetAbsolute { path: String, target: String },
    #[error(
        "symlink '{}' points out of the object, to '{}': remove it",
        Printable(.path), Printable(.target)
    )]
    TargetEscapes { path: String, target: String },
    #[error("the files up to '{}' have more bytes than can be counted", Printable(.0))]
    Overflow(String),
    #[error("manifest declares {declared} bytes, its files have {actual}: the sender is broken")]
    Size { declared: u64, actual: u64 },
}

/// What precedes the entries in an encoded manifest, after the version byte.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    name: &'a str,
    size: u64,
    entries: u64,
}

impl Manifest {
    /// An object called `name` with `entries` in ascending order of their path components. The first entry is
    /// the root, with an empty path: a file, alone, or a directory.
    ///
    /// # Errors
    /// [`ManifestError`]: the first rule that something breaks.
    pub fn new(name: &str, entries: Vec<Entry>) -> Result<Self, ManifestError> {
        if check_component(name).is_err() {
            return Err(ManifestError::Name(name.to_owned()));
        }
        let size = validate(&entries)?;
        Ok(Self { name: name.to_owned(), entries, size })
    }

    /// The same object under another name.
    ///
    /// # Errors
    /// [`ManifestError::Name`] if `name` is not one plain path component.
    pub fn with_name(self, name: &str) -> Result<Self, ManifestError> {
        match check_component(name) {
            Ok(()) => Ok(Self { name: name.to_owned(), ..self }),
            Err(_) => Err(ManifestError::Name(name.to_owned())),
        }
    }

    /// The sender's name for the object, one path component. A receiver that asked for a certain name should
    /// not let the sender choose another.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All entries; the first is the root.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The first entry: the file itself, or the folder.
    pub fn root(&self) -> &Entry {
        &self.entries[0]
    }

    /// Whether the object is a folder, and not a single file.
    pub fn is_folder(&self) -> bool {
        self.root().kind == EntryKind::Directory
    }

    /// Bytes of the object: the sum of its files.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Version byte, then postcard: name, size and number of entries, then the entries.
    ///
    /// # Errors
    /// [`ManifestError::TooLong`], because nobody would accept it.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestError> {
        let head = Head { name: &self.name, size: self.size, entries: self.entries.len() as u64 };
        let infallible = "a growing buffer takes every value";
        let mut bytes = postcard::to_extend(&head, vec![VERSION]).expect(infallible);
        for entry in &self.entries {
            bytes = postcard::to_extend(entry, bytes).expect(infallible);
        }
        if bytes.len() > MAX_BYTES { Err(ManifestError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// Reads what [`encode`](Self::encode) wrote, from anyone. Memory stays in proportion to `bytes`.
    ///
    /// # Errors
    /// [`ManifestError`]: too long, damaged, or the first rule that something breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::TooLong(bytes.len()));
        }
        let damaged = |rest: &[u8]| ManifestError::Malformed(bytes.len() - rest.len());
        let mut rest = match bytes.split_first() {
            Some((&VERSION, rest)) => rest,
            Some((&version, _)) => return Err(ManifestError::Version(version)),
            None => return Err(damaged(bytes)),
        };
        let head: Head<'_> = take(&mut rest).ok_or_else(|| damaged(rest))?;
        if head.entries > MAX_ENTRIES as u64 {
            return Err(ManifestError::TooManyEntries(head.entries));
        }
        let mut entries = Vec::new();
        for _ in 0..head.entries {
            entries.push(take(&mut rest).ok_or_else(|| damaged(rest))?);
        }
        if !rest.is_empty() {
            return Err(damaged(rest));
        }
        let manifest = Self::new(head.name, entries)?;
        if manifest.size != head.size {
            return Err(ManifestError::Size { declared: head.size, actual: manifest.size });
        }
        Ok(manifest)
    }
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Option<T> {
    let (value, after) = postcard::take_from_bytes(rest).ok()?;
    *rest = after;
    Some(value)
}

/// Checks every rule and returns the sum of the files' sizes.
fn validate(entries: &[Entry]) -> Result<u64, ManifestError> {
    if entries.len() > MAX_ENTRIES {
        return Err(ManifestError::TooManyEntries(entries.len() as u64));
    }
    match entries.first() {
        Some(root) if !root.path.is_empty() => return Err(ManifestError::NoRoot),
        None => return Err(ManifestError::NoRoot),
        Some(Entry { kind: EntryKind::Symlink { .. }, .. }) => {
            return Err(ManifestError::RootIsSymlink);
        }
        Some(_) => {}
    }
    for entry in &entries[1..] {
        check_path(&entry.path)?;
    }
    let kinds = check_order(entries)?;
    let (mut size, mut folded) = (0u64, HashMap::with_capacity(entries.len()));
    for entry in entries {
        let path = || entry.path.clone();
        if entry.mode > PERMISSIONS {
            return Err(ManifestError::Mode { path: path(), mode: entry.mode });
        }
        let Modified { seconds, nanos } = entry.modified;
        if seconds.unsigned_abs() > MAX_SECONDS || nanos >= 1_000_000_000 {
            return Err(ManifestError::Time(path()));
        }
        if let Some(other) = folded.insert(entry.path.to_lowercase(), &entry.path) {
            return Err(ManifestError::CaseCollision { path: path(), other: other.clone() });
        }
        if !entry.path.is_empty() {
            match kinds.get(parent_of(&entry.path)) {
                None => return Err(ManifestError::NoParent(path())),
                Some(EntryKind::Directory) => {}
                Some(_) => return Err(ManifestError::BeneathFile(path())),
            }
        }
        match &entry.kind {
            EntryKind::File { size: bytes } => {
                size = size.checked_add(*bytes).ok_or_else(|| ManifestError::Overflow(path()))?;
            }
            EntryKind::Directory => {}
            EntryKind::Symlink { target } => check_target(&entry.path, target, &kinds)?,
        }
    }
    Ok(size)
}

/// Checks one file name and returns the error that a path with it deserves.
fn check_component(component: &str) -> Result<(), fn(String) -> ManifestError> {
    match component {
        "" => Err(ManifestError::EmptyComponent),
        "." | ".." => Err(ManifestError::DotComponent),
        _ if component.contains('/') => Err(ManifestError::Absolute),
        _ if component.chars().any(char::is_control) => Err(ManifestError::ControlCharacter),
        _ if component.len() > MAX_COMPONENT => Err(ManifestError::LongComponent),
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<(), ManifestError> {
    if path.starts_with('/') {
        return Err(ManifestError::Absolute(path.to_owned()));
    }
    if path.len() > MAX_PATH {
        return Err(ManifestError::LongPath(path.to_owned()));
    }
    path.split('/').try_for_each(check_component).map_err(|error| error(path.to_owned()))
}

/// Checks that paths ascend, which also finds doubles, and returns what each path is.
fn check_order(entries: &[Entry]) -> Result<HashMap<&str, &EntryKind>, ManifestError> {
    for pair in entries.windows(2) {
        match pair[0].path.split('/').cmp(pair[1].path.split('/')) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => {
                return Err(ManifestError::Duplicate(pair[1].path.clone()));
            }
            std::cmp::Ordering::Greater => {
                return Err(ManifestError::OutOfOrder(pair[1].path.clone()));
            }
        }
    }
    Ok(entries.iter().map(|entry| (&*entry.path, &entry.kind)).collect())
}

/// Checks that a symlink stays within the object, whatever its other symlinks are.
///
/// Counting `..` against depth is sound only as long as the walk passes through real directories: after a
/// symlink, or a name that is not there, the physical depth is unknown, so `..` is refused from there on.
fn check_target(
    link: &str,
    target: &str,
    kinds: &HashMap<&str, &EntryKind>,
) -> Result<(), ManifestError> {
    if target.is_empty() || target.len() > MAX_PATH || target.chars().any(char::is_control) {
        return Err(ManifestError::Target(link.to_owned()));
    }
    if target.starts_with('/') {
        let (path, target) = (link.to_owned(), target.to_owned());
        return Err(ManifestError::TargetAbsolute { path, target });
    }
    let escapes =
        || ManifestError::TargetEscapes { path: link.to_owned(), target: target.to_owned() };
    let (mut place, mut real) = (parent_of(link).to_owned(), true);
    for component in target.split('/') {
        match component {
            "" | "." => {}
            ".." if !real || place.is_empty() => return Err(escapes()),
            ".." => place.truncate(parent_of(&place).len()),
            _ => {
                if !place.is_empty() {
                    place.push('/');
                }
                place.push_str(component);
                real = real && kinds.get(&*place) == Some(&&EntryKind::Directory);
            }
        }
    }
    Ok(())
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.to_owned(), kind, mode: 0o644, modified: Modified::default() }
    }

    fn file(path: &str, size: u64) -> Entry {
        entry(path, EntryKind::File { size })
    }

    fn dir(path: &str) -> Entry {
        entry(path, EntryKind::Directory)
    }

    fn link(path: &str, target: &str) -> Entry {
        entry(path, EntryKind::Symlink { target: target.to_owned() })
    }

    fn folder(entries: impl IntoIterator<Item = Entry>) -> Result<Manifest, ManifestError> {
        Manifest::new("folder", [dir("")].into_iter().chain(entries).collect())
    }

    /// Encodes without asking `new`, as a hostile sender would.
    fn forged(name: &str, size: u64, entries: &[Entry]) -> Vec<u8> {
        let head = Head { name, size, entries: entries.len() as u64 };
        let mut bytes = postcard::to_extend(&head, vec![VERSION]).unwrap();
        for entry in entries {
            bytes = postcard::to_extend(entry, bytes).unwrap();
        }
        bytes
    }

    fn example() -> Manifest {
        folder([
            dir("a"),
            file("a/b", 5),
            link("a/c", "../z"),
            file("a.txt", 7),
            file("grüße", 0),
            file("z", u64::from(u32::MAX)),
        ])
        .unwrap()
    }

    #[test]
    fn a_manifest_survives_encoding() {
        let manifest = example();
        assert_eq!(manifest.size(), 12 + u64::from(u32::MAX));
        assert_eq!(Manifest::decode(&manifest.encode().unwrap()), Ok(manifest));
        let single = Manifest::new("x.iso", vec![file("", 9)]).unwrap();
        assert!(!single.is_folder());
        assert_eq!(Manifest::decode(&single.encode().unwrap()), Ok(single));
    }

    #[test]
    fn a_damaged_manifest_is_refused_and_never_panics() {
        let bytes = example().encode().unwrap();
        for len in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
        for i in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[i] ^= 1 << bit;
                let _ = Manifest::decode(&flipped);
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(Manifest::decode(&longer), Err(ManifestError::Malformed(bytes.len())));
        assert_eq!(Manifest::decode(&[9, 0]), Err(ManifestError::Version(9)));
    }

    #[test]
    fn each_forbidden_path_has_its_own_error() {
        use ManifestError as E;
        type Make = fn(String) -> E;
        let long = "x".repeat(MAX_COMPONENT + 1);
        let deep = ["x"; MAX_PATH / 2 + 2].join("/");
        let cases: [(&str, Make); 15] = [
            ("/etc/passwd", E::Absolute),
            ("//", E::Absolute),
            ("..", E::DotComponent),
            ("../x", E::DotComponent),
            ("a/../../x", E::DotComponent),
            ("./a", E::DotComponent),
            ("a/.", E::DotComponent),
            ("a//b", E::EmptyComponent),
            ("a/", E::EmptyComponent),
            ("a\0b", E::ControlCharacter),
            ("a\nb", E::ControlCharacter),
            ("a\u{9b}b", E::ControlCharacter),
            (&long, E::LongComponent),
            (&deep, E::LongPath),
            ("missing/file", E::NoParent),
        ];
        for (path, error) in cases {
            let entries = [dir(""), file(path, 0)];
            let refused = Manifest::decode(&forged("folder", 0, &entries));
            assert_eq!(refused, Err(error(path.to_owned())));
        }
    }

    #[test]
    fn a_name_is_one_plain_component() {
        for name in ["", ".", "..", "a/b", "/", "a\0", "a\r", &"x".repeat(256)] {
            let refused = Manifest::decode(&forged(name, 0, &[file("", 0)]));
            assert_eq!(refused, Err(ManifestError::Name(name.to_owned())));
            assert!(example().with_name(name).is_err());
        }
        assert_eq!(example().with_name("other").unwrap().name(), "other");
        assert!(folder([file(&"x".repeat(MAX_COMPONENT), 0)]).is_ok());
    }

    #[test]
    fn nothing_lies_beneath_a_file_or_a_symlink() {
        let beneath = Err(ManifestError::BeneathFile("a/b".to_owned()));
        assert_eq!(folder([file("a", 0), file("a/b", 0)]), beneath);
        assert_eq!(folder([link("a", "."), file("a/b", 0)]), beneath);
        let single = Manifest::new("f", vec![file("", 0), file("a", 0)]);
        assert_eq!(single, Err(ManifestError::BeneathFile("a".to_owned())));
    }

    #[test]
    fn doubles_disorder_and_names_that_differ_only_in_case_are_refused() {
        use ManifestError as E;
        assert_eq!(folder([file("a", 0), dir("a")]), Err(E::Duplicate("a".into())));
        assert_eq!(folder([file("b", 0), file("a", 0)]), Err(E::OutOfOrder("a".into())));
        let by_bytes_not_components = [dir("a"), file("a.txt", 0), file("a/b", 0)];
        assert_eq!(folder(by_bytes_not_components), Err(E::OutOfOrder("a/b".into())));
        for (path, other) in [("readme", "README"), ("größe", "GRÖSSE"), ("é", "É")] {
            let refused = folder([file(other, 0), file(path, 0)]);
            let expected = E::CaseCollision { path: path.into(), other: other.into() };
            // ß has no single capital: to file systems that fold simply, these two names differ.
            assert_eq!(refused.err(), (path != "größe").then_some(expected));
        }
    }

    #[test]
    fn the_root_is_a_file_or_a_folder() {
        assert_eq!(Manifest::new("x", vec![]), Err(ManifestError::NoRoot));
        assert_eq!(Manifest::new("x", vec![file("a", 0)]), Err(ManifestError::NoRoot));
        assert_eq!(Manifest::new("x", vec![link("", "a")]), Err(ManifestError::RootIsSymlink));
    }

    #[test]
    fn only_permission_bits_pass() {
        for mode in [0o4755, 0o2755, 0o1777, 0o100_644, u32::MAX] {
            let refused = folder([Entry { mode, ..file("a", 0) }]);
            assert_eq!(refused, Err(ManifestError::Mode { path: "a".into(), mode }));
        }
        assert!(folder([Entry { mode: 0o777, ..file("a", 0) }]).is_ok());
    }

    #[test]
    fn times_beyond_any_file_system_are_refused() {
        let limit = MAX_SECONDS as i64;
        for (seconds, nanos, fine) in [
            (limit, 999_999_999, true),
            (-limit, 0, true),
            (limit + 1, 0, false),
            (i64::MIN, 0, false),
            (0, 1_000_000_000, false),
        ] {
            let modified = Modified { seconds, nanos };
            assert_eq!(folder([Entry { modified, ..file("a", 0) }]).is_ok(), fine, "{seconds}");
        }
    }

    #[test]
    fn symlinks_stay_within_the_object() {
        for target in ["x", "../x", "../b/../x", ".", "./../b/", "..", "missing/x", "dead"] {
            assert!(folder([dir("a"), link("a/l", target), dir("b")]).is_ok(), "{target}");
        }
        for target in ["../..", "../../x", "../b/../../x", "missing/../x", "../a/../../folder"] {
            let refused = folder([dir("a"), link("a/l", target), dir("b")]);
            assert!(matches!(refused, Err(ManifestError::TargetEscapes { .. })), "{target}");
        }
        let absolute = folder([link("l", "/etc/passwd")]);
        assert!(matches!(absolute, Err(ManifestError::TargetAbsolute { .. })));
        for target in ["", "a\0b", "a\nb", &"x".repeat(MAX_PATH + 1)] {
            assert_eq!(folder([link("l", target)]), Err(ManifestError::Target("l".into())));
        }
    }

    #[test]
    fn a_chain_of_symlinks_cannot_climb_out() {
        // Each `..` is within its depth when symlinks are taken for directories, yet `out` would leave the root.
        let refused = folder([
            dir("deep"),
            dir("deep/deeper"),
            link("deep/deeper/up", "../.."),
            link("out", "deep/deeper/up/../.."),
        ]);
        assert!(matches!(refused, Err(ManifestError::TargetEscapes { path, .. }) if path == "out"));
    }

    #[test]
    fn sizes_add_up_without_overflow() {
        let entries = [dir(""), file("a", u64::MAX), file("b", 1)];
        let refused = Manifest::decode(&forged("f", 0, &entries));
        assert_eq!(refused, Err(ManifestError::Overflow("b".into())));
        let refused = Manifest::decode(&forged("f", 6, &[file("", 5)]));
        assert_eq!(refused, Err(ManifestError::Size { declared: 6, actual: 5 }));
    }

    #[test]
    fn a_count_of_entries_that_are_not_there_costs_no_memory() {
        let head = Head { name: "x", size: 0, entries: u64::MAX };
        let bytes = postcard::to_extend(&head, vec![VERSION]).unwrap();
        assert_eq!(Manifest::decode(&bytes), Err(ManifestError::TooManyEntries(u64::MAX)));
        let head = Head { entries: MAX_ENTRIES as u64, ..head };
        let bytes = postcard::to_extend(&head, vec![VERSION]).unwrap();
        assert_eq!(Manifest::decode(&bytes), Err(ManifestError::Malformed(bytes.len())));
        let too_long = vec![VERSION; MAX_BYTES + 1];
        assert_eq!(Manifest::decode(&too_long), Err(ManifestError::TooLong(MAX_BYTES + 1)));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Manifest::decode(&bytes);
            let _ = Manifest::decode(&[&[VERSION], &bytes[..]].concat());
        }

        #[test]
        fn an_accepted_target_ends_within_the_root(target in "(\\.\\./|a/|b/|l/|\\./){0,6}x") {
            let accepted = folder([
                dir("a"), dir("a/b"), link("a/b/l", "../.."), link("a/t", &target), dir("b"),
            ]);
            if accepted.is_ok() {
                // What a kernel does: every symlink is followed before the next component counts.
                let mut place = vec!["a"];
                for component in target.split('/') {
                    match component {
                        "." => {}
                        ".." => prop_assert!(place.pop().is_some()),
                        _ => place.push(component),
                    }
                    if place == ["a", "b", "l"] {
                        place.clear();
                    }
                }
            }
        }
    }
}
