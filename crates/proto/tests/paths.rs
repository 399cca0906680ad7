//! Connections over several paths: rates add up, losses of one are made up for by others, and a
//! path that dies holds nothing up.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Serializer, Stream, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    DfcpConfig, DfcpEvent, DfcpPacket, MAX_OPEN_PATHS, MAX_PATHS, MemoryBudget, ObjectShape,
    PathStats, SendOptions,
};

use crate::pair::{Pair, Side, Way};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A path: its rate in Mbit/s, its round-trip time in milliseconds, its loss.
type Link = (u64, u64, f64);

/// A pair over these paths, as soon as all of them are usable.
fn over(links: &[Link], seed: u64) -> Pair {
    with_spares(links, false, seed)
}

/// The same; all but the first may be spare ones.
fn with_spares(links: &[Link], spare: bool, seed: u64) -> Pair {
    let (rate, rtt, _) = links[0];
    let config = DfcpConfig { max_packet_size: 1500, ..DfcpConfig::default() };
    let mut pair = Pair::new(config.clone(), config, millis(rtt) / 2, None);
    pair.bottleneck = Some([(); 2].map(|()| Serializer::new(Rate::from_mbps(rate))));
    pair.run_for(millis(3 * rtt));
    for (number, (rate, rtt, loss)) in (1..).zip(&links[1..]) {
        let rate = Rate::from_mbps(*rate);
        pair.ways.push(Way::new(millis(*rtt) / 2, rate, *loss, seed + number));
        let path = pair.client.open_path(28, spare, [number as u8; 8]);
        assert_eq!(path, Some(number as u8));
    }
    pair.run_for(Duration::from_secs(1));
    let opened = |pair: &Pair, side| {
        let events = pair.events_of(side);
        events.iter().filter(|event| matches!(event, DfcpEvent::PathOpened { .. })).count()
    };
    assert_eq!(opened(&pair, Side::Client), links.len() - 1);
    assert_eq!(opened(&pair, Side::Server), links.len() - 1);
    let mut random = Stream::new(seed, "first path");
    let loss = fontis_base::Probability::new(links[0].2);
    pair.loss = Box::new(move |_, sent| {
        matches!(sent.packet, DfcpPacket::Sealed { path: 0, .. }) && random.chance(loss)
    });
    pair.events.clear();
    pair
}

/// Sends an object of symbols without bytes; how long it takes until all blocks are done.
fn transfer(pair: &mut Pair, size: u64, mut each: impl FnMut(&mut Pair)) -> Duration {
    let shape = ObjectShape::partition(size, 1192, Code::RaptorQ);
    let now = pair.now;
    let content = Bytes::from(vec![7; 1 << 20]);
    pair.client.send_object(now, shape, Bytes::new(), SendOptions::default()).unwrap();
    let mut left = shape.blocks().unwrap();
    while left > 0 {
        assert!(pair.now.since(now) < Duration::from_secs(600), "{left} blocks are left");
        each(pair);
        pair.run_for(millis(1));
        let at = pair.now;
        for (side, event) in core::mem::take(&mut pair.events) {
            match event {
                DfcpEvent::BlockWanted { channel, block } if side == Side::Client => {
                    let data = content.slice(..shape.block_len(block) as usize);
                    assert!(pair.client.supply_block(channel, block, data));
                }
                DfcpEvent::Block { channel, block, data } => {
                    let wrong = data.iter().filter(|byte| **byte != 7).count();
                    assert_eq!(
                        wrong,
                        0,
                        "of {} in block {block} of {:?} side {side:?} first {:?}",
                        data.len(),
                        shape.blocks(),
                        data.iter().position(|b| *b != 7)
                    );
                    pair.server().release_block(at, channel, block);
                    left -= 1;
                }
                DfcpEvent::Closed(reason) => panic!("{reason}"),
                _ => {}
            }
        }
    }
    pair.now.since(now)
}

