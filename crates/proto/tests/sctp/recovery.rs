//! Losses that time tells (RACK-TLP, RFC 8985).

use std::collections::BTreeMap;

use fontis_base::{Duration, Stream};
use fontis_proto::sctp::{
    AckPolicy, CmtConfig, CodingConfig, LossRecovery, Multipath, Reliability, SctpConfig, SctpData,
    SctpSend, SctpStats,
};

use super::pair::{Pair, Way, plain};

fn by(recovery: LossRecovery) -> SctpConfig {
    SctpConfig { recovery, receive_buffer: 4 << 20, send_buffer: 4 << 20, ..plain() }
}

const BOTH: [LossRecovery; 2] = [LossRecovery::Reports, LossRecovery::RackTlp];

fn seed() -> u64 {
    std::env::var("FONTIS_SEED").map_or(21, |seed| seed.parse().unwrap())
}

/// A pair whose association is up, and has measured its path.
fn warm(seed: u64, config: &SctpConfig, ways: Vec<Way>) -> Pair {
    let quiet = |way: &Way| Way { loss: 0.0, reorder: 0.0, ..*way };
    let mut pair = Pair::new(seed, config, ways.iter().map(quiet).collect());
    send(&mut pair, 20_000);
    let first = |pair: &Pair| pair.got[1].len() == 1;
    assert!(pair.run(Duration::from_secs(10), first));
    pair.run(Duration::from_secs(2), |_| false);
    pair.ways = ways;
    pair.keeps = true;
    pair
}

fn send(pair: &mut Pair, len: u32) {
    pair.queues[0].push_back((SctpSend::default(), SctpData::Counted(len)));
}

/// Runs until the server has so many messages; the milliseconds that it takes.
fn wait_for(pair: &mut Pair, messages: usize) -> f64 {
    let begin = pair.now;
    let is_there = |pair: &Pair| pair.got[1].len() == messages;
    assert!(pair.run(Duration::from_secs(300), is_there), "{:?}", pair.end(0).stats());
    pair.now.since(begin).as_secs_f64() * 1e3
}

/// Packets of the client's data are lost from now on whose numbers `lost` names.
fn lose(pair: &mut Pair, lost: impl Fn(usize) -> bool + 'static) {
    let mut number = 0;
    pair.drops = Some(Box::new(move |_| {
        number += 1;
        lost(number - 1)
    }));
}

#[test]
fn a_lost_tail_is_repaired_before_the_timer_expires() {
    for (packets, lost) in [(1, 0..1), (5, 4..5), (8, 5..8), (3, 0..3)] {
        let times = BOTH.map(|recovery| {
            let mut pair = warm(seed(), &by(recovery), vec![Way::of(30, 100.0)]);
            let lost = lost.clone();
            lose(&mut pair, move |number| lost.contains(&number));
            send(&mut pair, packets * 1400);
            let time = wait_for(&mut pair, 2);
            let stats = pair.end(0).stats();
            let is_rack = recovery == LossRecovery::RackTlp;
            assert_eq!((stats.probes > 0, stats.timeouts > 0), (is_rack, !is_rack), "{stats:?}");
            (time, stats)
        });
        let [(reports, _), (rack, stats)] = times;
        println!("{packets} packets, {lost:?} lost: {reports:.0} ms by reports, {rack:.0} by time");
        // Two round trips and the delay of a SACK, then what is left by the SACK of the probe.
        assert!(rack < 550.0 && rack < reports / 1.8, "{packets}: {rack} {reports} {stats:?}");
        assert!(stats.lost >= lost.len() as u64 - 1, "{stats:?}");
    }
}

