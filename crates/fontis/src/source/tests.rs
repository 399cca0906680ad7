use super::*;
use crate::manifest::Hole;

use std::fs;
use std::time::Duration;

use fontis_base::Stream;
use tempfile::TempDir;

const SEED: u64 = 0x736f_7572;

fn content(len: usize) -> Vec<u8> {
    println!("seed {SEED:#x}");
    let mut bytes = vec![0; len];
    Stream::new(SEED, "source").fill(&mut bytes);
    bytes
}

/// A folder with files of the given sizes, and all their bytes in manifest order.
fn folder_of(sizes: &[usize]) -> (TempDir, Vec<u8>) {
    let temp = tempfile::tempdir().unwrap();
    let all = content(sizes.iter().sum());
    let mut rest = &all[..];
    for (i, &size) in sizes.iter().enumerate() {
        let sub = temp.path().join(format!("d{:03}", i / 3));
        fs::create_dir_all(&sub).unwrap();
        fs::write(sub.join(format!("f{}", i % 3)), &rest[..size]).unwrap();
        rest = &rest[size..];
    }
    (temp, all)
}

fn read(source: &Source, offset: u64, len: usize) -> Result<Vec<u8>, SourceError> {
    let mut buffer = Vec::new();
    source.read_block(offset, len, &mut buffer).map(|()| buffer)
}

#[test]
fn a_folder_reads_as_its_files_one_after_another() {
    let (temp, all) = folder_of(&[5, 0, 4000, 1, 70_000, 0, 0, 3]);
    let source = Source::open(temp.path()).unwrap();
    assert_eq!(source.size(), all.len() as u64);
    assert_eq!(read(&source, 0, all.len()).unwrap(), all);
    for step in [1usize << 12, 999, 70_001] {
        for start in (0..all.len()).step_by(step) {
            let len = step.min(all.len() - start);
            assert_eq!(read(&source, start as u64, len).unwrap(), all[start..start + len]);
        }
    }
    assert_eq!(source.hash_tree(|_| ()).unwrap().root(), blake3::hash(&all));
    assert!(matches!(read(&source, 1, all.len()), Err(SourceError::Range { .. })));
}

#[test]
fn a_file_and_data_in_memory_read_alike() {
    let temp = tempfile::tempdir().unwrap();
    let (path, bytes) = (temp.path().join("x.bin"), content(100_000));
    fs::write(&path, &bytes).unwrap();
    let sources = [Source::open(&path).unwrap(), Source::memory("x.bin", bytes.clone()).unwrap()];
    for source in sources {
        assert_eq!(source.manifest().name(), "x.bin");
        assert!(!source.manifest().is_folder());
        assert_eq!(read(&source, 99, 5000).unwrap(), bytes[99..5099]);
        assert_eq!(source.hash_tree(|_| ()).unwrap().root(), blake3::hash(&bytes));
    }
}

#[test]
fn more_files_than_handles_are_read_in_any_order() {
    let (temp, all) = folder_of(&[100; 200]);
    let source = Source::open(temp.path()).unwrap();
    for start in (0..all.len() - 50).rev().step_by(37) {
        assert_eq!(read(&source, start as u64, 50).unwrap(), all[start..start + 50]);
    }
}

fn excluding(patterns: &[&str], gitignore: bool) -> SourceOptions {
    let exclusions = Exclusions::new(patterns.iter().copied(), gitignore).unwrap();
    SourceOptions { exclusions, ..SourceOptions::default() }
}

/// The paths of a source's entries but the root.
fn paths(source: &Source) -> Vec<&str> {
    (1..source.manifest().entries().len()).map(|i| source.manifest().path(i)).collect()
}

/// A folder with these files, each with its path as its content.
fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = temp.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    temp
}

#[test]
fn what_matches_a_pattern_is_not_sent() {
    let temp = folder_with(&[
        ("a.o", ""),
        ("a.rs", ""),
        ("keep/b.o", ""),
        ("sub/a.o", ""),
        ("sub/target/x", ""),
        ("target/x", ""),
        ("z/target", ""),
    ]);
    let open =
        |patterns: &[&str]| Source::open_with(temp.path(), &excluding(patterns, false)).unwrap();
    let all = ["a.o", "a.rs", "keep", "keep/b.o", "sub", "sub/a.o", "sub/target", "sub/target/x"];
    assert_eq!(paths(&open(&[])), [&all[..], &["target", "target/x", "z", "z/target"]].concat());
    let left = ["a.rs", "keep", "keep/b.o", "sub", "sub/target", "sub/target/x", "z", "z/target"];
    assert_eq!(paths(&open(&["*.o", "!/keep/*", "/target"])), left);
    assert_eq!(paths(&open(&["target/", "*.o", "keep"])), ["a.rs", "sub", "z", "z/target"]);
    assert_eq!(open(&["*.o"]).left_out().total(), 0, "who asks for it is not warned of it");
    let refused = Exclusions::new(["fine", "[z-a]"], false).unwrap_err().to_string();
    assert!(refused.starts_with("'[z-a]' is no pattern: "), "{refused}");
}

