//! Several paths: in reserve, and at once.

use fontis_base::{Duration, Time};
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{
    AckPolicy, CmtConfig, Multipath, Reliability, SctpConfig, SctpData, SctpEvent, SctpPathState,
    SctpSend,
};

use super::pair::{Pair, Way, plain};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A pair whose client has `messages` of a packet each to send.
fn bulk(config: &SctpConfig, ways: Vec<Way>, messages: usize) -> Pair {
    let mut pair = Pair::new(7, config, ways);
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[0] = std::iter::repeat_n(message, messages).collect();
    pair
}

fn concurrent(scheduler: SchedulerKind) -> SctpConfig {
    let cmt = CmtConfig { scheduler, ..CmtConfig::default() };
    SctpConfig {
        multipath: Multipath::Concurrent(cmt),
        stamps: true,
        max_burst: None,
        acks: AckPolicy { waits_at_gaps: true, ..AckPolicy::default() },
        ..plain()
    }
}

/// Mbit/s that reach the application over `ways` in twenty seconds after the first two.
fn goodput(config: &SctpConfig, ways: Vec<Way>) -> f64 {
    let mut pair = bulk(config, ways, 100_000);
    pair.run(secs(2), |_| false);
    let before = pair.end(1).stats().bytes_received;
    pair.run(secs(20), |_| false);
    (pair.end(1).stats().bytes_received - before) as f64 * 8e-6 / 20.0
}

fn ways(delays: [u64; 2], rates: [f64; 2]) -> Vec<Way> {
    let way = |(delay, rate)| Way { buffer: 75_000, ..Way::of(delay, rate) };
    delays.into_iter().zip(rates).map(way).collect()
}

#[test]
fn without_cmt_one_path_carries_data_and_with_it_both_do() {
    let one = goodput(&plain(), ways([20, 20], [10.0, 10.0]));
    assert!((8.8..10.0).contains(&one), "{one}");
    for scheduler in SchedulerKind::ALL {
        let both = goodput(&concurrent(*scheduler), ways([20, 20], [10.0, 10.0]));
        let wanted = if *scheduler == SchedulerKind::Redundant { 8.0..10.0 } else { 17.0..20.0 };
        assert!(wanted.contains(&both), "{scheduler}: {both}");
    }
}

#[test]
fn data_go_on_over_the_other_path_when_the_first_fails_and_come_back_with_it() {
    let mut pair = bulk(&plain(), ways([20, 40], [10.0, 10.0]), 400_000);
    pair.run(secs(5), |_| false);
    pair.ways[0].is_down = true;
    let before = pair.end(1).stats().bytes_received;
    // The first timeout, of a second, makes the path potentially failed.
    pair.run(secs(10), |_| false);
    let during = pair.end(1).stats().bytes_received - before;
    assert!(during > 7_000_000, "{during}");
    pair.run(secs(100), |_| false);
    assert!(pair.events[0].contains(&SctpEvent::PathDown(0)), "{:?}", pair.events[0]);
    pair.ways[0].is_down = false;
    let is_back = |pair: &Pair| pair.events[0].contains(&SctpEvent::PathUp(0));
    assert!(pair.run(secs(120), is_back), "{:?}", pair.events[0]);
    let sent = |pair: &mut Pair| pair.end(0).paths().map(|path| path.sent).collect::<Vec<_>>();
    let before = sent(&mut pair);
    pair.run(secs(5), |_| false);
    let after = sent(&mut pair);
    assert!(after[0] > before[0] + 1_000_000, "{before:?} {after:?}");
    assert!(after[1] < before[1] + 1_000_000, "{before:?} {after:?}");
}

#[test]
fn an_association_whose_first_path_has_failed_ends_over_the_other() {
    for closes in 0..2 {
        let mut pair = bulk(&plain(), ways([20, 40], [10.0, 10.0]), 2000);
        pair.run(secs(1), |_| false);
        pair.ways[0].is_down = true;
        assert!(pair.run(secs(30), |pair| pair.got[1].len() == 2000));
        let now = pair.now;
        pair.end(closes).close(now);
        let is_over = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Closed));
        assert!(pair.run(secs(10), is_over), "{closes}: {:?}", pair.events);
    }
}

#[test]
fn a_path_carries_no_data_before_a_heartbeat_has_confirmed_it() {
    let mut all = ways([20, 20], [10.0, 10.0]);
    all[1].is_down = true;
    let mut pair = bulk(&concurrent(SchedulerKind::RoundRobin), all, 100_000);
    pair.run(secs(10), |_| false);
    let paths: Vec<_> = pair.end(0).paths().collect();
    assert_eq!((paths[1].state, paths[1].sent), (SctpPathState::Unconfirmed, 0));
    assert!(pair.end(1).stats().bytes_received > 9_000_000);
    pair.ways[1].is_down = false;
    pair.run(secs(120), |_| false);
    let paths: Vec<_> = pair.end(0).paths().collect();
    assert_eq!(paths[1].state, SctpPathState::Active);
    assert!(paths[1].sent > 1_000_000);
}