#[test]
fn a_probe_that_repairs_the_only_loss_reduces_the_window_and_a_spare_one_does_not() {
    for is_lost in [true, false] {
        let mut pair = warm(seed(), &by(LossRecovery::RackTlp), vec![Way::of(30, 100.0)]);
        // A tail that is not lost comes later than a probe expects.
        if !is_lost {
            pair.ways[0].delay = Duration::from_millis(250);
        }
        lose(&mut pair, move |number| is_lost && number == 4);
        let window = pair.end(0).paths().next().unwrap().window;
        send(&mut pair, 5 * 1400);
        wait_for(&mut pair, 2);
        pair.ways[0].delay = Duration::from_millis(30);
        pair.run(Duration::from_secs(1), |_| false);
        send(&mut pair, 1400);
        wait_for(&mut pair, 3);
        pair.run(Duration::from_secs(1), |_| false);
        let stats = pair.end(0).stats();
        let after = pair.end(0).paths().next().unwrap().window;
        assert!(stats.probes > 0 && stats.timeouts == 0, "{stats:?}");
        assert_eq!(after < window, is_lost, "{after} after {window}, {stats:?}");
    }
}

#[test]
fn a_lost_repeat_is_found_out_without_a_timeout() {
    for again in 1..4_u32 {
        let mut pair = warm(seed(), &by(LossRecovery::RackTlp), vec![Way::of(30, 10.0)]);
        let mut seen = BTreeMap::new();
        pair.drops = Some(Box::new(move |tsns| {
            let first = *tsns.first().unwrap();
            let place = seen.len();
            let (place, copies) = seen.entry(first).or_insert((place, 0));
            *copies += 1;
            *place == 10 && *copies <= again
        }));
        send(&mut pair, 400_000);
        wait_for(&mut pair, 2);
        let stats = pair.end(0).stats();
        assert_eq!((stats.timeouts, stats.repeated), (0, again.into()), "{stats:?}");
        assert_eq!(pair.end(1).stats().duplicates, 0);
    }
}

/// What both ends have counted when messages of 100 kB have left every two seconds, and the mean
/// time of each in milliseconds.
fn messages(seed: u64, recovery: LossRecovery, way: Way) -> (f64, [SctpStats; 2]) {
    let mut pair = warm(seed, &by(recovery), vec![way]);
    pair.keeps = false;
    let mut sum = 0.0;
    for number in 0..40 {
        send(&mut pair, 100_000);
        sum += wait_for(&mut pair, number + 2);
        pair.run(Duration::from_secs(2), |_| false);
    }
    (sum / 40.0, [pair.end(0).stats(), pair.end(1).stats()])
}

#[test]
fn at_random_points_tails_come_sooner_and_reordering_makes_fewer_repeats() {
    let seed = seed();
    let mut stream = Stream::new(seed, "points");
    let [mut times, mut spare] = [[0.0; 2]; 2];
    for point in 0..8 {
        let way = Way {
            loss: 0.04 * stream.unit(),
            reorder: if point % 2 == 0 { 0.0 } else { 0.3 * stream.unit() },
            buffer: 1 << 30,
            ..Way::of(5 + stream.below(60), 5.0 + 45.0 * stream.unit())
        };
        let found = BOTH.map(|recovery| messages(seed + point, recovery, way));
        let [reports, rack] = &found;
        println!(
            "seed {seed}, {point}: {:.0} ms, {:.1} Mbit/s, {:.3} lost, {:.3} reordered: \
             {:.0} ms by reports, {:.0} by time; {} and {} repeats to no use, {} and {} timeouts",
            way.delay.as_millis(),
            way.rate.as_bps() as f64 / 1e6,
            way.loss,
            way.reorder,
            reports.0,
            rack.0,
            reports.1[1].duplicates,
            rack.1[1].duplicates,
            reports.1[0].timeouts,
            rack.1[0].timeouts,
        );
        for (at, (time, stats)) in found.iter().enumerate() {
            times[at] += time;
            spare[at] += if way.reorder > 0.0 { stats[1].duplicates as f64 } else { 0.0 };
            assert_eq!(stats[1].bytes_received, 4_020_000, "seed {seed}, {point}");
        }
    }
    assert!(times[1] < 0.9 * times[0], "seed {seed}: {times:?}");
    assert!(spare[1] < 0.5 * spare[0], "seed {seed}: {spare:?}");
}