fn stats(pair: &Pair, path: u8) -> PathStats {
    *pair.client.path_stats().iter().find(|stats| stats.path == path).unwrap()
}

/// What of the sum of the rates was used, and how many symbols were sent for each that was needed.
fn share(links: &[Link], size: u64, seed: u64) -> (f64, f64) {
    let mut pair = over(links, seed);
    let before = pair.client.stats();
    let time = transfer(&mut pair, size, |_| {});
    let after = pair.client.stats();
    // Two round trips are the start's, as in the bound of one path.
    let least = links.iter().map(|link| link.1).min().unwrap();
    let useful = |(rate, _, loss): &Link| *rate as f64 * 1e6 * 1472.0 / 1500.0 * (1.0 - loss);
    let sum: f64 = links.iter().map(useful).sum();
    let ideal = size as f64 * 8.0 / sum + 2.0 * least as f64 / 1e3;
    let sent = after.symbols_sent - before.symbols_sent;
    let needed = after.symbols_needed - before.symbols_needed;
    (ideal / time.as_secs_f64(), sent as f64 / needed as f64)
}

#[test]
fn rates_of_unequal_paths_add_up() {
    for (links, size, least) in [
        (&[(50, 20, 0.0), (50, 100, 0.0)][..], 100_000_000, 0.93),
        (&[(60, 30, 0.0), (12, 80, 0.0)], 50_000_000, 0.93),
        (&[(30, 40, 0.0), (30, 40, 0.10)], 50_000_000, 0.90),
        (&[(50, 20, 0.01), (50, 100, 0.01)], 100_000_000, 0.90),
        (&[(20, 20, 0.0), (20, 40, 0.0), (20, 80, 0.0)], 50_000_000, 0.90),
    ] {
        let (used, sent) = share(links, size, 1);
        println!("{links:?}: {used:.3} of the sum, {sent:.4} symbols for each needed");
        assert!(used > least, "{links:?}: {used:.3}");
    }
}

#[test]
fn a_path_that_dies_holds_nothing_up_and_is_used_again_when_it_is_back() {
    let mut pair = over(&[(20, 30, 0.0), (20, 50, 0.0)], 7);
    let (dies, returns) = (Time::ZERO + Duration::from_secs(4), Duration::from_secs(2));
    let mut last = pair.now;
    let mut received = 0;
    let mut longest = Duration::ZERO;
    let mut back = None;
    let mut sent_while_dead = 0;
    transfer(&mut pair, 30_000_000, |pair| {
        let now = pair.now;
        pair.ways[0].is_up = !(now > dies && now < dies + returns);
        let symbols = pair.server().stats().symbols_received;
        if symbols > received {
            (received, last) = (symbols, now);
        }
        longest = longest.max(now.since(last));
        if now == dies + returns {
            sent_while_dead = stats(pair, 1).in_flight;
        }
        if now > dies + returns && back.is_none() && stats(pair, 1).answers {
            back = Some(now.since(dies + returns));
        }
    });
    println!("longest gap {longest}, back after {back:?}");
    assert!(longest < millis(80), "nothing came for {longest}");
    assert!(back.is_some_and(|span| span < Duration::from_secs(1)), "{back:?}");
    assert!(sent_while_dead < 1_000_000);
}

