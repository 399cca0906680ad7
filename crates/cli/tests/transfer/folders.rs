//! Folders with everything that a file system can hold.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bench, content};

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
