use super::*;
use crate::name;
use proptest::prelude::*;

fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry { path: path.to_owned(), kind, mode: 0o644, modified: Modified::default(), extra: None }
}

fn file(path: &str, size: u64) -> Entry {
    entry(path, EntryKind::file(size))
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
    let head = Head { name, size, omitted: Omitted::default(), entries: entries.len() as u64 };
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
    assert_eq!(Manifest::decode(&manifest.encode().unwrap()), Ok(manifest.clone()));
    let less = manifest.with_omitted(Omitted { special: 3, unreadable: 300 });
    assert_eq!(Manifest::decode(&less.encode().unwrap()), Ok(less));
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
    let cases: [(&str, Make); 14] = [
        ("/etc/passwd", E::Absolute),
        ("//", E::Absolute),
        ("..", E::DotComponent),
        ("../x", E::DotComponent),
        ("a/../../x", E::DotComponent),
        ("./a", E::DotComponent),
        ("a/.", E::DotComponent),
        ("a//b", E::EmptyComponent),
        ("a/", E::EmptyComponent),
        ("a\0b", E::Impossible),
        // The bytes of "ä", which are text.
        ("a\u{10ffc3}\u{10ffa4}", E::Impossible),
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
    for name in ["", ".", "..", "a/b", "/", "a\0", &"x".repeat(256)] {
        let refused = Manifest::decode(&forged(name, 0, &[file("", 0)]));
        assert_eq!(refused, Err(ManifestError::Name(name.to_owned())));
        assert!(example().with_name(name).is_err());
    }
    assert_eq!(example().with_name("other").unwrap().name(), "other");
    assert!(folder([file(&"x".repeat(MAX_COMPONENT), 0)]).is_ok());
}

#[test]
fn any_bytes_but_a_slash_and_zero_are_a_name_and_their_length_is_theirs() {
    for bytes in [&b"a\nb"[..], b"\x1b[2J", b"\xff", b"\xc3", &[0x80; MAX_COMPONENT]] {
        let path = name::from_bytes(bytes);
        assert!(folder([file(&path, 0)]).is_ok(), "{path:?}");
        assert!(example().with_name(&path).is_ok(), "{path:?}");
    }
    let long = name::from_bytes(&[0x80; MAX_COMPONENT + 1]);
    assert_eq!(folder([file(&long, 0)]), Err(ManifestError::LongComponent(long)));
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
fn doubles_and_disorder_are_refused_and_names_that_differ_in_case_are_not() {
    use ManifestError as E;
    assert_eq!(folder([file("a", 0), dir("a")]), Err(E::Duplicate("a".into())));
    assert_eq!(folder([file("b", 0), file("a", 0)]), Err(E::OutOfOrder("a".into())));
    let by_bytes_not_components = [dir("a"), file("a.txt", 0), file("a/b", 0)];
    assert_eq!(folder(by_bytes_not_components), Err(E::OutOfOrder("a/b".into())));
    // Whether these are one name is for the receiver's file system to say.
    assert!(folder([file("README", 0), file("readme", 0)]).is_ok());
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
fn links_within_the_object_are_told_from_those_that_point_out_of_it() {
    let is_outward = |target: &str| {
        let entries = [dir("a"), link("a/l", target), dir("b")];
        folder(entries).unwrap().is_outward(2)
    };
    for target in ["x", "../x", "../b/../x", ".", "./../b/", "..", "missing/x", "dead"] {
        assert!(!is_outward(target), "{target}");
    }
    for target in ["../..", "../../x", "../b/../../x", "missing/../x", "../a/../../folder", "/etc"]
    {
        assert!(is_outward(target), "{target}");
    }
    for target in ["", "a\0b", &"x".repeat(MAX_PATH + 1)] {
        assert_eq!(folder([link("l", target)]), Err(ManifestError::Target("l".into())));
    }
}

#[test]
fn a_chain_of_symlinks_cannot_climb_out_unnoticed() {
    // Each `..` is within its depth when symlinks are taken for directories, yet `out` would leave
    // the root.
    let entries = [
        dir("deep"),
        dir("deep/deeper"),
        link("deep/deeper/up", "../.."),
        link("out", "deep/deeper/up/../.."),
    ];
    let manifest = folder(entries).unwrap();
    assert_eq!([3, 4].map(|i| manifest.is_outward(i)), [false, true]);
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
    let head = Head { name: "x", size: 0, omitted: Omitted::default(), entries: u64::MAX };
    let bytes = postcard::to_extend(&head, vec![VERSION]).unwrap();
    assert_eq!(Manifest::decode(&bytes), Err(ManifestError::TooManyEntries(u64::MAX)));
    let head = Head { entries: MAX_ENTRIES as u64, ..head };
    let bytes = postcard::to_extend(&head, vec![VERSION]).unwrap();
    assert_eq!(Manifest::decode(&bytes), Err(ManifestError::Malformed(bytes.len())));
    let too_long = vec![VERSION; MAX_BYTES + 1];
    assert_eq!(Manifest::decode(&too_long), Err(ManifestError::TooLong(MAX_BYTES + 1)));
}

#[test]
fn owners_and_attributes_stay_within_their_limits() {
    let with = |owner, attributes: &[(&str, usize)]| {
        let attribute = |(name, size): &(&str, usize)| Attribute {
            name: (*name).to_owned(),
            value: vec![7; *size],
        };
        let attributes = attributes.iter().map(attribute).collect();
        let extra = Some(Box::new(Extra { owner, attributes }));
        Manifest::new("x", vec![Entry { extra, ..file("", 1) }])
    };
    let manifest = with(Some((0, 1000)), &[("security.x", 0), ("user.a", 65_536)]).unwrap();
    assert_eq!(Manifest::decode(&manifest.encode().unwrap()), Ok(manifest));
    let long = format!("user.{}", "x".repeat(251));
    let impossible: [&[(&str, usize)]; 7] = [
        &[("user.b", 1), ("user.a", 1)],
        &[("user.a", 1), ("user.a", 1)],
        &[("user.a", 65_537)],
        &[("user", 1)],
        &[("user.", 1)],
        &[("user.a\0b", 1)],
        &[(&long, 1)],
    ];
    for attributes in impossible {
        assert_eq!(with(None, attributes), Err(ManifestError::Extra(String::new())));
    }
    assert!(with(Some((u32::MAX, 0)), &[]).is_err(), "it would stand for no change");
    let names: Vec<_> = (0..=MAX_ATTRIBUTES).map(|i| format!("user.{i:03}")).collect();
    let many: Vec<_> = names.iter().map(|name| (&**name, 1)).collect();
    assert!(with(None, &many).is_err() && with(None, &many[1..]).is_ok());
    let extra =
        Extra { attributes: vec![Attribute { name: "user.a".into(), value: vec![] }], owner: None };
    let on_link = Entry { extra: Some(Box::new(extra)), ..link("l", "x") };
    assert_eq!(folder([on_link]), Err(ManifestError::Extra("l".into())));
}

#[test]
fn holes_ascend_apart_from_each_other_within_their_file() {
    let sparse = |size, holes: &[(u64, u64)]| {
        let holes = holes.iter().map(|&(start, end)| Hole { start, end }).collect();
        Manifest::new("x", vec![entry("", EntryKind::File { size, holes })])
    };
    let manifest = sparse(100, &[(0, 10), (11, 20), (90, 100)]).unwrap();
    assert_eq!((manifest.size(), manifest.length()), (71, 100));
    assert_eq!(Manifest::decode(&manifest.encode().unwrap()), Ok(manifest));
    assert_eq!(sparse(1 << 40, &[(0, 1 << 40)]).unwrap().size(), 0);
    let impossible: [&[(u64, u64)]; 6] = [
        &[(5, 5)],
        &[(6, 5)],
        &[(0, 101)],
        &[(0, 10), (10, 20)],
        &[(20, 30), (0, 10)],
        &[(0, 10), (5, 20)],
    ];
    for holes in impossible {
        assert_eq!(sparse(100, holes), Err(ManifestError::Holes(String::new())), "{holes:?}");
    }
    assert_eq!(sparse(u64::MAX, &[(0, 1)]), Err(ManifestError::Holes(String::new())));
    let many: Vec<_> = (0..=MAX_HOLES as u64).map(|i| (2 * i, 2 * i + 1)).collect();
    assert_eq!(sparse(1 << 30, &many), Err(ManifestError::TooManyHoles(String::new())));
    assert!(sparse(1 << 30, &many[1..]).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Manifest::decode(&bytes);
        let _ = Manifest::decode(&[&[VERSION], &bytes[..]].concat());
    }

    #[test]
    fn a_target_that_is_not_outward_ends_within_the_root(target in "(\\.\\./|a/|b/|l/|\\./){0,6}x") {
        let manifest = folder([
            dir("a"), dir("a/b"), link("a/b/l", "../.."), link("a/t", &target), dir("b"),
        ]);
        if !manifest.unwrap().is_outward(4) {
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
