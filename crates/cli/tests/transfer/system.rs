//! A system that fails one of a hundred of what it is asked for: strace injects the errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Bench, Run, Running, content, hash};

/// System calls, the error that they get, and when: the first, and how many later again.
const FAULTS: [(&str, &str, &str); 12] = [
    ("pwrite64,pwritev,pwritev2", "EIO", "3+100"),
    ("pwrite64,pwritev,pwritev2", "ENOSPC", "17+100"),
    ("pread64,preadv", "EIO", "12+100"),
    ("openat,openat2", "EMFILE", "40+100"),
    ("fsync,fdatasync,sync_file_range", "EIO", "1+1"),
    ("fallocate,ftruncate", "ENOSPC", "1+1"),
    ("renameat,renameat2,rename,link,linkat", "EACCES", "1+1"),
    ("mkdirat,mkdir", "EROFS", "1+1"),
    ("unlink,unlinkat", "EIO", "1+100"),
    ("sendmsg,sendmmsg", "ENOBUFS", "2+100"),
    ("recvmsg,recvmmsg", "ECONNREFUSED", "2+100"),
    ("epoll_wait,epoll_pwait", "EINTR", "2+100"),
];

/// Runs the command while some of these calls fail, of those on one file if one is given; also, how
/// many did. Calls are counted by thread.
fn under(
    bench: &Bench,
    fault: (&str, &str, &str),
    only: Option<&Path>,
    arguments: &[&str],
) -> (Run, usize) {
    let (calls, error, when) = fault;
    let command = bench.command(arguments);
    let log = bench.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg("-e").arg(format!("trace={calls}"));
    strace.arg("-e").arg(format!("inject={calls}:error={error}:when={when}"));
    if let Some(file) = only {
        strace.arg("-P").arg(file);
    }
    strace.arg(command.get_program()).args(command.get_args()).current_dir(bench.path(""));
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.stdin(Stdio::null()).output().unwrap();
    let run = Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let injected = fs::read_to_string(&log).unwrap().matches("(INJECTED)").count();
    (run, injected)
}

/// Whether strace is there, and may trace.
fn is_possible() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let possible = tried.is_ok_and(|output| output.status.success());
    if !possible {
        eprintln!("skipped: no strace here (Debian: strace), or it may not trace");
    }
    possible
}

/// The content beneath a path, by name.
fn tree(path: &Path) -> BTreeMap<String, String> {
    if path.is_file() {
        return BTreeMap::from([(String::new(), hash(path))]);
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let one = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), hash(&entry.path()))
    };
    entries.map(one).collect()
}

/// What a command that may fail may do: end well, or say in one line what was wrong; never half.
fn judge(run: &Run, shown: &str, source: &Path, arrived: &Path) {
    match run.code {
        0 => assert_eq!(tree(arrived), tree(source), "{shown}"),
        1 => {
            assert!(run.stderr.contains("fontis: "), "{shown}: {}", run.stderr);
            assert!(!run.stderr.contains("panicked"), "{shown}: {}", run.stderr);
            if arrived.exists() {
                assert_eq!(tree(arrived), tree(source), "{shown}: what has its name is complete");
            }
        }
        code => panic!("{shown}: code {code}: {}", run.stderr),
    }
}

#[test]
fn a_system_that_fails_now_and_then_costs_an_error_and_nothing_else() {
    if !is_possible() {
        return;
    }
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(8_000_000)).unwrap();
    fs::create_dir(bench.path("served/folder")).unwrap();
    for number in 0..60_usize {
        fs::write(bench.path(&format!("served/folder/{number}")), content(number * 700)).unwrap();
    }
    let server = bench.serve(&[]);
    let (mut injected, mut failed) = (0, 0);
    for fault in FAULTS {
        for name in ["file", "folder"] {
            let shown = format!("{name}, {fault:?}");
            let (source, arrived) = (bench.path(&format!("served/{name}")), bench.path("there"));
            let url = server.url_of(name);
            let (run, count) =
                under(&bench, fault, None, &["get", &url, "there", "--retries", "0"]);
            judge(&run, &shown, &source, &arrived);
            (injected, failed) = (injected + count, failed + usize::from(run.code == 1));
            if !arrived.exists() {
                // When the system is well again the same command ends what was begun.
                let again = bench.run(&["get", &url, "there"]);
                assert_eq!(again.code, 0, "{shown}: {}", again.stderr);
                assert_eq!(tree(&arrived), tree(&source), "{shown}");
            }
            if arrived.is_dir() {
                fs::remove_dir_all(&arrived).unwrap();
            } else {
                fs::remove_file(&arrived).unwrap();
            }
            let left = bench.leftovers();
            assert!(left.iter().all(|name| name == "trace"), "{shown}: {left:?}");
        }
    }
    println!("{injected} calls failed, and {failed} transfers of {}", 2 * FAULTS.len());
    assert!(injected > 15 && failed > 5, "{injected} calls failed, and {failed} transfers");
}