#[test]
fn a_spare_path_carries_data_only_while_no_other_answers() {
    let mut pair = with_spares(&[(20, 30, 0.0), (20, 50, 0.0)], true, 7);
    assert!(pair.server().path_stats().iter().any(|stats| stats.path == 1 && stats.spare));
    let is_down = std::rc::Rc::new(std::cell::Cell::new(false));
    let first = is_down.clone();
    pair.loss = Box::new(move |_, sent| {
        first.get() && matches!(sent.packet, DfcpPacket::Sealed { path: 0, .. })
    });
    let (dies, returns) = (Time::ZERO + Duration::from_secs(4), Duration::from_secs(2));
    let (mut last, mut received, mut longest) = (pair.now, 0, Duration::ZERO);
    let (mut before, mut during, mut after) = (0, 0, 0);
    transfer(&mut pair, 20_000_000, |pair| {
        let now = pair.now;
        is_down.set(now > dies && now < dies + returns);
        let symbols = pair.server().stats().symbols_received;
        if symbols > received {
            (received, last) = (symbols, now);
        }
        longest = longest.max(now.since(last));
        let sent = stats(pair, 1).bytes_sent;
        if now <= dies {
            before = sent;
        } else if now <= dies + returns + Duration::from_secs(1) {
            during = sent - before;
        } else {
            after = sent - before - during;
        }
    });
    println!("spare path: {before} B, then {during} B, then {after} B; longest gap {longest}");
    assert!(before < 2_000 && after < 5_000, "{before} B before and {after} B after");
    assert!(during > 3_000_000, "{during} B while no other answered");
    assert!(longest < millis(100), "nothing came for {longest}");
}

#[test]
fn a_closed_path_is_closed_on_both_sides_and_the_last_cannot_be() {
    let mut pair = over(&[(20, 30, 0.0), (20, 50, 0.0)], 3);
    let now = pair.now;
    assert!(pair.client.close_path(now, 0), "another carries on");
    assert!(!pair.client.close_path(now, 1), "it is the last");
    pair.run_for(millis(200));
    for side in [Side::Client, Side::Server] {
        let events = pair.events_of(side);
        assert!(events.contains(&&DfcpEvent::PathClosed { path: 0 }), "{side:?}: {events:?}");
    }
    let before = pair.client.stats().bytes_sent;
    transfer(&mut pair, 1_000_000, |_| {});
    assert!(pair.client.stats().bytes_sent > before);
    let all: Vec<_> = pair.client.path_stats().iter().map(|stats| stats.path).collect();
    assert_eq!(all, [1]);
}

#[test]
fn an_interface_may_come_and_go_as_often_as_there_are_numbers() {
    let mut pair = over(&[(20, 30, 0.0)], 1);
    for number in 1..MAX_PATHS as u64 {
        pair.ways.push(Way::new(millis(5), Rate::from_mbps(20), 0.0, number));
        let path = pair.client.open_path(28, false, [number as u8; 8]).expect("a number is left");
        pair.run_for(millis(100));
        assert_eq!(pair.client.path_stats().len(), 2, "path {path} is usable");
        assert_eq!(pair.server().path_stats().len(), 2, "path {path} is usable");
        let now = pair.now;
        assert!(pair.client.close_path(now, path));
        pair.run_for(millis(100));
    }
    assert_eq!(pair.client.open_path(28, false, [1; 8]), None);
    transfer(&mut pair, 1_000_000, |_| {});
}

#[test]
fn paths_are_few_and_only_an_initiator_opens_them() {
    let mut pair = Pair::connected();
    assert_eq!(pair.server().open_path(28, false, [1; 8]), None);
    let opened =
        (0..2 * MAX_OPEN_PATHS).filter_map(|_| pair.client.open_path(28, false, [1; 8])).count();
    assert_eq!(opened, MAX_OPEN_PATHS - 1);
    pair.ways = (0..MAX_OPEN_PATHS as u64)
        .map(|way| Way::new(millis(10), Rate::from_mbps(10), 0.0, way))
        .collect();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.path_stats().len(), MAX_OPEN_PATHS);
    assert_eq!(pair.server().path_stats().len(), MAX_OPEN_PATHS);
    // A packet of a path that nobody may open is dropped.
    let destination = pair.server().local_id();
    let packet = DfcpPacket::Sealed {
        destination,
        path: MAX_OPEN_PATHS as u8,
        number: 0,
        frames: [fontis_proto::dfcp::Frame::Ping].into_iter().collect(),
    };
    let (now, before) = (pair.now, pair.server().stats().violations);
    pair.server().handle(now, packet, 100, fontis_base::Ecn::NotEct);
    assert_eq!(pair.server().stats().violations, before + 1);
}

