use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use super::error::FluteError;
use super::location;
use crate::file::append_at;
use crate::left_out::LeftOut;
use crate::manifest::EntryKind;
use crate::name;
use crate::source::{Source, SourceOptions};

/// A file that is sent.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) location: String,
    pub(super) length: u64,
    pub(super) md5: [u8; 16],
}

/// Bytes that are hashed at once.
const PIECE: u64 = 1 << 20;

/// The files at these paths and below; how many links and other entries are left out.
pub(super) fn collect(
    paths: &[PathBuf],
    options: &SourceOptions,
) -> Result<(Vec<SourceFile>, u64), FluteError> {
    let (mut files, mut left_out) = (Vec::new(), 0);
    let mut names = BTreeSet::new();
    for root in paths {
        let source = Source::open_with(root, options)?;
        let manifest = source.manifest();
        let LeftOut { special, unreadable, excluded, .. } = source.left_out();
        left_out += special + unreadable + excluded;
        for entry in manifest.entries() {
            let EntryKind::File { size, .. } = entry.kind else {
                left_out += u64::from(matches!(entry.kind, EntryKind::Symlink { .. }));
                continue;
            };
            let (path, own) = match &*entry.path {
                "" => (root.clone(), manifest.name().to_owned()),
                below => (root.join(name::to_path(below)), format!("{}/{below}", manifest.name())),
            };
            if !names.insert(own.clone()) {
                return Err(FluteError::Twice(own));
            }
            let location = location::of_path(&own);
            let md5 = hash(&path, size)?;
            files.push(SourceFile { path, location, length: size, md5 });
        }
    }
    if files.is_empty() { Err(FluteError::Nothing) } else { Ok((files, left_out)) }
}

/// Reads a part of a file.
pub(super) fn read(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>, FluteError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| append_at(&file, offset, length, &mut bytes));
    read.map_err(|source| FluteError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}

fn hash(path: &Path, length: u64) -> Result<[u8; 16], FluteError> {
    let failed = |source| FluteError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let (mut hash, mut bytes, mut offset) = (Md5::new(), Vec::new(), 0);
    while offset < length {
        let piece = PIECE.min(length - offset);
        bytes.clear();
        append_at(&file, offset, piece as usize, &mut bytes).map_err(failed)?;
        hash.update(&bytes);
        offset += piece;
    }
    Ok(hash.finalize().into())
}
