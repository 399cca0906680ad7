//! The tables of what standards demand name tests that exist.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of tests in a file.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let attributes = text.match_indices("test").filter_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at..]);
        (before.ends_with("#[") || before.ends_with("#[tokio::")).then_some(after)
    });
    let heads = attributes.filter_map(|after| after.split_once("fn "));
    heads.filter_map(|(_, rest)| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

#[test]
fn every_test_that_a_table_of_demands_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut names = HashSet::new();
    for file in files {
        let text = fs::read_to_string(file).expect("text");
        names.extend(tests(&text).map(str::to_owned));
    }
    let table = fs::read_to_string(root.join("docs/dccp-conformance.md")).expect("the table");
    let rows = table.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 150, "{}", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !names.contains(**name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}
