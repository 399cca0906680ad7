//! The corpus of the fuzz target, replayed.

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/trace.rs"]
mod trace;

#[test]
fn the_corpus_of_trace_replays() {
    replay::replay("trace", trace::run);
}
