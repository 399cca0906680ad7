use fontis_proto::tcp::{Recovery, TcpConfig};

use super::script::{MSS, config, run};

/// An initial window of `segments`, and losses recognised by RFC 6675.
fn window(segments: u32) -> TcpConfig {
    TcpConfig { recovery: Recovery::Rfc6675, ..rack(segments) }
}

/// An initial window of `segments`, and losses recognised by RACK-TLP.
fn rack(segments: u32) -> TcpConfig {
    TcpConfig { initial_window: segments, recovery: Recovery::RackTlp, ..config() }
}

#[test]
fn the_loss_of_the_first_segment_is_repaired_after_three_blocks_above_it() {
    let test = run(
        window(6),
        8 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         // Limited transmit (RFC 3042): two new segments leave on the first two.
         +100 < ack 0 sack 1000:2000
         +0 > 6000:7000
         +0 < ack 0 sack 1000:3000
         +0 > 7000:8000
         // The third halves the window of 6 to 3, and sends the lost one whatever is in flight.
         +0 < ack 0 sack 1000:4000
         +0 > 0:1000
         +0 < ack 0 sack 1000:5000
         +0 < ack 0 sack 1000:6000
         +100 < ack 8000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.cwnd, stats.ssthresh), (3 * MSS, 3 * MSS));
    assert_eq!((stats.retransmitted, stats.recoveries, stats.timeouts), (1, 1, 0));
}

#[test]
fn what_a_lost_acknowledgement_said_is_learned_from_the_next_one() {
    let test = run(
        window(8),
        8 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         +0 > 6000:7000
         +0 > 7000:8000
         +100 < ack 0 sack 1000:2000
         // The one that told of 3000:4000 first was lost: with the others these are three blocks.
         +0 < ack 0 sack 5000:6000 sack 3000:4000 sack 1000:2000
         +0 > 0:1000
         // The first block goes on, the others say nothing new.
         +0 < ack 0 sack 5000:7000 sack 3000:4000 sack 1000:2000
         +0 > 2000:3000
         +0 < ack 0 sack 5000:8000 sack 3000:4000 sack 1000:2000
         +0 > 4000:5000
         +100 < ack 8000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.retransmitted, stats.recoveries, stats.timeouts), (3, 1, 0));
}

#[test]
fn the_loss_of_two_in_the_middle_is_repaired_in_one_round_trip() {
    run(
        window(10),
        10 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         +0 > 6000:7000
         +0 > 7000:8000
         +0 > 8000:9000
         +0 > 9000:10000
         +100 < ack 3000
         +0 < ack 3000 sack 5000:6000
         +0 < ack 3000 sack 5000:7000
         // More than two segments above 3000 and 4000: both are lost. Half of the seven outstanding
         // is the window; three blocks and two losses leave two in flight.
         +0 < ack 3000 sack 5000:8000
         +0 > 3000:4000
         +0 < ack 3000 sack 5000:10000
         +0 > 4000:5000
         +100 < ack 10000",
    );
}

#[test]
fn the_loss_of_the_last_segment_waits_for_the_timer() {
    let test = run(
        window(3),
        3 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +100 < ack 2000
         // SRTT 100 ms and the floor of 200 ms above it.
         +300 > 2000:3000
         +100 < ack 3000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.timeouts, stats.retransmitted), (1, 1));
    // It had nothing more to send, so the window stays at the one segment with which it begins.
    assert_eq!(stats.cwnd, MSS);
}

#[test]
fn a_probe_finds_the_loss_of_the_last_segment_sooner() {
    let test = run(
        rack(4),
        4 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +100 < ack 2000
         // Two round trips (RFC 8985 section 7.2).
         +200 > 3000:4000
         // The copy arrived, 2000 did not: it was sent before.
         +100 < ack 2000 sack 3000:4000
         +0 > 2000:3000
         +100 < ack 4000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.timeouts, stats.probes, stats.recoveries), (0, 1, 1));
}

#[test]
fn segments_that_are_two_places_late_are_not_taken_for_lost() {
    let test = run(
        window(4),
        4 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +100 < ack 0 sack 1000:2000
         +1 < ack 0 sack 1000:3000
         +1 < ack 3000
         +1 < ack 4000",
    );
    assert_eq!(test.endpoint.sender_stats().retransmitted, 0);
}

