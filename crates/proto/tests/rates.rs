//! How fast a connection sends: limits, what an earlier connection found out, pauses, and hosts
//! that are late.

use bytes::Bytes;
use fontis_base::{Duration, Rate, Serializer, Stream};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    CloseReason, DfcpConfig, DfcpEvent, DfcpPacket, Frame, KnownPath, ObjectShape, SendOptions,
    wire,
};
use fontis_proto::rate::RateKind;

use crate::pair::{Pair, Side};

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Bytes at the IP layer of the data packets that the client sent in the last `span`, as a rate.
fn data_rate(pair: &Pair, span: Duration) -> Rate {
    let data = pair.sent.iter().filter(|sent| {
        let is_data = |frames: &[Frame]| frames.iter().any(|f| matches!(f, Frame::Symbols(_)));
        sent.from == Side::Client
            && sent.at + span > pair.now
            && matches!(&sent.packet, DfcpPacket::Sealed { frames, .. } if is_data(frames))
    });
    let bytes: u64 = data.map(|sent| u64::from(sent.size)).sum();
    Rate::from_bps(bytes * 8_000_000 / span.as_micros())
}

#[test]
fn limits_of_either_side_hold_within_two_percent_and_pause() {
    let mut pair = Pair::connected();
    let message = pair.client.send_message(vec![1; 60_000_000].into(), SendOptions::default());
    let holds = |pair: &mut Pair, ours: Option<Rate>, theirs: Option<Rate>| {
        let now = pair.now;
        pair.client.limit(now, ours);
        pair.server().limit_peer(now, theirs);
        // What was told is on its way, and what was sent faster is paid for.
        pair.run_for(millis(100));
        pair.run_for(Duration::from_secs(4));
        data_rate(pair, Duration::from_secs(4))
    };
    let within = |rate: Rate, limit: Rate| {
        let off = rate.as_bps() as f64 / limit.as_bps() as f64 - 1.0;
        assert!(off.abs() < 0.02, "{rate} where the limit is {limit}");
    };
    let [slow, fast] = [Rate::from_mbps(3), Rate::from_mbps(17)];
    within(holds(&mut pair, Some(slow), None), slow);
    within(holds(&mut pair, Some(slow), Some(fast)), slow);
    within(holds(&mut pair, Some(fast), Some(slow)), slow);
    within(holds(&mut pair, None, Some(fast)), fast);
    assert_eq!(holds(&mut pair, Some(Rate::ZERO), None), Rate::ZERO);
    // Longer than an idle connection is kept.
    assert_eq!(holds(&mut pair, None, Some(Rate::ZERO)), Rate::ZERO);
    pair.run_for(Duration::from_secs(300));
    assert!(pair.client.is_established() && pair.server().is_established());
    within(holds(&mut pair, None, Some(fast)), fast);
    holds(&mut pair, None, None);
    let all = DfcpEvent::Delivered { channel: message };
    assert!(pair.events_of(Side::Client).contains(&&all), "nothing holds the rest back");
}

#[test]
fn on_fast_paths_the_frames_of_objects_are_whole_blocks_of_the_cipher() {
    for (mbps, is_fast) in [(1000, false), (10_000, true)] {
        let rate = RateKind::Fixed(Rate::from_mbps(mbps));
        let config = DfcpConfig { rate, ..DfcpConfig::default() };
        let mut pair = Pair::new(config, DfcpConfig::default(), millis(1), None);
        pair.run_for(millis(10));
        let shape = ObjectShape::partition(800_000, 1192, Code::RaptorQ);
        let now = pair.now;
        let channel = pair.client.send_object(now, shape, Bytes::new(), SendOptions::default());
        pair.run_for(millis(50));
        assert!(pair.client.supply_block(channel.unwrap(), 0, vec![5; 800_000].into()));
        pair.run_for(millis(50));
        let lengths = pair.sent.iter().filter_map(|sent| match &sent.packet {
            DfcpPacket::Sealed { frames, .. } => match &frames[..] {
                [Frame::Symbols(symbols)] if symbols.len >= 1192 => Some(wire::frames_len(frames)),
                _ => None,
            },
            _ => None,
        });
        let lengths: Vec<_> = lengths.collect();
        assert!(lengths.len() > 600, "{lengths:?}");
        assert!(lengths.iter().all(|len| (len % 16 == 0) == is_fast), "{mbps} Mbit/s: {lengths:?}");
    }
}

