//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/scenario.rs"]
mod scenario;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

#[test]
fn the_corpus_of_scenario_replays() {
    replay::replay("scenario", scenario::run);
}
