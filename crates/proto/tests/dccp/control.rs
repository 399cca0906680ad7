//! Congestion control between two ends.

use fontis_base::{Duration, Rate};
use fontis_proto::dccp::{Ccid, DccpConfig, DccpData};
use fontis_proto::rate::reorder::ReorderMode;
use fontis_proto::rate::tfrc::{FeedbackCount, throughput};

use super::pair::Pair;

const SECOND: Duration = Duration::from_secs(1);

fn greedy(ccid: Ccid) -> Pair {
    let config = DccpConfig {
        ccid,
        packet_size: 1000,
        sequence_window: 10_000,
        queue: 5,
        ..DccpConfig::default()
    };
    let mut pair = Pair::of(&config);
    pair.is_greedy = true;
    pair
}

#[test]
fn a_window_and_a_rate_fill_a_link_with_a_buffer_of_one_bandwidth_delay_product() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let mut pair = greedy(ccid);
        (pair.rate, pair.buffer) = (Rate::from_mbps(2), 25);
        pair.run(SECOND * 20);
        let before = pair.bytes();
        pair.run(SECOND * 40);
        let share = (pair.bytes() - before) as f64 * 8.0 / 40.0 / 2e6;
        assert!((0.75..1.0).contains(&share), "{ccid:?}: {share}");
    }
}

#[test]
fn with_random_loss_a_rate_is_near_the_equation() {
    // Every 100th packet: the loss event rate is 0.01 but for losses in one round trip.
    let mut pair = greedy(Ccid::Three);
    let mut count = 0u32;
    pair.loses = Box::new(move |from, packet| {
        count += u32::from(from == 0 && packet.body.carries_data());
        from == 0 && packet.body.carries_data() && count.is_multiple_of(100)
    });
    pair.run(SECOND * 30);
    let before = pair.bytes();
    pair.run(SECOND * 60);
    let rate = (pair.bytes() - before) as f64 / 60.0;
    let expected = throughput(1000.0, 0.1, 0.4, 0.01);
    assert!((rate / expected - 1.0).abs() < 0.1, "{rate} beside {expected}");
    let path = pair.client.path();
    assert!((path.loss_event_rate - 0.01).abs() < 0.001, "{path:?}");
}

#[test]
fn a_window_halves_at_a_loss_and_loses_no_more_than_was_lost() {
    let mut pair = greedy(Ccid::Two);
    let mut count = 0u32;
    pair.loses = Box::new(move |from, packet| {
        count += u32::from(from == 0 && packet.body.carries_data());
        from == 0 && packet.body.carries_data() && count == 200
    });
    pair.run(SECOND * 3);
    let path = pair.client.path();
    assert_eq!(path.lost, 1);
    assert_eq!(path.timeouts, 0);
    assert!(path.window > 20, "{path:?}");
}

#[test]
fn without_acknowledgements_both_come_nearly_to_rest() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let mut pair = greedy(ccid);
        (pair.rate, pair.buffer) = (Rate::from_mbps(20), 100);
        pair.run(SECOND * 3);
        pair.loses = Box::new(|from, _| from == 1);
        pair.run(SECOND * 60);
        let before = pair.client.stats().data_sent;
        pair.run(SECOND * 60);
        let sent = pair.client.stats().data_sent - before;
        assert!(sent <= 8, "{ccid:?}: {sent} packets in a minute");
    }
}

#[test]
fn more_reports_in_a_round_trip_end_slow_start_sooner() {
    let end = |reports| {
        let mut pair = greedy(Ccid::Three);
        pair.client = fontis_proto::dccp::DccpConnection::connect(
            pair.now,
            with_reports(&pair.config, reports),
            5,
        );
        pair.config = with_reports(&pair.config, reports);
        pair.delay = Duration::from_millis(500);
        let mut seconds = 0;
        while pair.client.path().rate < Rate::from_mbps(1) && seconds < 60 {
            pair.run(SECOND);
            seconds += 1;
        }
        seconds
    };
    let ends = [1, 2, 5, 10].map(end);
    assert!(ends[1..].iter().all(|end| *end < ends[0]), "{ends:?}");
}

fn with_reports(config: &DccpConfig, reports: u32) -> DccpConfig {
    let mut config = config.clone();
    config.tfrc.feedback = FeedbackCount::Fixed(reports);
    config
}

#[test]
fn a_queue_of_stated_length_drops_what_the_rate_cannot_carry() {
    let config = DccpConfig { ccid: Ccid::Four, packet_size: 160, ..DccpConfig::default() };
    let mut pair = Pair::of(&config);
    pair.delay = Duration::from_millis(500);
    let mut offered = 0;
    for _ in 0..1000 {
        offered += 1;
        let _ = pair.client.send(DccpData::Counted { len: 160, mark: offered });
        pair.run(Duration::from_millis(20));
    }
    pair.run(SECOND * 3);
    let (dropped, sent) = (pair.client.stats().dropped, pair.client.stats().data_sent);
    assert!(dropped > 0, "{dropped}");
    assert_eq!(dropped + sent, offered);
    // At the end the rate carries all.
    assert!(pair.client.path().rate.as_bps() > 64_000, "{:?}", pair.client.path());
}

/// The goodput in bytes a second of a greedy flow of which a twentieth of the packets come late.
fn reordered(reorder: Option<(ReorderMode, Duration)>) -> (f64, f64) {
    let mut pair = greedy(Ccid::Three);
    pair.config.reorder = reorder;
    (pair.rate, pair.buffer) = (Rate::from_mbps(1), 25);
    pair.late = Some(Duration::from_millis(50));
    pair.run(SECOND * 20);
    let before = pair.bytes();
    pair.run(SECOND * 60);
    ((pair.bytes() - before) as f64 / 60.0, pair.client.path().loss_event_rate)
}

#[test]
fn a_reorder_buffer_hides_reordering_from_the_loss_event_rate() {
    let delay = Duration::from_millis(100);
    let (rate, loss) = reordered(None);
    for mode in [ReorderMode::Hold, ReorderMode::Full] {
        let (buffered, hidden) = reordered(Some((mode, delay)));
        assert!(buffered > 1.2 * rate, "{mode:?}: {buffered} beside {rate}");
        assert!(hidden < loss / 2.0, "{mode:?}: {hidden} beside {loss}");
    }
}
