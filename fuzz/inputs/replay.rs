//! Runs a target's corpus in a test. Included by the tests of the crates that have targets.

use std::path::Path;

/// Runs every file of a target's corpus.
pub(crate) fn replay(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        // Shown only when the run fails, and then it says which file did it.
        println!("{}", file.display());
        run(&std::fs::read(&file).expect("a readable file"));
    }
}