#[test]
fn files_of_rules_count_on_request_and_the_deeper_ones_first() {
    let temp = folder_with(&[
        (".gitignore", "*.log\n/build/\n[broken"),
        ("a.log", ""),
        ("build/x", ""),
        ("sub/.gitignore", "!a.log\n# a comment\nown"),
        ("sub/a.log", ""),
        ("sub/b.log", ""),
        ("sub/build/x", ""),
        ("sub/deep/a.log", ""),
        ("sub/own", ""),
        ("x", ""),
    ]);
    let open =
        |patterns: &[&str]| Source::open_with(temp.path(), &excluding(patterns, true)).unwrap();
    let left = [".gitignore", "sub", "sub/.gitignore", "sub/a.log", "sub/build", "sub/build/x"];
    let left = [&left[..], &["sub/deep", "sub/deep/a.log", "x"]].concat();
    assert_eq!(paths(&open(&[])), left);
    let asked = paths(&open(&["!b.log", "deep", ".gitignore", "build"])).join(" ");
    assert_eq!(asked, "sub sub/a.log sub/b.log x");
}

#[test]
fn what_is_excluded_is_not_served_by_any_path() {
    let temp = folder_with(&[
        (".gitignore", "hidden"),
        ("sub/.gitignore", "secret"),
        ("sub/secret", "s"),
        ("sub/plain", "p"),
        ("sub/hidden/x", "x"),
        ("sub/own/x", "x"),
    ]);
    let root = Dir::open_ambient_dir(temp.path(), ambient_authority()).unwrap();
    #[cfg(unix)]
    for (target, link) in [("sub/secret", "link"), ("sub/hidden", "folder"), ("sub/plain", "fine")]
    {
        std::os::unix::fs::symlink(target, temp.path().join(link)).unwrap();
    }
    let options = excluding(&["/sub/own"], true);
    let open = |path: &str| Source::beneath_with(&root, Path::new(path), &options);
    let mut refused = vec!["sub/secret", "sub/hidden", "sub/hidden/x", "sub/own", "sub/own/x"];
    refused.extend(["sub/../sub/secret", "./sub/hidden/x"]);
    #[cfg(unix)]
    refused.extend(["link", "folder", "folder/x"]);
    for path in refused {
        let opened = open(path);
        assert!(matches!(opened, Err(SourceError::NotFound { .. })), "{path}: {opened:?}");
        assert!(Source::beneath(&root, Path::new(path)).is_ok(), "{path}");
    }
    assert_eq!(open("sub/plain").unwrap().size(), 1);
    #[cfg(unix)]
    assert_eq!(open("fine").unwrap().size(), 1);
    // Rules of the folders above the one that is asked for count, too.
    assert_eq!(paths(&open("sub").unwrap()), [".gitignore", "plain"]);
    assert_eq!(open("").unwrap().size(), "hiddensecretp".len() as u64);
}

#[test]
fn partial_files_of_transfers_under_way_are_left_out() {
    let (temp, all) = folder_of(&[10]);
    fs::write(temp.path().join("d000/.x.fontis-partial"), b"half").unwrap();
    assert_eq!(Source::open(temp.path()).unwrap().size(), all.len() as u64);
}

#[test]
fn what_is_not_there_is_not_found() {
    let temp = tempfile::tempdir().unwrap();
    let served = Dir::open_ambient_dir(temp.path(), ambient_authority()).unwrap();
    fs::write(temp.path().join("file"), b"").unwrap();
    for path in ["missing", "missing/x", "file/x"] {
        let refused = Source::beneath(&served, Path::new(path));
        assert!(matches!(refused, Err(SourceError::NotFound { .. })), "{path}");
        assert!(matches!(Source::open(&temp.path().join(path)), Err(SourceError::NotFound { .. })));
    }
}

