use fontis_base::{Duration, Time};
use fontis_proto::tcp::{TcpEndpoint, TcpEvent, TcpFlags, TcpState};

use super::script::{Script, config, run_until};

fn events(script: &mut Script) -> Vec<TcpEvent> {
    core::iter::from_fn(|| script.endpoint.event()).collect()
}

#[test]
fn the_side_that_closes_first_waits_for_copies() {
    let mut test = Script::connected(config());
    test.endpoint.finish();
    let mut test = run_until(
        test,
        0,
        "+0 > ack 0 F
         +100 < ack 1
         +100 < 0:0 F ack 1
         +0 > ack 1
         // The last acknowledgement was lost.
         +200 < 0:0 F ack 1
         +0 > ack 1 sack 0:1",
    );
    assert_eq!(test.endpoint.state(), TcpState::TimeWait);
    test.now += Duration::from_secs(1);
    assert!(test.endpoint.poll(test.now).is_none());
    assert!(test.endpoint.is_closed());
    let want = [TcpEvent::Connected, TcpEvent::PeerFinished, TcpEvent::Delivered, TcpEvent::Closed];
    assert_eq!(events(&mut test), want);
}

#[test]
fn the_side_that_closes_second_is_done_with_the_last_acknowledgement() {
    let mut test =
        run_until(Script::connected(config()), 500, "+0 > 0:500\n +0 < 0:0 F\n +0 > ack 1");
    assert_eq!(test.endpoint.state(), TcpState::CloseWait);
    test.endpoint.finish();
    let test = run_until(test, 0, "+0 > ack 1 F\n +100 < seq 1 ack 501");
    assert!(test.endpoint.is_closed());
}

#[test]
fn both_sides_may_close_at_once() {
    let mut test = Script::connected(config());
    test.endpoint.finish();
    let test = run_until(test, 0, "+0 > ack 0 F\n +50 < 0:0 F\n +0 > ack 1");
    assert_eq!(test.endpoint.state(), TcpState::Closing);
    let test = run_until(test, 0, "+50 < seq 1 ack 1");
    assert_eq!(test.endpoint.state(), TcpState::TimeWait);
}

#[test]
fn the_last_segment_carries_the_fin_and_is_repeated_with_it() {
    let mut test = Script::connected(config());
    test.endpoint.finish();
    // Nothing can be written behind the end.
    test.endpoint.write(500);
    assert_eq!(test.endpoint.unacknowledged(), 0);
    let mut test = Script::connected(config());
    test.endpoint.write(1500);
    test.endpoint.finish();
    run_until(
        test,
        0,
        "+0 > 0:1000
         +0 > 1000:1500 F
         +100 < ack 1000
         +300 > 1000:1500 F
         +100 < ack 1501",
    );
}

#[test]
fn a_syn_is_repeated_ever_more_rarely_and_then_given_up() {
    let mut endpoint = TcpEndpoint::connect(Time::ZERO, config(), 7);
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    while !endpoint.is_closed() {
        while let Some(transmit) = endpoint.poll(now) {
            assert_eq!((transmit.segment.seq, transmit.segment.flags), (7, TcpFlags::SYN));
            sent.push(now.as_nanos() / 1_000_000_000);
        }
        now = endpoint.timeout().map_or(now, |(at, _)| at);
    }
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(endpoint.event(), Some(TcpEvent::Aborted));
}

#[test]
fn a_reset_counts_only_where_the_stream_stands() {
    let test = run_until(Script::connected(config()), 0, "+0 < seq 500 R");
    assert_eq!(test.endpoint.state(), TcpState::Established);
    let mut test = run_until(test, 0, "+0 < R");
    assert!(test.endpoint.is_closed());
    assert_eq!(events(&mut test), [TcpEvent::Connected, TcpEvent::Aborted]);
}

#[test]
fn an_abort_tells_the_peer() {
    let mut test = Script::connected(config());
    test.endpoint.abort();
    let test = run_until(test, 0, "+0 > ack 0 R");
    assert!(test.endpoint.is_closed());
}
