//! Streams that begin anew.

use std::collections::BTreeMap;

use fontis_base::{Duration, Stream};
use fontis_proto::sctp::{SctpConfig, SctpData, SctpEvent, SctpSend, SctpSendError};

use super::pair::{Pair, Way, plain};

/// Runs until both are connected.
fn connected(seed: u64, configs: [SctpConfig; 2], way: Way) -> Pair {
    let mut pair = Pair::of(seed, configs, vec![way]);
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(Duration::from_secs(60), both), "seed {seed}");
    pair
}

/// Over paths that lose, overtake and double, both ends send messages on random streams and reset
/// some of them now and then. Every message comes, those of a stream in their order, and each end
/// is told of each reset once.
#[test]
fn streams_are_reset_at_any_time_and_no_message_is_lost() {
    for seed in 0..30 {
        let mut random = Stream::new(seed, "resets");
        let way = Way {
            loss: random.unit() * 0.1,
            reorder: random.unit() * 0.1,
            double: random.unit() * 0.05,
            ..Way::of(5 + random.below(100), 1.0 + 20.0 * random.unit())
        };
        let interleaving = random.below(2) == 0;
        let config = SctpConfig { interleaving, ..plain() };
        let mut pair = connected(seed, [config.clone(), config], way);
        let mut sent: [BTreeMap<u16, Vec<usize>>; 2] = Default::default();
        let mut resets = [0; 2];
        for _ in 0..60 {
            let (side, stream) = (random.below(2) as usize, random.below(5) as u16);
            let now = pair.now;
            let is_reset = random.below(4) == 0;
            let end = pair.end(side);
            if is_reset {
                end.reset(stream).unwrap();
            }
            for _ in 0..random.below(3) {
                let len = 1 + random.below(4000) as usize;
                let send = SctpSend { stream, ..SctpSend::default() };
                match pair.end(side).send(now, send, SctpData::Bytes(vec![0; len].into())) {
                    Ok(()) => sent[side].entry(stream).or_default().push(len),
                    Err(error) => assert_eq!(error, SctpSendError::Resetting { stream }),
                }
            }
            let span = Duration::from_millis(random.below(300));
            pair.run(span, |_| false);
        }
        let all_came = |pair: &Pair| {
            (0..2).all(|side| {
                let came = pair.got[1 - side].len();
                let done = pair.ends[side].as_ref().is_some_and(|end| end.buffered() == 0);
                done && came == sent[side].values().map(Vec::len).sum::<usize>()
            })
        };
        assert!(pair.run(Duration::from_secs(120), all_came), "seed {seed}");
        // The last requests are answered.
        pair.run(Duration::from_secs(120), |_| false);
        for side in 0..2 {
            let mut came: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
            for message in &pair.got[1 - side] {
                came.entry(message.stream).or_default().push(message.data.len());
            }
            assert_eq!(came, sent[side], "seed {seed}");
            let count = |side: usize, is: fn(&SctpEvent) -> bool| {
                pair.events[side].iter().filter(|event| is(event)).count()
            };
            resets[side] = count(side, |event| matches!(event, SctpEvent::Reset(_)));
            let told = count(1 - side, |event| matches!(event, SctpEvent::PeerReset(_)));
            assert_eq!(resets[side], told, "seed {seed}");
        }
        assert!(resets[0] + resets[1] > 0, "seed {seed}");
    }
}

#[test]
fn a_stream_that_is_reset_takes_messages_when_that_is_done() {
    let mut pair = connected(1, [plain(), plain()], Way::of(50, 10.0));
    let (now, send) = (pair.now, SctpSend { stream: 3, ..SctpSend::default() });
    pair.end(0).send(now, send, SctpData::Bytes(vec![0; 5000].into())).unwrap();
    pair.end(0).reset(3).unwrap();
    let refused = pair.end(0).send(now, send, SctpData::Bytes(vec![0; 5].into()));
    assert_eq!(refused, Err(SctpSendError::Resetting { stream: 3 }));
    let is_done = |pair: &Pair| pair.events[0].contains(&SctpEvent::Reset(3));
    assert!(pair.run(Duration::from_secs(5), is_done));
    // The message and its acknowledgement take a round trip, the request and its answer another.
    assert!(pair.now.since(now) < Duration::from_millis(450), "{:?}", pair.now.since(now));
    assert!(pair.events[1].contains(&SctpEvent::PeerReset(3)));
    let now = pair.now;
    pair.end(0).send(now, send, SctpData::Bytes(vec![0; 5].into())).unwrap();
    assert!(pair.run(Duration::from_secs(5), |pair| pair.got[1].len() == 2));
}

#[test]
fn a_peer_that_cannot_reset_is_not_asked() {
    let deaf = SctpConfig { resets: false, ..plain() };
    let mut pair = connected(1, [plain(), deaf], Way::of(5, 10.0));
    assert_eq!(pair.end(0).reset(0), Err(SctpSendError::NoResets));
    let streams = plain().streams;
    let absent = SctpSendError::NoStream { stream: streams, streams };
    assert_eq!(pair.end(0).reset(streams), Err(absent));
}