#[test]
fn a_small_object_takes_no_longer_than_on_the_better_path_alone() {
    for seed in 1..=5 {
        let links = [(50, 20, 0.0), (50, 100, 0.0)];
        let mut alone = over(&links[..1], seed);
        let mut both = over(&links, seed);
        let (one, two) =
            (transfer(&mut alone, 100_000, |_| {}), transfer(&mut both, 100_000, |_| {}));
        println!("{one} over the better, {two} over both");
        assert!(two <= one.mul_ratio(102, 100), "{two} is longer than {one}");
    }
}

#[test]
fn a_path_whose_first_questions_are_lost_is_used_all_the_same() {
    for seed in 1..=10 {
        let mut pair = over(&[(20, 30, 0.0)], seed);
        pair.ways.push(Way::new(millis(20), Rate::from_mbps(20), 0.5, seed));
        assert_eq!(pair.client.open_path(28, false, [1; 8]), Some(1));
        transfer(&mut pair, 30_000_000, |pair| pair.ways[0].loss *= 0.999);
        let paths = [pair.client.path_stats(), pair.server().path_stats()];
        assert!(paths.iter().all(|paths| paths.len() == 2), "seed {seed}: {paths:?}");
        assert!(stats(&pair, 1).bytes_sent > 1_000_000, "seed {seed}");
    }
}

#[test]
fn a_stranger_at_the_end_of_a_new_path_gets_three_times_what_came_from_there() {
    let mut pair = Pair::connected();
    pair.ways.push(Way::new(millis(20), Rate::from_mbps(20), 1.0, 1));
    pair.ways[0].known = true;
    let size = 38 + 28;
    let packet = DfcpPacket::Sealed {
        destination: pair.server().local_id(),
        path: 1,
        number: 0,
        frames: [fontis_proto::dfcp::Frame::Challenge([9; 8])].into_iter().collect(),
    };
    let now = pair.now;
    pair.server().handle(now, packet, size, fontis_base::Ecn::NotEct);
    pair.server().challenge(1, 28, [8; 8]);
    let first = pair.sent.len();
    pair.run_for(Duration::from_secs(20));
    let answers = pair.sent[first..].iter().filter(|sent| {
        sent.from == Side::Server && matches!(sent.packet, DfcpPacket::Sealed { path: 1, .. })
    });
    let sizes: Vec<_> = answers.map(|sent| sent.size).collect();
    assert_eq!(sizes, [size; 3], "a response, a challenge, and a copy of it");
}

#[test]
fn all_paths_may_be_silent_at_once() {
    let mut pair = over(&[(20, 30, 0.0), (20, 50, 0.0)], 5);
    let dies = pair.now + millis(500);
    pair.loss = Box::new(move |_, sent| sent.at > dies && sent.at < dies + millis(1500));
    transfer(&mut pair, 10_000_000, |pair| {
        let now = pair.now;
        pair.ways[0].is_up = !(now > dies && now < dies + millis(1500));
    });
}

#[test]
fn paths_that_a_peer_opens_count_as_memory() {
    let budget = MemoryBudget::new(1 << 20);
    let server = DfcpConfig { budget: Some(budget.clone()), ..DfcpConfig::default() };
    let mut pair = Pair::new(DfcpConfig::default(), server, millis(10), None);
    pair.run_for(millis(200));
    let before = budget.used();
    pair.ways = (0..MAX_OPEN_PATHS as u64)
        .map(|way| Way::new(millis(10), Rate::from_mbps(10), 0.0, way))
        .collect();
    while pair.client.open_path(28, false, [1; 8]).is_some() {}
    pair.run_for(Duration::from_secs(1));
    let (paths, used) = (pair.server().path_stats().len(), budget.used() - before);
    assert!(used >= 40_000 * (paths as u64 - 1), "{paths} paths count as {used} bytes");
    // A connection takes no more than is left for others.
    assert!(paths > 4 && paths < MAX_OPEN_PATHS, "{paths}");
}
