//! The corpus of the fuzz target, replayed.

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/sip.rs"]
mod sip;

#[test]
fn the_corpus_of_sip_replays() {
    replay::replay("sip", sip::run);
}

/// Each input of the corpus with bytes that are changed, left out, or doubled.
#[test]
fn what_is_like_the_corpus_breaks_nothing() {
    for seed in 0..200 {
        replay::replay("sip", |input| sip::run(&altered(seed, input)));
    }
}

fn altered(seed: u64, input: &[u8]) -> Vec<u8> {
    let mut stream = fontis_base::Stream::new(seed, "sip");
    let mut bytes = input.to_vec();
    for _ in 0..=stream.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = stream.below(bytes.len() as u64) as usize;
        match stream.below(3) {
            0 => bytes[at] = stream.below(256) as u8,
            1 => drop(bytes.drain(at..(at + 8).min(bytes.len()))),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}
