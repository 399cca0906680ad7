//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/notation.rs"]
mod notation;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_notation_replays() {
    replay("notation", notation::run);
}
