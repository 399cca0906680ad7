use fontis_base::Duration;
use fontis_proto::tcp::TcpConfig;

use super::script::{MSS, config, run};

#[test]
fn a_closed_window_is_probed_ever_more_rarely_until_it_opens() {
    let test = run(
        TcpConfig { initial_window: 2, ..config() },
        3 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +100 < ack 2000 win 0
         +300 > ack 0
         +50 < ack 2000 win 0
         +600 > ack 0
         +50 < ack 2000 win 0
         // An answer shows that the peer is there, not that it is ready.
         +1200 > ack 0
         +50 < ack 2000 win 1600
         +0 > 2000:3000
         +100 < ack 3000",
    );
    assert_eq!(test.endpoint.sender_stats().timeouts, 0);
}

#[test]
fn a_short_window_is_not_filled_with_crumbs() {
    run(
        TcpConfig { initial_window: 4, nagle: false, ..config() },
        6 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         // 496 bytes of window above 4000: too few while something is outstanding.
         +100 < ack 2000 win 2496
         +0 < ack 4000 win 496
         +0 > 4000:4496
         +100 < ack 4496 win 3200
         +0 > 4496:5496
         +0 > 5496:6000
         +100 < ack 6000",
    );
}

#[test]
fn a_stated_maximum_window_is_kept() {
    run(
        TcpConfig { max_window: Some(3000), ..config() },
        7 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +100 < ack 1000
         +0 > 3000:4000
         +0 < ack 3000
         +0 > 4000:5000
         +0 > 5000:6000
         +100 < ack 6000
         +0 > 6000:7000
         +100 < ack 7000",
    );
}

#[test]
fn an_application_that_does_not_read_closes_the_window_and_opens_it_again() {
    let buffer = TcpConfig { receive_buffer: 2000, auto_read: false, ..config() };
    let mut test = run(buffer, 0, "+0 < 0:1000\n +0 > ack 1000\n +0 < 1000:2000\n +0 > ack 2000");
    assert_eq!(test.endpoint.unread(), 2000);
    // What does not fit is not taken.
    let before = test.endpoint.receiver_stats().received;
    test = super::script::run_until(test, 0, "+0 < 2000:3000\n +0 > ack 2000");
    assert_eq!(test.endpoint.receiver_stats().received, before);
    assert_eq!(test.endpoint.read(400), 400);
    assert!(test.endpoint.poll(test.now).is_none(), "too little to tell");
    assert_eq!(test.endpoint.read(5000), 1600);
    let update = test.endpoint.poll(test.now).expect("a window update").segment;
    assert_eq!(update.window, 2000);
}

#[test]
fn a_pause_shrinks_the_window_to_the_initial_one() {
    let mut test = run(
        TcpConfig { initial_window: 2, ..config() },
        6 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +100 < ack 2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         +100 < ack 6000",
    );
    assert_eq!(test.endpoint.sender_stats().cwnd, 4 * MSS);
    test.now += Duration::from_secs(1);
    super::script::run_until(
        test,
        6 * MSS,
        "+0 > 6000:7000
         +0 > 7000:8000
         +0 < R",
    );
}

#[test]
fn a_short_segment_waits_for_another_short_one_but_not_for_full_ones() {
    run(config(), 2500, "+0 > 0:1000\n +0 > 1000:2000\n +0 > 2000:2500\n +100 < ack 2500");
    let test = run(config(), 500, "+0 > 0:500");
    let test = super::script::run_until(test, 300, "+100 < ack 500\n +0 > 500:800");
    super::script::run_until(test, 0, "+100 < ack 800");
    let hasty = TcpConfig { nagle: false, ..config() };
    let test = run(hasty, 500, "+0 > 0:500");
    super::script::run_until(test, 300, "+0 > 500:800\n +100 < ack 800");
}