#[test]
fn a_file_that_changes_is_noticed() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("shorter", |path| fs::File::options().write(true).open(path).unwrap().set_len(9).unwrap()),
        ("longer", |path| fs::write(path, vec![1; 20_000]).unwrap()),
        ("touched", |path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(9)).unwrap();
        }),
        ("replaced", |path| {
            let new = path.with_extension("new");
            fs::copy(path, &new).unwrap();
            let time = fs::metadata(path).unwrap().modified().unwrap();
            fs::File::options().write(true).open(&new).unwrap().set_modified(time).unwrap();
            fs::rename(new, path).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    for (what, change) in changes {
        let (temp, _) = folder_of(&[10_000]);
        let file = temp.path().join("d000/f0");
        let source = Source::open(temp.path()).unwrap();
        change(&file);
        match read(&source, 100, 1000) {
            Err(SourceError::Changed { path }) => assert_eq!(path, file, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_file_held_open_that_changes_between_reads_is_noticed() {
    let (temp, all) = folder_of(&[10_000]);
    let file = temp.path().join("d000/f0");
    for path in [temp.path(), &file] {
        fs::write(&file, &all).unwrap();
        let source = Source::open(path).unwrap();
        assert!(read(&source, 0, 1000).is_ok());
        fs::write(&file, &all[1..]).unwrap();
        assert!(matches!(read(&source, 0, 1000), Err(SourceError::Changed { .. })));
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_manifest_tells_kinds_modes_and_order() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("folder");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/b"), b"12").unwrap();
        fs::write(root.join("a.txt"), b"345").unwrap();
        symlink("a/b", root.join("link")).unwrap();
        let setuid = fs::Permissions::from_mode(0o4751);
        fs::set_permissions(root.join("a.txt"), setuid).unwrap();
        let source = Source::open(&root).unwrap();
        assert_eq!(source.manifest().name(), "folder");
        let told: Vec<_> =
            source.manifest().entries().map(|entry| (entry.path, entry.kind)).collect();
        let link = EntryKind::Symlink { target: "a/b".to_owned() };
        assert_eq!(
            told,
            [
                ("", EntryKind::Directory),
                ("a", EntryKind::Directory),
                ("a/b", EntryKind::file(2)),
                ("a.txt", EntryKind::file(3)),
                ("link", link),
            ]
            .map(|(path, kind)| (path.to_owned(), kind))
        );
        assert_eq!(source.manifest().entry(3).mode, 0o751, "set-id bits stay behind");
    }

    #[test]
    fn a_served_folder_is_not_left() {
        let temp = tempfile::tempdir().unwrap();
        let served = temp.path().join("served");
        fs::create_dir_all(served.join("sub")).unwrap();
        fs::write(temp.path().join("secret"), b"secret").unwrap();
        fs::write(served.join("public"), b"public").unwrap();
        symlink("../secret", served.join("relative")).unwrap();
        symlink(temp.path().join("secret"), served.join("absolute")).unwrap();
        symlink("..", served.join("up")).unwrap();
        symlink("../public", served.join("sub/within")).unwrap();
        let dir = Dir::open_ambient_dir(&served, ambient_authority()).unwrap();
        let absolute = served.join("public");
        for path in ["../secret", "relative", "absolute", "up", "up/secret", "sub/../../secret"] {
            let refused = Source::beneath(&dir, Path::new(path));
            assert!(matches!(refused, Err(SourceError::Outside { .. })), "{path}: {refused:?}");
        }
        let refused = Source::beneath(&dir, &absolute);
        assert!(matches!(refused, Err(SourceError::Outside { .. })), "{refused:?}");
        for path in ["public", "sub/../public", "sub/within", "./public"] {
            let source = Source::beneath(&dir, Path::new(path)).unwrap();
            assert_eq!(read(&source, 0, 6).unwrap(), b"public", "{path}");
        }
        assert_eq!(
            Source::beneath(&dir, Path::new("sub/within")).unwrap().manifest().name(),
            "within"
        );
        let whole = Source::beneath(&dir, Path::new("")).unwrap();
        let entries = whole.manifest().entries().enumerate();
        let outward = entries.filter(|(i, _)| whole.manifest().is_outward(*i));
        let outward: Vec<_> = outward.map(|(_, entry)| entry.path).collect();
        assert_eq!(outward, ["absolute", "relative", "up"]);
    }

    #[test]
    fn a_file_swapped_for_a_symlink_out_of_the_folder_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let served = temp.path().join("served");
        fs::create_dir(&served).unwrap();
        fs::write(served.join("x"), b"public").unwrap();
        fs::write(temp.path().join("secret"), b"secret").unwrap();
        let source = Source::open(&served).unwrap();
        fs::remove_file(served.join("x")).unwrap();
        symlink("../secret", served.join("x")).unwrap();
        assert!(matches!(read(&source, 0, 6), Err(SourceError::Outside { .. })));
    }

    #[test]
    fn pipes_are_left_out_and_names_are_any_bytes() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let temp = tempfile::tempdir().unwrap();
        let pipe = temp.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), ambient_authority()).unwrap();
        for refused in [Source::open(&pipe), Source::beneath(&dir, Path::new("pipe"))] {
            assert!(
                matches!(refused, Err(SourceError::Special { path }) if path.ends_with("pipe"))
            );
        }
        let names: [&[u8]; 3] = [b"a\nb", b"\x80dir", b"\xff"];
        fs::create_dir(temp.path().join(OsStr::from_bytes(names[1]))).unwrap();
        for name in [names[0], names[2], b"\x80dir/\xc3"] {
            fs::write(temp.path().join(OsStr::from_bytes(name)), name).unwrap();
        }
        symlink(OsStr::from_bytes(b"\xff"), temp.path().join("link")).unwrap();
        let source = Source::open(temp.path()).unwrap();
        assert_eq!((source.left_out().special, source.manifest().omitted().special), (1, 1));
        assert!(source.left_out().first[0].ends_with("pipe"));
        assert_eq!(source.manifest().entries().len(), 6);
        assert_eq!(read(&source, 0, 9).unwrap(), b"a\nb\x80dir/\xc3"[..9]);
    }

    /// A file of a megabyte with data at these places.
    fn sparse(path: &Path, data: &[(u64, &[u8])]) {
        use std::os::unix::fs::FileExt;
        let file = fs::File::create(path).unwrap();
        file.set_len(1 << 20).unwrap();
        data.iter().for_each(|(offset, bytes)| file.write_all_at(bytes, *offset).unwrap());
    }

    #[test]
    fn holes_are_no_part_of_the_object() {
        let temp = tempfile::tempdir().unwrap();
        let bytes = content(8192);
        sparse(&temp.path().join("a"), &[(0, &bytes[..4096]), (1 << 19, &bytes[4096..])]);
        sparse(&temp.path().join("b"), &[]);
        fs::write(temp.path().join("c"), b"end").unwrap();
        let source = Source::open(temp.path()).unwrap();
        if source.size() > 2 << 20 {
            eprintln!("skipped: this file system has no holes");
            return;
        }
        assert_eq!((source.size(), source.manifest().length()), (8192 + 3, (2 << 20) + 3));
        let kinds: Vec<_> = source.manifest().entries().map(|one| one.kind).collect();
        let holes = vec![
            Hole { start: 4096, end: 1 << 19 },
            Hole { start: (1 << 19) + 4096, end: 1 << 20 },
        ];
        assert_eq!(kinds[1], EntryKind::File { size: 1 << 20, holes });
        let all = vec![Hole { start: 0, end: 1 << 20 }];
        assert_eq!(kinds[2], EntryKind::File { size: 1 << 20, holes: all });
        assert_eq!(kinds[3], EntryKind::file(3));
        assert_eq!(read(&source, 0, 8195).unwrap(), [&bytes[..], b"end"].concat());
    }

    #[test]
    fn of_many_holes_the_largest_are_kept() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x");
        sparse(&path, &[(4096, b"x"), (3 * 4096, b"x"), (1 << 19, b"x")]);
        let file = fs::File::open(&path).unwrap();
        let metadata = Metadata::from_file(&file).unwrap();
        let find = |room| holes::find(&file, &metadata, room).unwrap();
        let all = find(4);
        if all.is_empty() {
            eprintln!("skipped: this file system has no holes");
            return;
        }
        assert_eq!(all.len(), 4);
        assert_eq!(find(3), all[2..]);
        assert_eq!(find(0), []);
    }

    #[test]
    fn what_may_not_be_read_is_left_out_of_its_folder() {
        let (temp, all) = folder_of(&[10, 10, 10, 10, 10]);
        let lock = |path: &str| {
            let mode = fs::Permissions::from_mode(0o0);
            fs::set_permissions(temp.path().join(path), mode).unwrap();
        };
        lock("d000/f1");
        lock("d001");
        if fs::File::open(temp.path().join("d000/f1")).is_ok() {
            eprintln!("skipped: this user may read everything");
            return;
        }
        let source = Source::open(temp.path()).unwrap();
        let omitted = Omitted { special: 0, unreadable: 2 };
        assert_eq!(source.manifest().omitted(), omitted);
        assert_eq!(source.left_out().first.len(), 2);
        assert_eq!(read(&source, 0, 20).unwrap(), [&all[..10], &all[20..30]].concat());
        // What was named is not passed over.
        for path in ["d000/f1", "d001"] {
            let refused = Source::open(&temp.path().join(path));
            assert!(matches!(refused, Err(SourceError::Unreadable { .. })), "{refused:?}");
        }
        fs::set_permissions(temp.path().join("d001"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}
