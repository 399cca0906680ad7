//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/cast.rs"]
mod cast;
#[path = "../../../fuzz/inputs/datagram.rs"]
mod datagram;
#[path = "../../../fuzz/inputs/journal.rs"]
mod journal;
#[path = "../../../fuzz/inputs/message.rs"]
mod message;
#[path = "../../../fuzz/inputs/records.rs"]
mod records;
#[path = "../../../fuzz/inputs/syn.rs"]
mod syn;
#[path = "../../../fuzz/inputs/token.rs"]
mod token;
#[path = "../../../fuzz/inputs/tree.rs"]
mod tree;
#[path = "../../../fuzz/inputs/url.rs"]
mod url;

#[path = "../../../fuzz/inputs/endpoint.rs"]
mod endpoint;
#[path = "../../../fuzz/inputs/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/inputs/name.rs"]
mod name;
#[path = "../../../fuzz/inputs/sink.rs"]
mod sink;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_datagram_replays() {
    replay("datagram", datagram::run);
}

#[test]
fn the_corpus_of_journal_replays() {
    replay("journal", journal::run);
}

#[test]
fn the_corpus_of_message_replays() {
    replay("message", message::run);
}

#[test]
fn the_corpus_of_syn_replays() {
    replay("syn", syn::run);
}

#[test]
fn the_corpus_of_token_replays() {
    replay("token", token::run);
}

#[test]
fn the_corpus_of_tree_replays() {
    replay("tree", tree::run);
}

#[test]
fn the_corpus_of_url_replays() {
    replay("url", url::run);
}

#[test]
fn the_corpus_of_endpoint_replays() {
    replay("endpoint", endpoint::run);
}

#[test]
fn the_corpus_of_manifest_replays() {
    replay("manifest", manifest::run);
}

#[test]
fn the_corpus_of_name_replays() {
    replay("name", name::run);
}

#[test]
fn the_corpus_of_sink_replays() {
    replay("sink", sink::run);
}

#[test]
fn the_corpus_of_cast_replays() {
    replay("cast", cast::run);
}

#[test]
fn the_corpus_of_records_replays() {
    replay("records", records::run);
}