#[test]
fn rack_waits_a_quarter_of_a_round_trip_where_reordering_was_seen() {
    // The first four arrive in the wrong order, which shows the path to reorder; then 6000 is late.
    let test = run(
        rack(4),
        9 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +100 < ack 0 sack 1000:2000
         +0 > 4000:5000
         +0 < ack 2000
         +0 > 5000:6000
         +0 > 6000:7000
         +0 < ack 4000
         +0 > 7000:8000
         +0 > 8000:9000
         +100 < ack 5000
         +0 < ack 6000 sack 7000:8000
         +0 < ack 6000 sack 7000:9000
         // 100 ms and a quarter of it after it was sent.
         +25 > 6000:7000
         +100 < ack 9000",
    );
    assert_eq!(test.endpoint.sender_stats().recoveries, 1);
}

#[test]
fn a_lost_retransmission_waits_for_the_timer_by_rfc_6675() {
    let test = run(
        window(6),
        6 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         +100 < ack 0 sack 1000:4000
         +0 > 0:1000
         +0 < ack 0 sack 1000:6000
         // Nothing comes: 300 ms after the copy left.
         +300 > 0:1000
         +100 < ack 6000",
    );
    assert_eq!(test.endpoint.sender_stats().timeouts, 1);
}

#[test]
fn a_lost_retransmission_is_found_by_rack() {
    let test = run(
        rack(6),
        20 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         +100 < ack 0 sack 1000:4000
         +0 > 0:1000
         // The window is 3, 4 s of which are in flight; 5000 leaves the network.
         +0 < ack 0 sack 1000:5000
         +0 > 6000:7000
         +0 < ack 0 sack 1000:6000
         +0 > 7000:8000
         // What was sent after the copy arrived, and the copy did not.
         +100 < ack 0 sack 1000:8000
         +0 > 0:1000
         +0 > 8000:9000
         +0 > 9000:10000
         +100 < ack 10000
         +0 > 10000:11000
         +0 > 11000:12000
         +0 > 12000:13000
         +0 > 13000:14000
         +0 < R",
    );
    assert_eq!(test.endpoint.sender_stats().timeouts, 0);
}

#[test]
fn timeouts_double_and_all_that_was_outstanding_is_sent_again_in_slow_start() {
    let test = run(
        window(4),
        4 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         // RTO after a handshake of 100 ms: 100 + max(4 · 50, 200) ms.
         +300 > 0:1000
         +600 > 0:1000
         +1200 > 0:1000
         +100 < ack 1000
         +0 > 1000:2000
         +0 > 2000:3000
         +100 < ack 3000
         +0 > 3000:4000
         +100 < ack 4000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.timeouts, stats.ssthresh), (3, 2 * MSS));
}

#[test]
fn what_the_peer_holds_is_not_sent_again_after_a_timeout() {
    run(
        window(4),
        4 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +100 < ack 0 sack 2000:4000
         +200 > 0:1000
         +100 < ack 1000 sack 2000:4000
         +0 > 1000:2000
         +100 < ack 4000",
    );
}

#[test]
fn without_sack_three_duplicates_repair_the_first_and_each_partial_answer_the_next() {
    let test = run(
        TcpConfig { sack: false, ..window(6) },
        6 * MSS,
        "+0 > 0:1000
         +0 > 1000:2000
         +0 > 2000:3000
         +0 > 3000:4000
         +0 > 4000:5000
         +0 > 5000:6000
         // 0 and 2000 are lost. The first answer tells a larger window, so it is no duplicate.
         +100 < ack 0
         +0 < ack 0
         +0 < ack 0
         +0 < ack 0
         +0 > 0:1000
         +0 < ack 0
         +100 < ack 2000
         +0 > 2000:3000
         +100 < ack 6000",
    );
    let stats = test.endpoint.sender_stats();
    assert_eq!((stats.recoveries, stats.timeouts, stats.ssthresh), (1, 0, 3 * MSS));
}

#[test]
fn a_mark_halves_the_window_once_in_a_round_trip_and_is_confirmed() {
    let test = run(
        TcpConfig { ecn: true, ..window(4) },
        12 * MSS,
        "+0 > 0:1000 T
         +0 > 1000:2000 T
         +0 > 2000:3000 T
         +0 > 3000:4000 T
         +100 < ack 1000 E
         +0 < ack 2000 E
         +0 < ack 3000 E
         +0 > 4000:5000 C T
         +0 < ack 4000 E
         +0 > 5000:6000 T
         // The first of the new round trip comes without an echo.
         +100 < ack 6000
         +0 > 6000:7000 T
         +0 > 7000:8000 T
         +0 > 8000:9000 T
         +0 < R",
    );
    assert_eq!(test.endpoint.sender_stats().ecn_reductions, 1);
}