#[test]
fn what_cannot_be_read_is_not_sent_and_said() {
    if !is_possible() {
        return;
    }
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(8_000_000)).unwrap();
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&[]);
    // How many threads share the reading is chance: the first call of each.
    let fault = ("pread64,preadv", "EIO", "1+1");
    let (file, send) = (bench.path("served/file"), ["send", "served/file", &receiver.url]);
    let (run, count) =
        under(&bench, fault, Some(&file), &[&send[..], &["--retries", "0"]].concat());
    assert!(count > 0);
    judge(&run, "send", &bench.path("served/file"), &bench.path("inbox/file"));
    let again = bench.run(&["send", "served/file", &receiver.url]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(hash(&bench.path("inbox/file")), hash(&bench.path("served/file")));
}

#[test]
fn a_read_only_file_system_is_said_in_a_line() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(1000)).unwrap();
    fs::create_dir(bench.path("name")).unwrap();
    let server = bench.serve(&[]);
    let url = server.url_of("file");
    let receive = ["receive", "name", "--listen", "127.0.0.1:0"];
    for (words, hint) in [
        (&["get", &url, "name/"][..], "read-only file system: choose another destination"),
        (&receive, "cannot write into name"),
    ] {
        is_said_in_a_read_only_folder(&bench, words, hint);
    }
}

/// Runs the command where the folder `name` cannot be written.
fn is_said_in_a_read_only_folder(bench: &Bench, words: &[&str], hint: &str) {
    let get = bench.command(words);
    let script = "mount -t tmpfs -o ro none name || exit 77; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).current_dir(bench.path(""));
    command.arg(get.get_program()).args(get.get_args());
    command.envs(get.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || stderr.starts_with("unshare: ") {
        eprintln!("skipped: no mount namespace here: {stderr}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(hint) && stderr.lines().count() == 1, "{stderr}");
}

/// The library that lies about the time of day.
fn faketime() -> Option<std::path::PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().map(|entry| entry.unwrap().path());
    let paths = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    let found = paths.into_iter().find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: no libfaketime here (Debian: faketime)");
    }
    found
}

#[test]
fn a_clock_that_jumps_by_an_hour_changes_nothing() {
    let Some(library) = faketime() else { return };
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(3_000_000)).unwrap();
    let offset = bench.path("trace");
    let set = |jump: &str| fs::write(&offset, jump).unwrap();
    set("+0");
    let wrong_about_time = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("LD_PRELOAD", &library).env("FAKETIME_TIMESTAMP_FILE", &offset);
        // As when somebody sets a real clock: only the time of day jumps.
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    };
    let serve = ["serve", "served", "--listen", "127.0.0.1:0", "--json"];
    let mut server = Running::start(wrong_about_time(&serve));
    let urls = server.event("listening");
    let url = urls["urls"][0].as_str().unwrap().replace("/?", "/file?");
    let get = ["get", &url, "there", "--limit", "8mbit", "--json"];
    let mut get = Running::start(wrong_about_time(&get));
    for jump in ["+3600", "-3600", "+0"] {
        get.event("progress");
        set(jump);
        std::thread::sleep(std::time::Duration::from_millis(600));
    }
    get.event("done");
    assert_eq!(hash(&bench.path("there")), hash(&bench.path("served/file")));
}