#[test]
fn each_path_is_judged_by_itself_where_all_carry_data() {
    let seed = seed();
    let mut stream = Stream::new(seed, "paths");
    for _ in 0..6 {
        let mut way =
            || Way { buffer: 1 << 30, ..Way::of(5 + stream.below(150), 1.0 + 9.0 * stream.unit()) };
        let ways = vec![way(), way()];
        let config = SctpConfig {
            multipath: Multipath::Concurrent(CmtConfig::default()),
            max_burst: None,
            acks: AckPolicy { waits_at_gaps: true, ..AckPolicy::default() },
            ..by(LossRecovery::RackTlp)
        };
        let mut pair = Pair::new(seed, &config, ways.clone());
        send(&mut pair, 2_000_000);
        wait_for(&mut pair, 1);
        let stats = pair.end(0).stats();
        // A probe may be spare where a SACK waits behind data of the other path.
        assert!(stats.repeated <= stats.probes, "{stats:?} {ways:?}");
        assert_eq!((stats.lost, stats.timeouts), (0, 0), "seed {seed}: {stats:?} {ways:?}");
    }
}

#[test]
fn what_may_not_be_sent_again_is_not_sent_again_as_a_probe() {
    let mut pair = warm(seed(), &by(LossRecovery::RackTlp), vec![Way::of(30, 100.0)]);
    lose(&mut pair, |number| number == 0);
    let send = SctpSend { reliability: Reliability::Repeats(0), ..SctpSend::default() };
    pair.queues[0].push_back((send, SctpData::Counted(1000)));
    let is_given_up = |pair: &Pair| pair.ends[0].as_ref().unwrap().stats().abandoned == 1;
    assert!(pair.run(Duration::from_secs(10), is_given_up));
    let stats = pair.end(0).stats();
    assert_eq!((stats.repeated, stats.probes), (0, 0), "{stats:?}");
}

#[test]
fn a_lost_tail_is_restored_at_once_if_a_code_covers_it() {
    // Random messages that lose one of their last chunks, the last one among them.
    let seed = seed();
    let mut stream = Stream::new(seed, "tails");
    for code in [
        "block:10,9",
        "conv:10,9,20",
        "tetrys:10,9,43",
        "tetrys:adaptive,128",
        "raptorq:22,20",
        "raptorq:adaptive,64",
    ] {
        let mut sums = [0.0; 2];
        for _ in 0..5 {
            let chunks = 1 + stream.below(25) as usize;
            let lost = chunks - 1 - stream.below(3.min(chunks as u64)) as usize;
            let [without, with] = [false, true].map(|covers_tail| {
                let coding =
                    CodingConfig { covers_tail, ..CodingConfig::of(code.parse().unwrap()) };
                let config = SctpConfig { coding: Some(coding), ..by(LossRecovery::Reports) };
                let mut pair = warm(seed, &config, vec![Way::of(30, 100.0)]);
                let first =
                    pair.end(0).init().tsn.wrapping_add(pair.end(0).stats().chunks_sent as u32);
                let piece = pair.end(0).piece() as u32;
                let mut is_lost = false;
                pair.drops = Some(Box::new(move |tsns| {
                    let is_it = tsns.contains(&first.wrapping_add(lost as u32));
                    is_it && !core::mem::replace(&mut is_lost, true)
                }));
                send(&mut pair, chunks as u32 * piece);
                let time = wait_for(&mut pair, 2);
                let stats = pair.end(0).stats();
                assert_eq!(pair.lost, 1, "{code}: {stats:?}");
                (time, stats)
            });
            println!(
                "{code}: {lost} of {chunks} lost: {:.0} ms, {:.0} with repairs of the tail",
                without.0, with.0
            );
            let named = format!("seed {seed}, {code}, {lost} of {chunks}: {with:?} {without:?}");
            // Five round trips are what 25 chunks and their repairs take without a loss.
            // Repairs of the tail may take the room of one.
            assert!(with.0 < 330.0 && with.0 < without.0 + 62.0, "{named}");
            assert_eq!((with.1.timeouts, with.1.repeated), (0, 0), "{named}");
            sums[0] += without.0;
            sums[1] += with.0;
        }
        assert!(sums[1] < 0.7 * sums[0], "seed {seed}, {code}: {sums:?}");
    }
}