#[test]
fn idle_paths_are_probed_and_measured() {
    let mut pair = Pair::new(3, &plain(), ways([20, 70], [10.0, 10.0]));
    pair.run(secs(100), |_| false);
    let rtts: Vec<_> = pair.end(0).paths().map(|path| path.srtt.unwrap().as_millis()).collect();
    assert_eq!(rtts, [40, 140]);
}

#[test]
fn split_fast_retransmit_repeats_nothing_where_paths_differ_and_the_stock_rule_does() {
    let repeated = |split| {
        let mut config = concurrent(SchedulerKind::RoundRobin);
        let Multipath::Concurrent(cmt) = &mut config.multipath else { unreachable!() };
        cmt.split_fast_retransmit = split;
        let mut pair = bulk(&config, ways([10, 100], [5.0, 5.0]), 400);
        pair.ways.iter_mut().for_each(|way| way.buffer = 1 << 30);
        assert!(pair.run(secs(60), |pair| pair.got[1].len() == 400));
        (pair.end(0).stats().repeated, pair.end(1).stats().duplicates)
    };
    assert_eq!(repeated(true), (0, 0));
    let (repeats, duplicates) = repeated(false);
    assert!(repeats > 20 && duplicates > 20, "{repeats} {duplicates}");
}

#[test]
fn stamps_tell_the_delay_of_each_path() {
    let mut pair = bulk(&concurrent(SchedulerKind::RoundRobin), ways([10, 100], [50.0, 50.0]), 999);
    pair.run(secs(5), |_| false);
    let delays: Vec<_> = pair.end(0).paths().map(|path| path.forward_delay.unwrap()).collect();
    for (delay, wanted) in delays.iter().zip([10e6, 100e6]) {
        // The queue of 75 kB takes 12 ms.
        assert!((0.0..13e6).contains(&(*delay as f64 - wanted)), "{delays:?}");
    }
}

#[test]
fn messages_with_a_lifetime_are_given_up_and_the_rest_arrives() {
    for interleaving in [false, true] {
        for reliability in [Reliability::Lifetime(secs(2)), Reliability::Repeats(0)] {
            let config = SctpConfig { interleaving, ..plain() };
            let lossy = Way { loss: 0.1, ..Way::of(40, 20.0) };
            let mut pair = Pair::new(9, &config, vec![lossy]);
            for number in 0..500u32 {
                let send = SctpSend {
                    stream: (number % 3) as u16,
                    protocol: number,
                    is_unordered: number % 5 == 0,
                    reliability,
                };
                pair.queues[0].push_back((send, SctpData::Counted(3000)));
            }
            let last = SctpSend { protocol: 999, ..SctpSend::default() };
            pair.queues[0].push_back((last, SctpData::Counted(1)));
            let is_done = |pair: &Pair| pair.got[1].iter().any(|message| message.protocol == 999);
            let case = format!("{interleaving} {reliability:?}");
            let is_over = pair.run(secs(100), is_done);
            let (stats, due) = (pair.end(0).stats(), pair.end(0).timeout());
            assert!(is_over, "{case}: {:?} {stats:?} {due:?}", pair.events);
            let (got, abandoned) = (pair.got[1].len(), pair.end(0).stats().abandoned);
            assert!((50..500).contains(&got) && abandoned > 20, "{case}: {got} {abandoned}");
            for stream in 0..3 {
                let ordered = pair.got[1].iter().filter(|m| m.stream == stream && !m.is_unordered);
                let numbers: Vec<u32> = ordered.map(|m| m.protocol).collect();
                assert!(numbers.is_sorted(), "{case}: {numbers:?}");
            }
            pair.run(Duration::from_secs(5), |_| false);
            assert_eq!(pair.end(0).buffered(), 0, "{case}");
            assert!(pair.now > Time::ZERO);
        }
    }
}

#[test]
fn a_receiver_that_takes_nothing_stops_the_sender_and_starts_it_again() {
    let config = SctpConfig { receive_buffer: 20_000, ..plain() };
    let mut pair = bulk(&config, vec![Way::of(10, 10.0)], 200);
    pair.takes[1] = false;
    pair.run(secs(20), |_| false);
    let held = pair.end(1).stats().held;
    assert!((18_000..=20_000).contains(&held), "{held}");
    pair.takes[1] = true;
    assert!(pair.run(secs(70), |pair| pair.got[1].len() == 200), "{}", pair.got[1].len());
}