#[test]
fn a_limit_that_was_overtaken_is_ignored() {
    let mut pair = Pair::connected();
    // The first limit is lost; its copy comes after the second.
    let mut first = true;
    pair.loss = Box::new(move |_, sent| {
        let is_limit = |f: &Frame| matches!(f, Frame::Limit { sequence: 1, .. });
        let lost = first
            && matches!(&sent.packet, DfcpPacket::Sealed { frames, .. } if frames.iter().any(is_limit));
        first &= !lost;
        lost
    });
    let now = pair.now;
    pair.server().limit_peer(now, Some(Rate::ZERO));
    pair.run_for(millis(5));
    let now = pair.now;
    pair.server().limit_peer(now, None);
    pair.run_for(millis(500));
    pair.client.send_message(vec![1; 100_000].into(), SendOptions::default());
    pair.run_for(Duration::from_secs(2));
    assert!(pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })));
}

/// A client that asks with its first packet, a server that knows the path (100 ms there and back)
/// from before.
fn recalled(rate: Option<Rate>, token: Option<&'static [u8]>) -> Pair {
    let known = Some(KnownPath { rate, rtt: Some(millis(100)) });
    let next = Some(Bytes::from_static(b"the next"));
    let server = DfcpConfig { rate: RateKind::Auto, known, token: next, ..DfcpConfig::default() };
    let client = DfcpConfig { token: token.map(Bytes::from_static), ..server.clone() };
    let mut pair =
        Pair::new(DfcpConfig { known: None, ..client }, server, millis(50), Some(b"ask"));
    pair.run_for(millis(50));
    let asked = |event: &&DfcpEvent| matches!(event, DfcpEvent::Message { early: true, .. });
    assert!(pair.events_of(Side::Server).iter().any(asked), "it may be a replay all the same");
    pair.server().send_message(vec![1; 1_000_000].into(), SendOptions::default());
    pair
}

#[test]
fn a_receiver_that_reports_twice_what_came_is_not_sent_more() {
    let capacity = Rate::from_mbps(20);
    let auto = DfcpConfig { rate: RateKind::Auto, ..DfcpConfig::default() };
    let mut pair = Pair::new(auto.clone(), auto, millis(20), None);
    pair.bottleneck = Some([capacity; 2].map(Serializer::new));
    pair.alter = Box::new(|side, packet| {
        let DfcpPacket::Sealed { frames, .. } = packet else { return };
        if side == Side::Server {
            for frame in frames.iter_mut() {
                if let Frame::Feedback(feedback) = frame {
                    feedback.bytes *= 2;
                    feedback.packets *= 2;
                }
            }
        }
    });
    pair.run_for(millis(200));
    pair.client.send_message(vec![1; 100_000_000].into(), SendOptions::default());
    pair.run_for(Duration::from_secs(12));
    let rate = data_rate(&pair, Duration::from_secs(6));
    let share = rate.as_bps() as f64 / capacity.as_bps() as f64;
    let stats = pair.client.stats();
    assert!((0.85..1.1).contains(&share), "{rate} over {capacity}");
    assert!(stats.srtt < millis(80), "a queue stands: {stats:?}");
}

#[test]
fn a_known_path_is_begun_with_half_of_its_rate() {
    let mut pair = recalled(Some(Rate::from_mbps(100)), Some(b"shown"));
    let shown = pair.sent.iter().any(|sent| match &sent.packet {
        DfcpPacket::Syn { hello, .. } => hello.frames.contains(&Frame::Token(b"shown"[..].into())),
        _ => false,
    });
    assert!(shown);
    // A round trip at half of the known rate, and the rest of a megabyte at the rate found then.
    pair.run_for(millis(50 + 170));
    let has = |pair: &Pair, wanted: fn(&DfcpEvent) -> bool| {
        pair.events_of(Side::Client).into_iter().any(wanted)
    };
    assert!(has(&pair, |e| matches!(e, DfcpEvent::Message { .. })), "{:?}", pair.client.stats());
    assert!(has(&pair, |e| matches!(e, DfcpEvent::Token { token } if token == "the next")));
    assert!(pair.server().is_established());
    let stats = pair.server().stats();
    assert!(stats.symbols_sent < stats.symbols_needed * 5 / 4, "{stats:?}");
}

