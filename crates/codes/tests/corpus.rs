//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/block_decoder.rs"]
mod block_decoder;

#[path = "../../../fuzz/inputs/raptorq_object.rs"]
mod raptorq_object;

#[path = "../../../fuzz/inputs/encoding_plan.rs"]
mod encoding_plan;

#[path = "../../../fuzz/inputs/window_decoder.rs"]
mod window_decoder;

#[path = "../../../fuzz/inputs/large_decoder.rs"]
mod large_decoder;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

use replay::replay;

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

#[test]
fn the_corpus_of_large_decoder_replays() {
    replay("large_decoder", large_decoder::run);
}
