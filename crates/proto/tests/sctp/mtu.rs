//! The largest packets that paths carry.

use fontis_base::{Duration, Stream};
use fontis_proto::sctp::{CmtConfig, Multipath, SctpConfig, SctpData, SctpSend, SctpTransmit};

use super::pair::{Pair, Way, plain};

fn searching() -> SctpConfig {
    SctpConfig { mtu: 1280, most_mtu: 9000, max_burst: None, ..plain() }
}

/// A client that sends as much as it may, in messages of 30,000 bytes.
fn bulk(seed: u64, config: &SctpConfig, ways: Vec<Way>) -> Pair {
    let mut pair = Pair::new(seed, config, ways);
    let message = (SctpSend::default(), SctpData::Counted(30_000));
    pair.queues[0] = std::iter::repeat_n(message, 100_000).collect();
    pair
}

fn sizes(pair: &mut Pair) -> Vec<u32> {
    pair.end(0).paths().map(|path| path.mtu).collect()
}

#[test]
fn each_path_is_searched_for_the_largest_packet_and_chunks_fit_all() {
    let seed = 8;
    let mut stream = Stream::new(seed, "paths");
    for _ in 0..20 {
        let mut way = || Way {
            mtu: 1280 + stream.below(9000) as u32,
            loss: 0.01 * stream.below(3) as f64,
            buffer: 100_000,
            ..Way::of(10 + stream.below(40), 20.0)
        };
        let ways = vec![way(), way()];
        let found = |way: &Way| [9000, 1500, 1420].into_iter().find(|size| *size <= way.mtu);
        let most: Vec<u32> = ways.iter().map(|way| found(way).unwrap_or(1280)).collect();
        let cmt = Multipath::Concurrent(CmtConfig::default());
        let config = SctpConfig { multipath: cmt, ..searching() };
        let before = Pair::new(seed, &config, ways.clone()).end(0).piece();
        let mut pair = bulk(seed, &config, ways.clone());
        pair.run(Duration::from_secs(15), |_| false);
        let sizes = sizes(&mut pair);
        let named = format!("seed {seed}: {sizes:?}, {ways:?}");
        // A probe may be lost by chance three times.
        let is_right = |(size, most): (&u32, &u32)| size <= most && (*size > 1280 || *most == 1280);
        assert!(sizes.iter().zip(&most).all(is_right), "{named}");
        let least = sizes.iter().min().copied().unwrap_or(1280);
        let piece = pair.end(0).piece();
        // I-DATA has four bytes more than DATA.
        assert_eq!(piece, before - 4 + (least as usize - 1280), "{named}");
        let got = pair.end(1).stats();
        assert!(got.bytes_received > 3_000_000, "{named}: {got:?}");
    }
}

#[test]
fn a_path_that_carries_less_than_before_is_found_out_and_nothing_is_lost() {
    let seed = 9;
    let mut stream = Stream::new(seed, "paths");
    for _ in 0..20 {
        let mut way = Way { mtu: 9000, buffer: 100_000, ..Way::of(10 + stream.below(40), 20.0) };
        let mut pair = bulk(seed, &searching(), vec![way]);
        pair.run(Duration::from_secs(10), |_| false);
        assert_eq!(sizes(&mut pair), [9000], "{way:?}");
        way.mtu = 1280 + stream.below(300) as u32;
        pair.ways[0] = way;
        let before = pair.end(1).stats().bytes_received;
        pair.run(Duration::from_secs(30), |_| false);
        let size = sizes(&mut pair)[0];
        let named = format!("seed {seed}: {size}, {way:?}");
        assert!(size <= way.mtu && (size > 1280) == (way.mtu >= 1420), "{named}");
        let more = pair.end(1).stats().bytes_received - before;
        assert!(more > 20_000_000, "{named}: {more} bytes in 30 s");
        // All that was on its way came.
        pair.queues[0].clear();
        let is_done = |pair: &Pair| pair.ends[0].as_ref().is_some_and(|end| end.buffered() == 0);
        assert!(pair.run(Duration::from_secs(30), is_done), "{named}");
    }
}

#[test]
fn new_messages_fit_the_narrowest_path_in_use_and_older_chunks_come_all_the_same() {
    let seed = 10;
    let mut stream = Stream::new(seed, "paths");
    for _ in 0..10 {
        let mut way = || Way { buffer: 100_000, ..Way::of(10 + stream.below(40), 20.0) };
        let mut ways = vec![way(), way()];
        let cmt = Multipath::Concurrent(CmtConfig::default());
        let config = SctpConfig { multipath: cmt, ..searching() };
        let mut pair = bulk(seed, &config, ways.clone());
        pair.run(Duration::from_secs(10), |_| false);
        let named = format!("seed {seed}: {ways:?}");
        assert_eq!(sizes(&mut pair), [9000; 2], "{named}");
        let large = pair.end(0).piece();
        ways[1].mtu = 1280 + stream.below(100) as u32;
        pair.ways = ways.clone();
        pair.keeps = true;
        // One path alone carries large packets.
        let is_found = |pair: &Pair| pair.ends[0].as_ref().unwrap().piece() < large;
        assert!(pair.run(Duration::from_secs(20), is_found), "{named}: {:?}", sizes(&mut pair));
        let small = pair.end(0).piece();
        assert_eq!(large - small, 9000 - 1280, "{named}");
        pair.run(Duration::from_secs(10), |_| false);
        // A DATA chunk is not cut again (RFC 9260 section 6.9): what was too large left whole, on
        // the path that carries it.
        let is_whole = |sent: &SctpTransmit| sent.is_repeat && sent.packet.size() > 8000;
        let mut sent = pair.sent.iter();
        assert!(sent.any(|(_, _, sent)| sent.path == 0 && is_whole(sent)), "{named}");
        // Without that path chunks are large again, once the other has been found able.
        pair.ways[1].is_down = true;
        let is_large = |pair: &Pair| pair.ends[0].as_ref().unwrap().piece() == large;
        assert!(pair.run(Duration::from_secs(200), is_large), "{named}: {:?}", sizes(&mut pair));
        pair.queues[0].clear();
        let is_done = |pair: &Pair| pair.ends[0].as_ref().is_some_and(|end| end.buffered() == 0);
        assert!(pair.run(Duration::from_secs(100), is_done), "{named}");
    }
}

#[test]
fn an_outage_is_no_smaller_path_for_long() {
    let mut pair = bulk(3, &searching(), vec![Way { buffer: 100_000, ..Way::of(20, 20.0) }]);
    pair.run(Duration::from_secs(10), |_| false);
    pair.ways[0].is_down = true;
    pair.run(Duration::from_secs(8), |_| false);
    pair.ways[0].is_down = false;
    pair.run(Duration::from_secs(30), |_| false);
    assert_eq!(sizes(&mut pair), [9000]);
}

#[test]
fn nothing_is_searched_without_the_option() {
    let config = SctpConfig { mtu: 1280, ..plain() };
    let mut pair = bulk(3, &config, vec![Way { buffer: 100_000, ..Way::of(20, 20.0) }]);
    pair.keeps = true;
    pair.run(Duration::from_secs(10), |_| false);
    assert_eq!(sizes(&mut pair), [1280]);
    assert!(pair.sent.iter().all(|(_, _, sent)| !sent.is_probe && !sent.may_fragment));
}