#[test]
fn a_first_flight_is_bounded_by_what_the_path_is_known_to_hold() {
    let mut pair = recalled(Some(Rate::from_mbps(20)), None);
    assert!(!pair.server().is_established(), "its keys are not proved");
    // The client was never there.
    pair.loss = Box::new(|_, _| true);
    pair.run_for(Duration::from_secs(20));
    assert!(!pair.server().is_established());
    let sent = pair.server().stats().bytes_sent;
    let most = Rate::from_mbps(10).bytes_in(millis(210)) + 24 * 1500 + 30_000;
    assert!(sent > 200_000 && sent < most, "{sent} bytes, {most} expected at most");
    pair.run_for(Duration::from_secs(100));
    let timeout = DfcpEvent::Closed(CloseReason::IdleTimeout);
    assert!(pair.events_of(Side::Server).contains(&&timeout));
}

#[test]
fn a_path_of_which_nothing_is_known_is_measured_even_if_the_address_is_proved() {
    let mut pair = recalled(None, None);
    pair.run_for(millis(50));
    assert!(pair.server().stats().data_packets_sent > 0, "in the first round trip");
    pair.run_for(Duration::from_secs(2));
    let arrived = pair.events_of(Side::Client);
    assert!(arrived.iter().any(|event| matches!(event, DfcpEvent::Message { .. })));
}

#[test]
fn a_rate_at_which_a_queue_is_emptied_is_not_what_the_path_is_known_to_carry() {
    // With some round trips a round ends meanwhile, with others none does.
    for one_way in 50..57 {
        let config = DfcpConfig { rate: RateKind::Auto, ..DfcpConfig::default() };
        let mut pair = Pair::new(config.clone(), config, millis(one_way), None);
        pair.bottleneck = Some([0; 2].map(|_| Serializer::new(Rate::from_mbps(100))));
        pair.run_for(millis(200));
        pair.client.send_message(vec![1; 60_000_000].into(), SendOptions::default());
        pair.run_for(Duration::from_secs(1));
        let mut slowest = Rate::from_mbps(100);
        while !pair.events_of(Side::Server).iter().any(|e| matches!(e, DfcpEvent::Message { .. })) {
            pair.run_for(millis(5));
            slowest = slowest.min(pair.client.stats().rate);
            let known = pair.client.known_path().rate.unwrap();
            assert!(known > Rate::from_mbps(80), "{one_way} ms: {known}");
        }
        assert!(slowest < Rate::from_mbps(60), "{one_way} ms: no queue was emptied: {slowest}");
    }
}

#[test]
fn a_sender_that_has_nothing_to_send_for_a_moment_keeps_its_rate() {
    let known =
        KnownPath { rate: Some(Rate::from_mbps(500)), rtt: Some(Duration::from_micros(200)) };
    let server = DfcpConfig { rate: RateKind::Auto, known: Some(known), ..DfcpConfig::default() };
    let mut pair = Pair::new(DfcpConfig::default(), server, Duration::from_micros(100), None);
    pair.run_for(millis(10));
    let stream = pair.server().open_stream(SendOptions::default());
    // Some milliseconds' worth each time, so that the last packet leaves at any moment between two
    // feedbacks.
    for len in (150_000..350_000).step_by(700) {
        pair.server().write(stream, vec![1; len].into());
        pair.run_for(millis(20));
        let now = pair.now;
        while pair.client.read(now, stream).is_some() {}
        let rate = pair.server().stats().rate;
        assert!(rate > Rate::from_mbps(250), "{rate} after {len} bytes");
    }
}

#[test]
fn a_host_that_is_always_late_finds_its_rate_all_the_same() {
    // The last is the timer of Windows.
    for tick in [1, 5, 10, 16] {
        let config = DfcpConfig { rate: RateKind::Auto, ..DfcpConfig::default() };
        let mut pair = Pair::new(config.clone(), config, millis(20), None);
        pair.tick = millis(tick);
        pair.run_for(millis(200));
        pair.client.send_message(vec![1; 40_000_000].into(), SendOptions::default());
        pair.run_for(Duration::from_secs(1));
        let arrived = |event: &&DfcpEvent| matches!(event, DfcpEvent::Message { .. });
        let stats = pair.client.stats();
        assert!(pair.events_of(Side::Server).iter().any(arrived), "{tick} ms: {stats:?}");
    }
}

