//! Folders with everything that a file system can hold.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bench, Running, content};

/// A folder with names of any bytes, a pipe, and links of all kinds.
fn fill(folder: &Path) -> Vec<PathBuf> {
    fs::create_dir(folder).unwrap();
    let names: [&[u8]; 4] = [b"plain", b"\xff\xc3", b"line\nbreak", b"\x1b[2J"];
    let paths: Vec<_> = names.iter().map(|name| folder.join(OsStr::from_bytes(name))).collect();
    paths.iter().for_each(|path| fs::write(path, content(1_000)).unwrap());
    symlink("plain", folder.join("within")).unwrap();
    symlink("/etc/passwd", folder.join("absolute")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

#[test]
fn a_folder_is_fetched_but_for_what_cannot_travel_and_that_is_counted() {
    let bench = Bench::new();
    let names = fill(&bench.path("served/all"));
    let server = bench.serve(&["--json"]);
    let got = bench.run(&["get", &server.url_of("all"), "got"]);
    assert_eq!(got.code, 1, "{}", got.stderr);
    for count in ["1 socket, pipe or device", "1 outward link"] {
        assert!(got.stderr.contains(count), "{}", got.stderr);
    }
    assert!(!got.stderr.contains('\x1b'), "{:?}", got.stderr);
    for name in &names {
        assert_eq!(fs::read(bench.path("got").join(name)).unwrap(), content(1_000), "{name:?}");
    }
    assert_eq!(fs::read_link(bench.path("got/within")).unwrap(), Path::new("plain"));
    assert!(fs::symlink_metadata(bench.path("got/absolute")).is_err());
    assert!(fs::symlink_metadata(bench.path("got/pipe")).is_err());
    let kept = bench.run(&["get", &server.url_of("all"), "kept", "--links", "keep", "--json"]);
    assert_eq!(kept.code, 1, "{}", kept.stderr);
    let done = kept.events().into_iter().find(|event| event["event"] == "done").unwrap();
    assert_eq!((&done["left_out"]["special"], &done["left_out"]["links"]), (&1.into(), &0.into()));
    let absolute = fs::read_link(bench.path("kept/absolute")).unwrap();
    assert_eq!(absolute, Path::new("/etc/passwd"));
}

#[test]
fn a_folder_is_sent_but_for_what_cannot_travel_and_both_ends_say_so() {
    let bench = Bench::new();
    let names = fill(&bench.path("all"));
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&["--json"]);
    let sent = bench.run(&["send", "all", &receiver.url]);
    assert_eq!(sent.code, 1, "{}", sent.stderr);
    assert!(sent.stderr.contains("left out: all/pipe"), "{}", sent.stderr);
    assert!(sent.stderr.contains("1 outward link"), "{}", sent.stderr);
    let received = receiver.event("received");
    assert_eq!(received["left_out"]["links"], 1);
    for name in &names {
        assert!(bench.path("inbox/all").join(name).exists(), "{name:?}");
    }
}

#[test]
fn a_file_whose_name_is_no_text_has_a_url() {
    let bench = Bench::new();
    let name = OsStr::from_bytes(b"\xff\n");
    fs::write(bench.path("served").join(name), content(1_000)).unwrap();
    let server = bench.serve(&[]);
    let got = bench.run(&["get", &server.url_of("%FF%0A")]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(got.stderr.contains(r"\xff\n"), "{}", got.stderr);
    assert_eq!(fs::read(bench.path("").join(name)).unwrap(), content(1_000));
}

/// What `get` says of a transfer at its end.
fn done(run: &crate::support::Run) -> serde_json::Value {
    run.events().into_iter().find(|event| event["event"] == "done").unwrap()
}

#[test]
fn what_is_excluded_is_not_fetched_and_a_later_fetch_can_want_more_or_less() {
    let bench = Bench::new();
    for folder in ["served/all/raw", "served/all/sub"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
    }
    // Blocks of 1 MiB: three of raw hold nothing else.
    for (file, length) in
        [("a.tmp", 10), ("data", 700_000), ("raw/huge", 4_000_000), ("sub/keep", 300_000)]
    {
        fs::write(bench.path("served/all").join(file), content(length)).unwrap();
    }
    let server = bench.serve(&[]);
    let url = server.url_of("all");
    let flags = ["--exclude", "/raw", "--exclude-from", "served/patterns", "--json"];
    fs::write(bench.path("served/patterns"), "*.tmp\n").unwrap();
    let check = |folder: &str, raw: bool| {
        let is_there = |path: &str| bench.path(folder).join(path).exists();
        assert_eq!(is_there("raw"), raw);
        assert_eq!(is_there("raw/huge"), raw);
        assert!(!is_there("a.tmp"));
        for (path, length) in [("data", 700_000), ("sub/keep", 300_000)] {
            assert_eq!(fs::read(bench.path(folder).join(path)).unwrap(), content(length));
        }
    };
    let got = bench.run(&[&["get", &url, "got"], &flags[..]].concat());
    assert_eq!(got.code, 0, "{}", got.stderr);
    check("got", false);
    assert_eq!(done(&got)["left_out"]["excluded"], 3);
    // The first block and the last two hold wanted files.
    assert_eq!(done(&got)["bytes"], 5_000_010 - 3 * (1 << 20));
    assert_eq!(bench.leftovers(), ["got"]);
    // From two servers at once.
    let two = [&["get", &url, &url, "two"], &flags[..]].concat();
    let two = bench.run(&two);
    assert_eq!((two.code, &done(&two)["bytes"]), (0, &done(&got)["bytes"]), "{}", two.stderr);
    check("two", false);
    // What an interrupted transfer has of a file that is not wanted any more goes.
    let relay = bench.relay("127.0.0.1", server.port, &["--rate", "10mbit", "--delay", "5ms"]);
    let slow = server.url_with("127.0.0.1", relay.port, "all");
    let mut begun = Running::start(bench.command(&["get", &slow, "less", "--json"]));
    let partial = bench.path(".less.fontis-partial/raw/huge");
    while !partial.exists() && !begun.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(begun);
    assert!(partial.exists());
    let less = bench.run(&[&["get", &url, "less"], &flags[..]].concat());
    assert_eq!(less.code, 0, "{}", less.stderr);
    check("less", false);
    // And what it left out comes.
    let mut begun =
        Running::start(bench.command(&["get", &slow, "more", "--json", "--exclude", "raw"]));
    while !bench.path(".more.fontis-partial/data").exists() && !begun.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(begun);
    let more = bench.run(&["get", &url, "more", "--exclude", "*.tmp", "--json"]);
    assert_eq!(more.code, 0, "{}", more.stderr);
    check("more", true);
    assert_eq!(fs::read(bench.path("more/raw/huge")).unwrap(), content(4_000_000));
    let nothing = bench.run(&["get", &url, "nothing", "--exclude", "*"]);
    assert!(nothing.failed_with("is excluded"), "{}", nothing.stderr);
    assert!(!bench.path("nothing").exists());
    let shared = bench.run(&["get", &url, "shared", "--share", "--exclude", "raw"]);
    assert_eq!(shared.code, 2, "{}", shared.stderr);
}

#[test]
fn what_is_excluded_is_neither_sent_nor_served() {
    let bench = Bench::new();
    for folder in ["inbox", "served/sub", "served/target"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    for (file, text) in [
        ("served/.gitignore", "/target\n"),
        ("served/a.tmp", "a"),
        ("served/sub/b.tmp", "b"),
        ("served/sub/keep", "c"),
        ("served/sub/notes", "d"),
        ("served/target/large", "e"),
        ("patterns", "*.tmp\nnotes\n"),
    ] {
        fs::write(bench.path(file), text).unwrap();
    }
    let flags = ["--gitignore", "--exclude-from", "patterns", "--exclude", "!notes"];
    let receiver = bench.receive(&[]);
    let sent = bench.run(&[&["send", "served", &receiver.url], &flags[..]].concat());
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let server = bench.serve(&flags);
    let got = bench.run(&["get", &server.url, "got"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    for folder in ["inbox/served", "got"] {
        for (path, is_there) in [
            (".gitignore", true),
            ("sub/keep", true),
            ("sub/notes", true),
            ("a.tmp", false),
            ("sub/b.tmp", false),
            ("target", false),
        ] {
            let path = bench.path(folder).join(path);
            assert_eq!(path.exists(), is_there, "{}", path.display());
        }
    }
    let got = bench.run(&["get", &server.url_of("sub/b.tmp")]);
    assert!(got.failed_with("no such file"), "{}", got.stderr);
    let wrong = bench.run(&["send", "served", &receiver.url, "--exclude", "[z-a]"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("'[z-a]' is no pattern"), "{}", wrong.stderr);
}

#[test]
fn attributes_and_owners_travel_on_request() {
    let bench = Bench::new();
    fs::create_dir(bench.path("inbox")).unwrap();
    fs::create_dir(bench.path("served/sub")).unwrap();
    fs::write(bench.path("served/sub/file"), content(1_000)).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    for path in ["served/sub", "served/sub/file"] {
        if rustix::fs::setxattr(bench.path(path), "user.comment", path.as_bytes(), flags).is_err() {
            eprintln!("skipped: this file system has no attributes");
            return;
        }
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root {
        std::os::unix::fs::chown(bench.path("served/sub/file"), Some(12_345), Some(54_321))
            .unwrap();
    }
    let comment = |path: &str| {
        let mut value = [0; 100];
        let read = rustix::fs::getxattr(bench.path(path), "user.comment", &mut value[..]);
        read.ok().map(|length| String::from_utf8(value[..length].to_vec()).unwrap())
    };
    let server = bench.serve(&["--archive"]);
    let plain = bench.serve(&[]);
    for (url, dest, flag, kept) in [
        (&server.url, "both", Some("--archive"), true),
        (&server.url, "sent", None, false),
        (&plain.url, "asked", Some("--archive"), false),
    ] {
        let got = bench.run(&[&["get", url, dest], flag.as_slice()].concat());
        assert_eq!(got.code, 0, "{}", got.stderr);
        for path in ["sub", "sub/file"] {
            let expected = kept.then(|| format!("served/{path}"));
            assert_eq!(comment(&format!("{dest}/{path}")), expected, "{dest}");
        }
        let owner = fs::metadata(bench.path(dest).join("sub/file")).unwrap().uid();
        assert_eq!(owner == 12_345, kept && is_root);
    }
    let receiver = bench.receive(&["--archive=all"]);
    let sent = bench.run(&["send", "served", &receiver.url, "--archive=all"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    assert_eq!(comment("inbox/served/sub/file").as_deref(), Some("served/sub/file"));
}

/// Lets the command run as a user who may not read everything, if it would not anyway.
fn without_privilege(bench: &Bench, command: &mut Command) {
    const NOBODY: u32 = 65_534;
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        let chown = Command::new("chown").args(["-R", "65534:65534"]).arg(bench.path("")).status();
        assert!(chown.unwrap().success());
        command.uid(NOBODY).gid(NOBODY);
    }
}

#[test]
fn what_the_sender_may_not_read_is_left_out_and_counted_at_both_ends() {
    let bench = Bench::new();
    for folder in ["inbox", "all", "all/locked", "all/open"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    for file in ["all/secret", "all/plain", "all/locked/within", "all/open/file"] {
        fs::write(bench.path(file), content(1_000)).unwrap();
    }
    let receiver = bench.receive(&["--json"]);
    let mut command = bench.command(&["send", "all", &receiver.url]);
    without_privilege(&bench, &mut command);
    for path in ["all/secret", "all/locked"] {
        fs::set_permissions(bench.path(path), fs::Permissions::from_mode(0o0)).unwrap();
    }
    let sent = command.output().unwrap();
    let said = String::from_utf8(sent.stderr).unwrap();
    assert_eq!(sent.status.code(), Some(1), "{said}");
    for part in ["left out: all/secret", "left out: all/locked", "2 files or folders that cannot"] {
        assert!(said.contains(part), "{said}");
    }
    let received = receiver.event("received");
    assert_eq!(
        (&received["left_out"]["unreadable"], &received["bytes"]),
        (&2.into(), &2000.into())
    );
    for file in ["inbox/all/plain", "inbox/all/open/file"] {
        assert_eq!(fs::read(bench.path(file)).unwrap(), content(1_000), "{file}");
    }
    for path in ["inbox/all/secret", "inbox/all/locked"] {
        assert!(fs::symlink_metadata(bench.path(path)).is_err(), "{path}");
    }
    // So that the folder can be removed.
    fs::set_permissions(bench.path("all/locked"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A file of 100 GB with a megabyte of data: at its start, its middle and its end.
fn huge(path: &Path) -> fs::File {
    const SIZE: u64 = 100_000_000_000;
    let mut options = fs::File::options();
    let file = options.read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(SIZE).unwrap();
    let bytes = content(1 << 20);
    for (offset, part) in [
        (0, &bytes[..1 << 19]),
        (SIZE / 2, &bytes[1 << 19..1_000_000]),
        (SIZE - 48_576, &bytes[1_000_000..]),
    ] {
        file.write_all_at(part, offset).unwrap();
    }
    file
}

#[test]
fn holes_of_a_file_stay_holes_whichever_way_it_goes() {
    let bench = Bench::new();
    let file = huge(&bench.path("served/file"));
    if file.metadata().unwrap().blocks() > 1 << 14 {
        eprintln!("skipped: this file system has no holes");
        return;
    }
    let server = bench.serve(&["--json"]);
    let got = bench.run(&["get", &server.url_of("file"), "got", "--json"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    let done = got.events().into_iter().find(|event| event["event"] == "done").unwrap();
    let sent = server.event("sent");
    assert!(done["bytes"].as_u64().unwrap() <= 1_100_000, "{done}");
    println!("{done} {sent}");
    let check = |path: &Path| {
        let got = fs::metadata(path).unwrap();
        assert_eq!(got.len(), 100_000_000_000);
        assert!(got.blocks() * 512 < 2_000_000, "{} blocks", got.blocks());
        let copy = fs::File::open(path).unwrap();
        let (mut ours, mut theirs) = (vec![0; 2 << 20], vec![0; 2 << 20]);
        for offset in [0, 10_000_000_000, 49_999_000_000, 99_998_000_000] {
            let read = file.read_at(&mut ours, offset).unwrap();
            assert_eq!(copy.read_at(&mut theirs, offset).unwrap(), read);
            assert!(ours == theirs, "other bytes from {offset} on");
        }
    };
    check(&bench.path("got"));
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&["--json", "--max-size", "10GB"]);
    let refused = bench.run(&["send", "served/file", &receiver.url]);
    assert!(refused.failed_with("--max-size"), "holes count, too: {}", refused.stderr);
    let receiver = bench.receive(&[]);
    let sent = bench.run(&["send", "served", &receiver.url]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    check(&bench.path("inbox/served/file"));
}

#[test]
fn a_fetch_of_a_file_with_holes_goes_on_after_it_was_killed() {
    let bench = Bench::new();
    let path = bench.path("served/file");
    let file = fs::File::create(&path).unwrap();
    file.set_len(200_000_000).unwrap();
    for part in 0..8 {
        file.write_all_at(&content(1_000_000 + part), 20_000_000 * part as u64).unwrap();
    }
    let server = bench.serve(&["--json"]);
    let relay = bench.relay("127.0.0.1", server.port, &["--rate", "40mbit", "--delay", "5ms"]);
    let url = server.url_with("127.0.0.1", relay.port, "file");
    let get = Running::start(bench.command(&["get", &url, "got", "--json"]));
    std::thread::sleep(std::time::Duration::from_millis(1000));
    drop(get);
    let got = bench.run(&["get", &url, "got", "--json"]);
    assert_eq!(got.code, 0, "{}", got.stderr);
    let done = got.events().into_iter().find(|event| event["event"] == "done").unwrap();
    assert!(done["resumed"].as_u64().unwrap() > 0, "{done}");
    assert!(fs::read(bench.path("got")).unwrap() == fs::read(&path).unwrap());
    let (ours, theirs) = (file.metadata().unwrap(), fs::metadata(bench.path("got")).unwrap());
    assert!(theirs.blocks() <= ours.blocks() + 64, "{} and {}", theirs.blocks(), ours.blocks());
}

#[test]
fn a_file_with_holes_goes_to_standard_output_with_zeros_for_them() {
    let bench = Bench::new();
    let path = bench.path("served/file");
    let file = fs::File::create(&path).unwrap();
    file.set_len(3_000_000).unwrap();
    file.write_all_at(b"middle", 1_500_000).unwrap();
    let server = bench.serve(&[]);
    let got = bench.command(&["get", &server.url_of("file"), "-"]).output().unwrap();
    assert_eq!(got.status.code(), Some(0), "{}", String::from_utf8_lossy(&got.stderr));
    assert!(got.stdout == fs::read(&path).unwrap());
}
