use fontis_base::Duration;
use fontis_proto::tcp::TcpConfig;

use super::script::{config, run};

fn delayed() -> TcpConfig {
    TcpConfig { delayed_ack: Some(Duration::from_millis(40)), ..config() }
}

#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_after_a_delay() {
    run(
        delayed(),
        0,
        "+0 < 0:1000
         +0 < 1000:2000
         +0 > ack 2000
         +10 < 2000:3000
         +40 > ack 3000",
    );
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one_if_wanted() {
    run(
        TcpConfig { quick_acks: 2, ..delayed() },
        0,
        "+0 < 0:1000
         +0 > ack 1000
         +10 < 1000:2000
         +0 > ack 2000
         +10 < 2000:3000
         +40 > ack 3000",
    );
}

#[test]
fn data_that_go_back_carry_the_acknowledgement() {
    let mut test = run(delayed(), 0, "+0 < 0:500");
    test.endpoint.write(100);
    let sent = test.endpoint.poll(test.now).expect("data").segment;
    assert_eq!(sent.len, 100);
    assert!(test.endpoint.poll(test.now).is_none());
    let (next, why) = test.endpoint.timeout().expect("the data are unacknowledged");
    assert_eq!((next, why), (test.now + Duration::from_millis(300), "retransmission"));
}

#[test]
fn a_hole_is_reported_at_once_with_the_latest_block_first() {
    run(
        delayed(),
        0,
        "+0 < 1000:2000
         +0 > ack 0 sack 1000:2000
         +0 < 3000:4000
         +0 > ack 0 sack 3000:4000 sack 1000:2000
         +0 < 5000:6000
         +0 > ack 0 sack 5000:6000 sack 3000:4000 sack 1000:2000
         +0 < 2000:3000
         +0 > ack 0 sack 1000:4000 sack 5000:6000
         +0 < 0:1000
         +0 > ack 4000 sack 5000:6000
         +0 < 4000:5000
         +0 > ack 6000",
    );
}

#[test]
fn blocks_that_grew_together_are_reported_as_one_wherever_they_go_on() {
    run(
        delayed(),
        0,
        "+0 < 1000:2000
         +0 > ack 0 sack 1000:2000
         +0 < 3000:4000
         +0 > ack 0 sack 3000:4000 sack 1000:2000
         +0 < 2000:3000
         +0 > ack 0 sack 1000:4000
         // It goes on at its end,
         +0 < 4000:5000
         +0 > ack 0 sack 1000:5000
         // another begins above it and goes on,
         +0 < 6000:7000
         +0 > ack 0 sack 6000:7000 sack 1000:5000
         +0 < 7000:8000
         +0 > ack 0 sack 6000:8000 sack 1000:5000
         // and the hole between them is filled.
         +0 < 5000:6000
         +0 > ack 0 sack 1000:8000
         +0 < 8000:9000
         +0 > ack 0 sack 1000:9000",
    );
}

#[test]
fn a_fifth_hole_finds_no_room_in_the_report() {
    run(
        config(),
        0,
        "+0 < 1000:2000
         +0 > ack 0 sack 1000:2000
         +0 < 3000:4000
         +0 > ack 0 sack 3000:4000 sack 1000:2000
         +0 < 5000:6000
         +0 > ack 0 sack 5000:6000 sack 3000:4000 sack 1000:2000
         +0 < 7000:8000
         +0 > ack 0 sack 7000:8000 sack 5000:6000 sack 3000:4000 sack 1000:2000
         +0 < 9000:10000
         +0 > ack 0 sack 9000:10000 sack 7000:8000 sack 5000:6000 sack 3000:4000",
    );
}

#[test]
fn a_copy_is_reported_as_one() {
    run(
        config(),
        0,
        "+0 < 0:1000
         +0 > ack 1000
         +0 < 0:1000
         +0 > ack 1000 sack 0:1000
         +0 < 3000:4000
         +0 > ack 1000 sack 3000:4000
         +0 < 3000:4000
         +0 > ack 1000 sack 3000:4000 sack 3000:4000
         +0 < 1000:3000
         +0 > ack 4000",
    );
}

#[test]
fn marks_are_echoed_until_the_sender_has_heeded_them() {
    run(
        TcpConfig { ecn: true, ..config() },
        0,
        "+0 < 0:1000
         +0 > ack 1000
         +0 < 1000:2000 M
         +0 > ack 2000 E
         +0 < 2000:3000
         +0 > ack 3000 E
         +0 < 3000:4000 C
         +0 > ack 4000",
    );
}

#[test]
fn sequence_numbers_wrap_around() {
    // The peer's first sequence number lies 5001 below the wrap.
    let test = run(
        config(),
        0,
        "+0 < 0:4000
         +0 > ack 4000
         +0 < 6000:8000
         +0 > ack 4000 sack 6000:8000
         +0 < 4000:6000
         +0 > ack 8000",
    );
    assert_eq!(test.endpoint.receiver_stats().received, 8000);
}
