//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/control.rs"]
mod control;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_control_replays() {
    replay("control", control::run);
}
