mod attributes;
mod holes;

use super::*;

use std::fs;

use crate::manifest::Modified;
use crate::stamp;
use crate::{HashTree, Source};
use fontis_base::Stream;
use fontis_proto::dfcp::{Checkpoint, Kept, KeptBlock};
use tempfile::TempDir;

const SEED: u64 = 0x7369_6e6b;

fn random() -> Stream {
    println!("seed {SEED:#x}");
    Stream::new(SEED, "sink")
}

fn entry(path: &str, kind: EntryKind, mode: u32) -> Entry {
    let modified = Modified { seconds: 1_000_000_000, nanos: 123_456_789 };
    Entry { path: path.to_owned(), kind, mode, modified, extra: None }
}

fn file(path: &str, size: u64) -> Entry {
    entry(path, EntryKind::file(size), 0o640)
}

fn dir(path: &str) -> Entry {
    entry(path, EntryKind::Directory, 0o750)
}

fn single(size: u64) -> Manifest {
    Manifest::new("x", vec![file("", size)]).unwrap()
}

fn folder(entries: impl IntoIterator<Item = Entry>) -> Manifest {
    Manifest::new("folder", [dir("")].into_iter().chain(entries).collect()).unwrap()
}

fn create(path: &Path, manifest: Manifest, overwrite: bool) -> Result<Sink, SinkError> {
    let options = SinkOptions { overwrite, ..SinkOptions::default() };
    Sink::create(&Dest::new(path), manifest, &[blake3::hash(b"content")], options)
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn times_before_1970_are_kept() {
    let early = Modified { seconds: -1, nanos: 500_000_000 };
    let target = "f".to_owned();
    let entries = [dir("d"), entry("d/l", EntryKind::Symlink { target }, 0o777), file("f", 0)];
    let entries = entries.map(|one| Entry { modified: early, ..one });
    let to = temp();
    let sink = create(&to.path().join("x"), folder(entries), false).unwrap();
    let (path, left_out) = sink.finish().unwrap();
    assert_eq!(left_out.total(), 0);
    for name in ["d", "d/l", "f"] {
        let modified = fs::symlink_metadata(path.join(name)).unwrap().modified().unwrap();
        assert_eq!(stamp::to_modified(modified), early, "{name}");
    }
}

#[test]
fn a_folder_written_in_any_order_is_the_folder_that_was_sent() {
    let mut random = random();
    let (from, to) = (temp(), temp());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    for i in 0..150u64 {
        let mut bytes = vec![0; random.below(if i % 10 == 0 { 20_000 } else { 300 }) as usize];
        random.fill(&mut bytes);
        fs::write(tree.join(if i % 2 == 0 { "a" } else { "" }).join(format!("{i}")), bytes)
            .unwrap();
    }
    fs::write(tree.join("empty"), b"").unwrap();
    let source = Source::open(&tree).unwrap();
    let sink = create(to.path(), source.manifest().clone(), false).unwrap();
    let mut offsets: Vec<u64> = (0..source.size()).step_by(1024).collect();
    for i in (1..offsets.len()).rev() {
        offsets.swap(i, random.below(i as u64 + 1) as usize);
    }
    for offset in offsets {
        let mut block = Vec::new();
        source.read_block(offset, 1024.min(source.size() - offset) as usize, &mut block).unwrap();
        sink.write_block(offset, &block).unwrap();
        sink.write_block(offset, &block).unwrap();
    }
    assert_eq!(sink.written(), source.size());
    assert_eq!(names(to.path()), [".tree.fontis-partial", ".tree.fontis-partial-log"]);
    assert_eq!(sink.finish().unwrap().0, to.path().join("tree"));
    assert_eq!(names(to.path()), ["tree"]);
    let copy = Source::open(&to.path().join("tree")).unwrap();
    assert_eq!(copy.manifest(), source.manifest(), "names, modes and times are the sender's");
    assert_eq!(copy.hash_tree(|_| ()).unwrap(), source.hash_tree(|_| ()).unwrap());
}

#[test]
fn an_object_with_a_byte_missing_gets_no_name() {
    let temp = temp();
    let sink = create(&temp.path().join("x"), single(3000), false).unwrap();
    sink.write_block(0, &[1; 1000]).unwrap();
    sink.write_block(1001, &[1; 1999]).unwrap();
    assert!(matches!(sink.finish(), Err(SinkError::Incomplete { missing: 1, .. })));
    assert_eq!(names(temp.path()), [".x.fontis-partial", ".x.fontis-partial-log"]);
}

#[test]
fn a_block_beyond_the_end_is_refused() {
    let temp = temp();
    let sink = create(&temp.path().join("x"), single(10), false).unwrap();
    for (offset, len) in [(10, 1), (0, 11), (u64::MAX, 1)] {
        let refused = sink.write_block(offset, &vec![0; len]);
        assert!(matches!(refused, Err(SinkError::Range { .. })));
    }
}

/// Blocks of 1024 bytes of a content, and their tree.
fn blocks(size: usize) -> (Vec<u8>, HashTree) {
    let mut bytes = vec![0; size];
    random().fill(&mut bytes);
    let tree = HashTree::of_reader(&bytes[..], 1024, |_| ()).unwrap();
    (bytes, tree)
}

/// The first symbol, of 100 bytes, of the fourth block.
fn first_of_block_3(content: &[u8]) -> Checkpoint {
    Checkpoint {
        block: 3,
        symbol_size: 100,
        offset: 0,
        data: content[3072..3172].to_vec().into(),
        runs: vec![(0, 1)],
    }
}

fn sink_for(dest: &Path, manifest: &Manifest, tree: &HashTree, restart: bool) -> Sink {
    let options = SinkOptions { restart, ..SinkOptions::default() };
    Sink::create(&Dest::new(dest), manifest.clone(), &[tree.root()], options).unwrap()
}

#[test]
fn what_was_written_is_found_again_and_nothing_else() {
    let temp = temp();
    let manifests =
        [single(5000), folder([dir("a"), file("a/b", 1500), file("a/empty", 0), file("c", 3500)])];
    for manifest in manifests {
        let dest = temp.path().join("dest");
        let (content, tree) = blocks(5000);
        drop(sink_for(&dest, &manifest, &tree, false));
        assert!(names(temp.path()).is_empty(), "nothing was written");
        let sink = sink_for(&dest, &manifest, &tree, false);
        assert!(sink.resume(&tree, |_| ()).unwrap() == Kept::default());
        for block in [0, 1, 4] {
            let bytes = &content[block * 1024..5000.min((block + 1) * 1024)];
            sink.write_block(block as u64 * 1024, bytes).unwrap();
        }
        // Of block 2 three symbols of 100 bytes are there, of block 3 the last, which is short.
        let part = |block: u32, symbols: std::ops::Range<u32>, runs: &[(u32, u32)]| {
            let start = block as usize * 1024;
            let span = symbols.start as usize * 100..(symbols.end as usize * 100).min(1024);
            Checkpoint {
                block,
                symbol_size: 100,
                offset: symbols.start * 100,
                data: content[start + span.start..start + span.end].to_vec().into(),
                runs: runs.to_vec(),
            }
        };
        sink.checkpoint(1024, &part(2, 1..5, &[(1, 2), (4, 1)])).unwrap();
        sink.checkpoint(1024, &part(3, 10..11, &[(10, 1)])).unwrap();
        drop(sink);
        let sink = sink_for(&dest, &manifest, &tree, false);
        let kept = sink.resume(&tree, |_| ()).unwrap();
        assert_eq!(kept.done, [0..2, 4..5]);
        assert_eq!(sink.written(), 2048 + 5000 - 4096);
        let run = |block: usize, from: usize, to: usize| {
            bytes::Bytes::copy_from_slice(&content[block * 1024 + from..block * 1024 + to])
        };
        let begun = |block, runs| KeptBlock { block, symbol_size: 100, runs };
        let expected = [
            begun(2, vec![(1, run(2, 100, 300)), (4, run(2, 400, 500))]),
            begun(3, vec![(10, run(3, 1000, 1024))]),
        ];
        assert_eq!(kept.begun, expected);
        for block in [2, 3] {
            sink.write_block(block as u64 * 1024, &content[block * 1024..][..1024]).unwrap();
        }
        let path = sink.finish().unwrap().0;
        assert_eq!(names(temp.path()), ["dest"], "the journal goes with the partial");
        assert_eq!(Source::open(&path).unwrap().hash_tree(|_| ()).unwrap().root(), tree.root());
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
    }
}

#[test]
fn bytes_of_another_object_are_never_taken_for_this_one() {
    let temp = temp();
    let dest = temp.path().join("dest");
    let (content, tree) = blocks(5000);
    let sink = sink_for(&dest, &single(5000), &tree, false);
    sink.write_block(0, &content[..1024]).unwrap();
    sink.write_block(1024, &content[1024..2048]).unwrap();
    sink.checkpoint(1024, &first_of_block_3(&content)).unwrap();
    drop(sink);
    // The source has changed in its second block, and is shorter.
    let mut changed = content[..3500].to_vec();
    changed[1500] ^= 1;
    let other = HashTree::of_reader(&changed[..], 1024, |_| ()).unwrap();
    let sink = sink_for(&dest, &single(3500), &other, false);
    let kept = sink.resume(&other, |_| ()).unwrap();
    assert_eq!(kept, Kept { done: vec![0..1], begun: Vec::new() });
    drop(sink);
    // Of a folder, nothing is of use once its files are others.
    let sink = sink_for(&dest, &folder([file("a", 3500)]), &other, false);
    assert_eq!(sink.resume(&other, |_| ()).unwrap(), Kept::default());
    sink.write_block(0, &changed[..1024]).unwrap();
    drop(sink);
    let sink = sink_for(&dest, &folder([file("a", 3500)]), &other, true);
    assert_eq!(sink.resume(&other, |_| ()).unwrap(), Kept::default(), "it was to begin anew");
    drop(sink);
    assert!(names(temp.path()).is_empty());
}

#[test]
fn what_was_kept_under_one_name_of_a_content_is_found_under_all_of_them() {
    let temp = temp();
    let dest = temp.path().join("dest");
    let (content, tree) = blocks(5000);
    let (state, other) = (blake3::hash(b"state"), blake3::hash(b"another state"));
    let create = |content: &[Hash]| {
        Sink::create(&Dest::new(&dest), single(5000), content, SinkOptions::default()).unwrap()
    };
    // The root was not known yet.
    let sink = create(&[state]);
    sink.checkpoint(1024, &first_of_block_3(&content)).unwrap();
    drop(sink);
    let begun = |names: &[Hash]| create(names).resume(&tree, |_| ()).unwrap().begun.len();
    assert_eq!(begun(&[tree.root(), state]), 1);
    assert_eq!(begun(&[tree.root(), state]), 1, "looking changes nothing");
    assert_eq!(begun(&[tree.root(), other]), 0);
}

#[test]
fn a_journal_that_lies_costs_nothing_but_its_blocks() {
    let temp = temp();
    let dest = temp.path().join("dest");
    let (content, tree) = blocks(3000);
    let sink = sink_for(&dest, &single(3000), &tree, false);
    sink.write_block(0, &content[..1024]).unwrap();
    let lies = [
        (0, 1, 0, 5),
        (7, 100, 0, 1),
        (1, 0, 0, 1),
        (2, 100, u32::MAX, u32::MAX),
        (1, 9, 0, 1 << 30),
    ];
    let lies =
        lies.map(|(block, symbol_size, first, count)| Record { block, symbol_size, first, count });
    sink.journal.append(lies).unwrap();
    drop(sink);
    let sink = sink_for(&dest, &single(3000), &tree, false);
    let kept = sink.resume(&tree, |_| ()).unwrap();
    assert_eq!(kept, Kept { done: vec![0..1], begun: Vec::new() });
    drop(sink);
    fs::write(temp.path().join(".dest.fontis-partial-log"), b"nonsense").unwrap();
    let sink = sink_for(&dest, &single(3000), &tree, false);
    let kept = sink.resume(&tree, |_| ()).unwrap();
    assert_eq!(kept, Kept { done: vec![0..1], begun: Vec::new() }, "a file needs none");
}

#[test]
fn two_transfers_do_not_write_the_same_partial() {
    let temp = temp();
    for manifest in [single(1), folder([])] {
        let first = create(&temp.path().join("x"), manifest.clone(), false).unwrap();
        let second = create(&temp.path().join("x"), manifest, false);
        assert!(matches!(second, Err(SinkError::Busy { .. })));
        let first_only = [".x.fontis-partial", ".x.fontis-partial-log"];
        assert_eq!(names(temp.path()), first_only, "the first is unharmed");
        drop(first);
    }
}

#[test]
fn an_existing_destination_is_refused_before_the_transfer() {
    let temp = temp();
    fs::write(temp.path().join("x"), b"old").unwrap();
    let refused = create(temp.path(), single(1), false).unwrap_err();
    assert!(matches!(refused, SinkError::Exists { .. }));
    assert!(refused.to_string().contains("--force"), "{refused}");
    assert_eq!(names(temp.path()), ["x"]);
}

#[test]
fn a_destination_that_appears_during_the_transfer_is_not_replaced() {
    let temp = temp();
    for manifest in [single(0), folder([])] {
        let dest = temp.path().join("dest");
        let sink = create(&dest, manifest, false).unwrap();
        fs::write(&dest, b"theirs").unwrap();
        let Err(SinkError::Appeared { partial, .. }) = sink.finish() else { panic!() };
        assert!(partial.exists(), "the object is not lost");
        assert_eq!(fs::read(&dest).unwrap(), b"theirs");
        fs::remove_file(dest).unwrap();
    }
}

#[test]
fn overwriting_replaces_like_by_like_and_only_at_the_end() {
    let temp = temp();
    let dest = temp.path().join("dest");
    fs::write(&dest, b"old").unwrap();
    assert!(matches!(create(&dest, folder([]), true), Err(SinkError::Kind { folder: false, .. })));
    let sink = create(&dest, single(3), true).unwrap();
    sink.write_block(0, b"new").unwrap();
    assert_eq!(fs::read(&dest).unwrap(), b"old");
    sink.finish().unwrap();
    assert_eq!(fs::read(&dest).unwrap(), b"new");
    fs::remove_file(&dest).unwrap();
    fs::create_dir_all(temp.path().join("folder/old")).unwrap();
    let sink = create(temp.path(), folder([file("new", 0)]), true).unwrap();
    sink.finish().unwrap();
    assert_eq!(names(temp.path()), ["folder"]);
    assert_eq!(names(&temp.path().join("folder")), ["new"]);
    fs::create_dir_all(temp.path().join("x")).unwrap();
    let refused = create(temp.path(), single(1), true);
    assert!(matches!(refused, Err(SinkError::Kind { folder: true, .. })));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let temp = temp();
    let missing = temp.path().join("missing");
    match create(&missing.join("x"), single(1), false) {
        Err(SinkError::NoFolder { path }) => assert_eq!(path, missing),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_larger_than_the_disk_is_refused_at_once() {
    let temp = temp();
    let refused = create(&temp.path().join("x"), single(1 << 62), false);
    assert!(matches!(refused, Err(SinkError::Space { .. })), "{refused:?}");
    assert!(names(temp.path()).is_empty());
}

#[test]
fn what_the_system_says_becomes_an_error_with_the_path() {
    use io::ErrorKind as Kind;
    let of = |kind: Kind| SinkError::io(Path::new("a\x1bb"), kind.into());
    assert!(matches!(of(Kind::StorageFull), SinkError::Full { .. }));
    assert!(matches!(of(Kind::ReadOnlyFilesystem), SinkError::ReadOnly { .. }));
    assert!(matches!(of(Kind::PermissionDenied), SinkError::Denied { .. }));
    assert!(of(Kind::Other).to_string().contains(r"a\u{1b}b"));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn modes_times_and_symlinks_arrive() {
        let temp = temp();
        let link = EntryKind::Symlink { target: "locked/file".to_owned() };
        let manifest = folder([
            entry("link", link, 0o777),
            entry("locked", EntryKind::Directory, 0o500),
            entry("locked/file", EntryKind::file(3), 0o400),
            entry("run", EntryKind::file(2), 0o755),
        ]);
        let sink = create(temp.path(), manifest, false).unwrap();
        assert_eq!(mode(&temp.path().join(".folder.fontis-partial")), 0o700, "private till then");
        sink.write_block(0, b"ab").unwrap();
        sink.write_block(2, b"cde").unwrap();
        let root = sink.finish().unwrap().0;
        assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("locked/file"));
        assert_eq!(fs::read(root.join("link")).unwrap(), b"abc");
        assert_eq!(mode(&root.join("locked")), 0o500);
        assert_eq!(mode(&root.join("locked/file")), 0o400);
        assert_eq!(mode(&root.join("run")) | 0o055, 0o755, "less what the umask denies");
        for path in ["", "link", "locked", "locked/file", "run"] {
            let told = fs::symlink_metadata(root.join(path)).unwrap();
            assert_eq!((told.mtime(), told.mtime_nsec()), (1_000_000_000, 123_456_789), "{path}");
        }
        fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_symlink_planted_in_the_partial_does_not_redirect_writes() {
        let (temp, outside) = (temp(), temp());
        let sink = create(temp.path(), folder([dir("a"), file("a/b", 4)]), false).unwrap();
        let planted = temp.path().join(".folder.fontis-partial/a");
        fs::remove_dir(&planted).unwrap();
        symlink(outside.path(), &planted).unwrap();
        assert!(sink.write_block(0, b"evil").is_err());
        fs::remove_file(&planted).unwrap();
        fs::create_dir(&planted).unwrap();
        symlink(outside.path().join("b"), planted.join("b")).unwrap();
        assert!(sink.write_block(0, b"evil").is_err());
        drop(sink);
        assert!(names(outside.path()).is_empty());
        // Whoever goes on from there is not led astray either.
        let again = create(temp.path(), folder([dir("a"), file("a/b", 4)]), false).unwrap();
        again.write_block(0, b"good").unwrap();
        let root = again.finish().unwrap().0;
        assert_eq!(fs::read(root.join("a/b")).unwrap(), b"good");
        assert!(names(outside.path()).is_empty());
    }

    #[test]
    fn a_name_that_cannot_be_here_is_left_out_with_all_beneath_it() {
        let temp = temp();
        let manifest = folder([dir("a"), file("a/b", 3), file("c", 3), file("d", 0)]);
        let tree = HashTree::of_reader(&b"bbbccc"[..], 1024, |_| ()).unwrap();
        let sink = sink_for(&temp.path().join("folder"), &manifest, &tree, false);
        // A file system that takes "c" and "C" for one name has it when the other was made.
        fs::write(temp.path().join(".folder.fontis-partial/c"), "other").unwrap();
        sink.write_block(0, b"bbbccc").unwrap();
        let (root, left_out) = sink.finish().unwrap();
        assert_eq!((left_out.names, left_out.total()), (1, 1));
        assert!(left_out.first[0].ends_with("folder/c"), "{left_out:?}");
        assert_eq!(fs::read(root.join("a/b")).unwrap(), b"bbb");
        assert!(root.join("d").exists());
    }

    #[test]
    fn an_outward_link_is_left_out_unless_it_is_to_be_kept() {
        let temp = temp();
        let link = |path: &str, target: &str| {
            entry(path, EntryKind::Symlink { target: target.to_owned() }, 0o777)
        };
        let manifest = folder([link("absolute", "/etc"), link("up", "../x"), link("within", "up")]);
        for (name, outward_links) in [("skipped", false), ("kept", true)] {
            let dest = Dest::new(temp.path().join(name));
            let options = SinkOptions { outward_links, ..SinkOptions::default() };
            let sink =
                Sink::create(&dest, manifest.clone(), &[blake3::hash(b"")], options).unwrap();
            let (root, left_out) = sink.finish().unwrap();
            assert_eq!(left_out.links, if outward_links { 0 } else { 2 });
            assert_eq!(fs::read_link(root.join("within")).unwrap(), Path::new("up"));
            let absolute = fs::read_link(root.join("absolute"));
            assert_eq!(absolute.ok().as_deref(), outward_links.then_some(Path::new("/etc")));
        }
    }

    /// An interrupted transfer of a file, at this destination.
    fn interrupted(dest: &Path) -> (Manifest, HashTree, PathBuf) {
        let (content, tree) = blocks(4 << 20);
        let manifest = single(content.len() as u64);
        let sink = sink_for(dest, &manifest, &tree, false);
        sink.write_block(0, &content[..tree.block_len(0)]).unwrap();
        drop(sink);
        let name = dest.file_name().unwrap().to_str().unwrap();
        (manifest, tree, dest.with_file_name(format!(".{name}.fontis-partial")))
    }

    #[test]
    fn a_partial_with_another_name_is_replaced_and_not_written() {
        let temp = temp();
        let dest = temp.path().join("x");
        let (manifest, tree, partial) = interrupted(&dest);
        let victim = temp.path().join("victim");
        fs::hard_link(&partial, &victim).unwrap();
        let before = fs::read(&victim).unwrap();
        let sink = sink_for(&dest, &manifest, &tree, false);
        assert_eq!(sink.resume(&tree, |_| {}).unwrap(), Kept::default());
        sink.write_block(0, &vec![7; tree.block_len(0)]).unwrap();
        assert!(fs::read(&victim).unwrap() == before);
    }

    #[test]
    fn a_file_with_another_name_in_a_partial_folder_is_replaced_and_not_written() {
        let temp = temp();
        let dest = temp.path().join("folder");
        let manifest = folder([file("a", 3), file("b", 3)]);
        let tree = HashTree::of_reader(&b"aaabbb"[..], 1024, |_| ()).unwrap();
        sink_for(&dest, &manifest, &tree, false).write_block(0, b"aaa").unwrap();
        let (planted, victim) =
            (temp.path().join(".folder.fontis-partial/b"), temp.path().join("v"));
        fs::write(&victim, "old").unwrap();
        fs::hard_link(&victim, &planted).unwrap();
        let sink = sink_for(&dest, &manifest, &tree, false);
        sink.write_block(0, b"aaabbb").unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"old");
        assert_eq!(fs::read(dest.join("b")).unwrap(), b"bbb");
    }

    #[test]
    fn the_modes_that_a_journal_names_are_not_believed() {
        let temp = temp();
        let dest = temp.path().join("x");
        let (content, tree) = blocks(2 << 20);
        let manifest = Manifest::new("x", vec![entry("", EntryKind::file(2 << 20), 0o777)]);
        let manifest = manifest.unwrap();
        sink_for(&dest, &manifest, &tree, false)
            .write_block(0, &content[..tree.block_len(0)])
            .unwrap();
        let journal = temp.path().join(".x.fontis-partial-log");
        let mut bytes = fs::read(&journal).unwrap();
        let umask = u32::from_le_bytes(bytes[80..84].try_into().unwrap());
        // All bits, where the umask leaves fewer; none, where it leaves all.
        let lie: u32 = if umask == 0o777 { 0 } else { 0o777 };
        bytes[80..84].copy_from_slice(&lie.to_le_bytes());
        fs::write(&journal, bytes).unwrap();
        let sink = sink_for(&dest, &manifest, &tree, false);
        sink.write_block(0, &content).unwrap();
        sink.finish().unwrap();
        assert_eq!(mode(&dest), umask);
    }

    #[test]
    fn a_name_of_an_unfinished_transfer_is_refused() {
        let temp = temp();
        for name in [".x.fontis-partial", ".x.fontis-partial-log", ".X.FONTIS-PARTIAL"] {
            let manifest = Manifest::new(name, vec![file("", 1)]).unwrap();
            let refused = create(temp.path(), manifest, false);
            assert!(matches!(refused, Err(SinkError::Reserved { .. })), "{name}");
            let refused =
                create(temp.path(), folder([dir("a"), file(&format!("a/{name}"), 1)]), false);
            assert!(matches!(refused, Err(SinkError::Reserved { .. })), "{name}");
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_symlink_at_the_destination_is_replaced_and_not_followed() {
        let (temp, outside) = (temp(), temp());
        let (target, dest) = (outside.path().join("target"), temp.path().join("x"));
        fs::write(&target, b"theirs").unwrap();
        symlink(&target, &dest).unwrap();
        assert!(matches!(create(&dest, single(2), false), Err(SinkError::Exists { .. })));
        let sink = create(&dest, single(2), true).unwrap();
        sink.write_block(0, b"me").unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(&dest).unwrap().is_file());
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_refused() {
        let temp = temp();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o500)).unwrap();
        let refused = create(&temp.path().join("x"), single(1), false);
        if refused.is_ok() {
            eprintln!("skipped: this user may write everywhere");
            return;
        }
        assert!(matches!(refused, Err(SinkError::Denied { .. })), "{refused:?}");
    }
}
