//! The corpora of the fuzz targets, replayed: what once was worth keeping stays right.

#[path = "../../../fuzz/inputs/channels.rs"]
mod channels;
#[path = "../../../fuzz/inputs/connection.rs"]
mod connection;
#[path = "../../../fuzz/inputs/dccp.rs"]
mod dccp;
#[path = "../../../fuzz/inputs/flute.rs"]
mod flute;
#[path = "../../../fuzz/inputs/frames.rs"]
mod frames;
#[path = "../../../fuzz/inputs/group.rs"]
mod group;
#[path = "../../../fuzz/inputs/hello.rs"]
mod hello;
#[path = "../../../fuzz/inputs/live.rs"]
mod live;
#[path = "../../../fuzz/inputs/peer.rs"]
mod peer;
#[path = "../../../fuzz/inputs/published.rs"]
mod published;
#[path = "../../../fuzz/inputs/sctp.rs"]
mod sctp;
#[path = "../../../fuzz/inputs/side.rs"]
mod side;
#[path = "../../../fuzz/inputs/swarm.rs"]
mod swarm;
#[path = "../../../fuzz/inputs/tcp.rs"]
mod tcp;

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_channels_replays() {
    replay("channels", channels::run);
}

#[test]
fn the_corpus_of_dccp_replays() {
    replay("dccp", dccp::run);
}

#[test]
fn the_corpus_of_flute_replays() {
    replay("flute", flute::run);
}

#[test]
fn the_corpus_of_frames_replays() {
    replay("frames", frames::run);
}

#[test]
fn the_corpus_of_hello_replays() {
    replay("hello", hello::run);
}

#[test]
fn the_corpus_of_connection_replays() {
    replay("connection", connection::run);
}

#[test]
fn the_corpus_of_peer_replays() {
    replay("peer", peer::run);
}

#[test]
fn the_corpus_of_published_replays() {
    replay("published", published::run);
}

#[test]
fn the_corpus_of_sctp_replays() {
    replay("sctp", sctp::run);
}

#[test]
fn the_corpus_of_tcp_replays() {
    replay("tcp", tcp::run);
}

#[test]
fn the_corpus_of_group_replays() {
    replay("group", group::run);
}

#[test]
fn the_corpus_of_live_replays() {
    replay("live", live::run);
}

#[test]
fn the_corpus_of_swarm_replays() {
    replay("swarm", swarm::run);
}
