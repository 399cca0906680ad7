//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

use std::path::Path;

#[path = "../../../fuzz/inputs/block_decoder.rs"]
mod block_decoder;

#[path = "../../../fuzz/inputs/raptorq_object.rs"]
mod raptorq_object;

#[path = "../../../fuzz/inputs/encoding_plan.rs"]
mod encoding_plan;

#[path = "../../../fuzz/inputs/window_decoder.rs"]
mod window_decoder;

/// Runs every file of a target's corpus.
fn replay(target: &str, run: impl Fn(&[u8])) {
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

#[test]
fn the_corpus_of_block_decoder_replays() {
    replay("block_decoder", block_decoder::run);
}

#[test]
fn the_corpus_of_raptorq_object_replays() {
    replay("raptorq_object", raptorq_object::run);
}

#[test]
fn the_corpus_of_encoding_plan_replays() {
    replay("encoding_plan", encoding_plan::run);
}

#[test]
fn the_corpus_of_window_decoder_replays() {
    replay("window_decoder", window_decoder::run);
}