/// Lets a server send over a path of 0.2 ms whose hosts both pause for longer than that, again and
/// again, as where more threads than processors want to run. Pauses in milliseconds, and the time
/// between them. How long it takes, and the least rate that it sends at.
fn sends_between(pauses: [u64; 6], apart: u64, known: Option<Rate>) -> (Duration, Rate) {
    let known = KnownPath { rate: known, rtt: Some(Duration::from_micros(200)) };
    let server = DfcpConfig { rate: RateKind::Auto, known: Some(known), ..DfcpConfig::default() };
    let mut pair = Pair::new(DfcpConfig::default(), server, Duration::from_micros(100), None);
    pair.run_for(millis(3));
    pair.server().send_message(vec![1; 60_000_000].into(), SendOptions::default());
    let (begin, mut least) = (pair.now, pair.server().stats().rate);
    for pause in pauses.into_iter().cycle() {
        pair.run_for(millis(apart));
        let delivered = |event: &&DfcpEvent| matches!(event, DfcpEvent::Delivered { .. });
        if pair.events_of(Side::Server).iter().any(delivered) {
            break;
        }
        pair.now += millis(pause);
        least = least.min(pair.server().stats().rate);
    }
    (pair.now.since(begin), least)
}

#[test]
fn pauses_of_hosts_do_not_end_the_start_on_a_short_path() {
    let (took, _) = sends_between([5, 2, 6, 3, 4, 1], 4, None);
    assert!(took < millis(150), "{} µs", took.as_micros());
}

#[test]
fn pauses_of_hosts_do_not_slow_a_short_path_down() {
    let known = Rate::from_mbps(2000);
    let (took, least) = sends_between([15, 2, 6, 3, 4, 1], 1, Some(known));
    assert!(least > Rate::from_mbps(1000), "{least} in {} µs", took.as_micros());
}

#[test]
fn small_messages_say_nothing_about_the_rate_of_what_is_larger() {
    let seed = std::env::var("FONTIS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = Stream::new(seed, "small messages");
    for _ in 0..6 {
        let mbps = 10 + random.below(90);
        let one_way = Duration::from_micros(100 + random.below(20_000));
        println!("seed {seed}: {mbps} Mbit/s, {one_way:?} each way");
        let config = DfcpConfig { max_packet_size: 1500, ..DfcpConfig::default() };
        let mut pair = Pair::new(config.clone(), config, one_way, None);
        pair.bottleneck = Some([0; 2].map(|_| Serializer::new(Rate::from_mbps(mbps))));
        pair.run_for(millis(200));
        // The time of a large message, and the least rate at which it is sent.
        let send = |pair: &mut Pair| {
            let begin = pair.now;
            let options = SendOptions::default();
            let channel = pair.client.send_message(vec![1; 4_000_000].into(), options);
            let all = DfcpEvent::Delivered { channel };
            let mut least = pair.client.stats().rate;
            while !pair.events_of(Side::Client).contains(&&all) {
                pair.run_for(millis(1));
                least = least.min(pair.client.stats().rate);
                assert!(pair.now.since(begin) < Duration::from_secs(30), "it stands still");
            }
            (pair.now.since(begin).as_secs_f64(), least.as_mbps_f64() / mbps as f64)
        };
        send(&mut pair);
        let (before, _) = send(&mut pair);
        for _ in 0..1000 {
            let bytes = 10 + random.below(100) as usize;
            for _ in 0..1 + random.below(6) {
                pair.client.send_message(vec![2; bytes].into(), SendOptions::default());
                pair.run_for(Duration::from_micros(random.below(5_000)));
            }
            pair.run_for(Duration::from_micros(random.below(40_000)));
        }
        let (after, least) = send(&mut pair);
        let times = after / before;
        println!("{times:.2} times as long, at {least:.2} of the path's rate at least");
        // A queue is emptied at .4 of the rate.
        assert!(times < 1.25 && least > 0.3, "{times:.2} times as long, {least:.2}");
    }
}
