//! The arrows between the rooms, as ARCHITECTURE.md draws them: who may depend on whom, and who may
//! touch the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Every room, and the rooms that it may depend on. Development dependencies are free: they ship
/// nothing.
const ARROWS: [(&str, &[&str]); 13] = [
    ("fontis-base", &[]),
    ("fontis-codes", &["fontis-base"]),
    ("fontis-net", &["fontis-base"]),
    ("fontis-proto", &["fontis-base", "fontis-codes"]),
    ("fontis-trace", &["fontis-base", "fontis-codes", "fontis-proto"]),
    ("fontis-sim", &["fontis-base", "fontis-codes", "fontis-net", "fontis-proto", "fontis-trace"]),
    ("fontis-viewer-wasm", &["fontis-trace", "fontis-sim"]),
    ("fontis", &["fontis-base", "fontis-codes", "fontis-proto"]),
    ("fontis-call", &["fontis-base", "fontis-codes", "fontis-proto", "fontis"]),
    ("fontis-rtc", &["fontis-base", "fontis-proto", "fontis"]),
    (
        "fontis-lab",
        &[
            "fontis-base",
            "fontis-codes",
            "fontis-net",
            "fontis-proto",
            "fontis-trace",
            "fontis-sim",
            "fontis",
            "fontis-call",
        ],
    ),
    (
        "fontis-cli",
        &[
            "fontis-base",
            "fontis-codes",
            "fontis-net",
            "fontis-proto",
            "fontis-trace",
            "fontis-sim",
            "fontis",
            "fontis-call",
            "fontis-lab",
        ],
    ),
    (
        "fontis-py",
        &[
            "fontis-base",
            "fontis-codes",
            "fontis-net",
            "fontis-proto",
            "fontis-trace",
            "fontis-sim",
            "fontis",
            "fontis-call",
            "fontis-lab",
            "fontis-cli",
        ],
    ),
];

/// Rooms that own no socket, no clock, no thread and no source of randomness.
const PURE: [&str; 6] =
    ["fontis-base", "fontis-codes", "fontis-net", "fontis-proto", "fontis-trace", "fontis-sim"];

/// Packages that touch sockets, threads, files, clocks, the system's randomness or an async
/// runtime. `libc` is not among them: `cpufeatures` asks it what the processor can do, and nothing
/// else.
const MACHINE: [&str; 40] = [
    "async-executor",
    "async-fs",
    "async-global-executor",
    "async-io",
    "async-net",
    "async-process",
    "async-std",
    "blocking",
    "chrono",
    "compio",
    "crossbeam-channel",
    "ctrlc",
    "dirs",
    "fs-err",
    "getrandom",
    "glommio",
    "instant",
    "io-uring",
    "memmap2",
    "mio",
    "monoio",
    "nix",
    "notify",
    "num_cpus",
    "parking_lot",
    "polling",
    "quinn-udp",
    "rand",
    "rayon",
    "rustix",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "threadpool",
    "time",
    "tokio",
    "walkdir",
    "web-time",
    "windows-sys",
];

/// What the `clippy.toml` of a pure room forbids at least.
const BANS: [&str; 10] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::net::UdpSocket",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::fs::File",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::thread::spawn",
    "std::thread::sleep",
];

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The workspace as cargo resolves it for this machine: all of it is there once these tests have
/// been built, so nothing need be fetched.
fn metadata() -> Metadata {
    let version = Command::new(cargo()).arg("-vV").output().expect("cargo runs");
    let version = String::from_utf8(version.stdout).expect("cargo speaks UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host triple");
    MetadataCommand::new()
        .cargo_path(cargo())
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .other_options(
            ["--locked", "--offline", "--filter-platform", host].map(str::to_owned).to_vec(),
        )
        .exec()
        .expect("cargo metadata")
}

fn ships(kind: DependencyKind) -> bool {
    matches!(kind, DependencyKind::Normal | DependencyKind::Build)
}

fn room<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    metadata
        .workspace_packages()
        .into_iter()
        .find(|package| package.name.as_str() == name)
        .unwrap_or_else(|| panic!("there is no room called {name}"))
}

#[test]
fn peers_that_codes_are_compared_with_are_a_workspace_of_their_own() {
    for package in metadata().workspace_packages() {
        for peer in ["raptorq", "raptor-code"] {
            let uses = package.dependencies.iter().any(|dependency| dependency.name == peer);
            assert!(!uses, "{} depends on {peer}, which belongs in peers", package.name);
        }
    }
}

#[test]
fn rooms_depend_on_each_other_only_along_the_arrows() {
    let metadata = metadata();
    let allowed: BTreeMap<_, _> = ARROWS.into_iter().collect();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let Some(allowed) = allowed.get(name) else {
            panic!("{name} has no place in ARROWS: give it one, here and in ARCHITECTURE.md");
        };
        for dependency in package.dependencies.iter().filter(|dep| ships(dep.kind)) {
            // A room is known by its path, whatever name a manifest gives it.
            let is_room = dependency.path.is_some();
            assert!(
                !is_room || allowed.contains(&dependency.name.as_str()),
                "{name} depends on {}, against the arrows",
                dependency.name
            );
        }
    }
}

#[test]
fn every_room_is_where_the_arrows_say() {
    let metadata = metadata();
    for (name, allowed) in ARROWS {
        room(&metadata, name);
        // The table is a partial order: a room stands below its own dependencies.
        let place = |name: &str| ARROWS.iter().position(|(room, _)| *room == name);
        assert!(allowed.iter().all(|below| place(below) < place(name)), "{name}");
    }
}

#[test]
fn nothing_below_a_pure_room_touches_the_machine() {
    let metadata = metadata();
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    for name in PURE {
        let mut from: BTreeMap<&PackageId, &PackageId> = BTreeMap::new();
        let mut seen = BTreeSet::from([&room(&metadata, name).id]);
        let mut todo: Vec<_> = seen.iter().copied().collect();
        while let Some(id) = todo.pop() {
            for dep in &nodes[id].deps {
                let normal = dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
                if normal && seen.insert(&dep.pkg) {
                    from.insert(&dep.pkg, id);
                    todo.push(&dep.pkg);
                }
            }
        }
        assert!(
            seen.len() > 1 || name == "fontis-base",
            "{name} has no dependencies: the walk is broken"
        );
        for id in &seen {
            let package = metadata[id].name.as_str();
            assert!(
                !MACHINE.contains(&package),
                "{name} is pure, but {package} is below it, by way of {:?}",
                from.get(id).map(|id| metadata[id].name.as_str())
            );
        }
    }
}

#[test]
fn every_pure_room_bans_clocks_sockets_files_threads_and_hash_order() {
    let metadata = metadata();
    for name in PURE {
        let path = room(&metadata, name).manifest_path.with_file_name("clippy.toml");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{name} has no clippy.toml: {error}"));
        for ban in BANS {
            let banned = text
                .lines()
                .any(|line| line.trim_start().starts_with(&format!("{{ path = \"{ban}\"")));
            assert!(banned, "the clippy.toml of {name} does not ban {ban}");
        }
    }
}
