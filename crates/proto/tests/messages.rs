//! How often the symbols of messages leave, and what is told of messages.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use fontis_base::{Duration, Probability, Rate, Serializer, Stream};
use fontis_proto::dfcp::{DfcpConfig, DfcpEvent, DfcpPacket, Frame, SendOptions, wire};

use crate::pair::{Pair, Side};

/// Sends so many messages of 172 bytes over a path that loses every twentieth packet of the
/// client. Returns how many arrived, and the symbols that left for each.
fn send(count: u8, options: SendOptions) -> (usize, f64) {
    let mut pair = Pair::connected();
    let mut packets = 0;
    pair.loss = Box::new(move |_, sent| {
        packets += u64::from(sent.from == Side::Client);
        sent.from == Side::Client && packets % 20 == 0
    });
    let before = pair.client.stats().symbols_sent;
    for number in 0..count {
        pair.client.send_message(Bytes::from(vec![number; 172]), options);
        pair.run_for(Duration::from_millis(20));
    }
    pair.run_for(Duration::from_secs(5));
    let arrived = pair.events_of(Side::Server);
    let arrived =
        arrived.into_iter().filter(|event| matches!(event, DfcpEvent::Message { .. })).count();
    let symbols = pair.client.stats().symbols_sent - before;
    (arrived, symbols as f64 / f64::from(count))
}

#[test]
fn a_sparing_message_leaves_once_and_again_only_if_it_was_lost() {
    let (arrived, symbols) = send(200, SendOptions { sparing: true, ..SendOptions::default() });
    assert_eq!(arrived, 200);
    assert!((1.0..1.25).contains(&symbols), "{symbols} symbols a message");
    let (arrived, symbols) = send(200, SendOptions::default());
    assert_eq!(arrived, 200);
    assert!(symbols > 1.5, "{symbols} symbols a message: copies go with each");
}

#[test]
fn what_belongs_to_messages_travels_together() {
    let mut pair = Pair::connected();
    pair.one_way = Duration::from_millis(50);
    let mut random = fontis_base::Stream::new(0x6d65_7373, "messages");
    pair.loss = Box::new(move |_, _| random.unit() < 0.05);
    let options = SendOptions { sparing: true, ..SendOptions::default() };
    let talk = |pair: &mut Pair, count: u64| {
        for number in 0..count {
            let message = || Bytes::from(vec![number as u8; 172]);
            pair.client.send_message(message(), options);
            pair.server().send_message(message(), options);
            pair.run_for(Duration::from_millis(20));
        }
    };
    // The round trip is not known yet.
    talk(&mut pair, 100);
    let before = pair.client.stats();
    talk(&mut pair, 1000);
    let after = pair.client.stats();
    let packets = after.packets_sent - before.packets_sent;
    let bytes = after.bytes_sent - before.bytes_sent;
    // A packet for each message, and one for what the other side's messages ask for. The message
    // and its headers have 240 bytes.
    assert!(packets < 2400, "{packets} packets for a thousand messages each way");
    assert!(bytes < 380_000, "{bytes} bytes");
}

#[test]
fn messages_that_are_given_up_cost_few_packets() {
    let mut pair = Pair::connected();
    // Nothing that the client sends arrives for ten seconds.
    pair.loss = Box::new(|_, sent| sent.from == Side::Client);
    let before = pair.client.stats().packets_sent;
    for number in 0..1000_u32 {
        let deadline = Some(pair.now + Duration::from_millis(200));
        let options = SendOptions { deadline, ..SendOptions::default() };
        pair.client.send_message(Bytes::copy_from_slice(&number.to_be_bytes()), options);
        pair.run_for(Duration::from_millis(10));
    }
    let packets = pair.client.stats().packets_sent - before;
    assert!(packets < 1500, "{packets} packets for 1000 messages");
    pair.loss = Box::new(|_, _| false);
    pair.run_for(Duration::from_secs(4));
    pair.events.clear();
    pair.client.send_message(Bytes::from_static(b"after"), SendOptions::default());
    pair.run_for(Duration::from_millis(500));
    let arrived = pair.events_of(Side::Server);
    assert!(arrived.iter().any(|event| matches!(event, DfcpEvent::Message { .. })));
}

/// Frames of a side that tell of messages that were given up, their bytes, and the bytes of the
/// longest feedback.
#[derive(Default)]
struct Told {
    given_up: usize,
    bytes: usize,
    longest_feedback: usize,
}

/// Counts what the packets of `side` tell.
fn listen(pair: &mut Pair, side: Side) -> Rc<RefCell<Told>> {
    let told = Rc::<RefCell<Told>>::default();
    let counts = told.clone();
    pair.alter = Box::new(move |from, packet| {
        let DfcpPacket::Sealed { frames, .. } = packet else { return };
        let mut told = counts.borrow_mut();
        for frame in frames.iter().filter(|_| from == side) {
            match frame {
                Frame::GivenUp(_) | Frame::Abandon { .. } => {
                    told.given_up += 1;
                    told.bytes += wire::frame_len(frame);
                }
                Frame::Feedback(_) => {
                    told.longest_feedback = told.longest_feedback.max(wire::frame_len(frame));
                }
                _ => {}
            }
        }
    });
    told
}

#[test]
fn whatever_is_given_up_the_others_come_once_and_in_order() {
    for seed in 0..20 {
        let mut random = Stream::new(seed, "given up");
        let mut pair = Pair::connected();
        let told = listen(&mut pair, Side::Client);
        let mut losses = Stream::new(seed, "losses");
        let loss = Probability::new(0.5 + 0.45 * random.unit());
        pair.loss = Box::new(move |_, _| losses.chance(loss));
        let mut wanted = Vec::new();
        let mut send = |pair: &mut Pair, number: u32, may_pass: bool| {
            let ordered = random.below(2) == 0;
            let time = Duration::from_millis(20 + random.below(400));
            let is_late = may_pass && random.below(10) < 9;
            let deadline = is_late.then(|| pair.now + time);
            let options = SendOptions { ordered, deadline, ..SendOptions::default() };
            pair.client.send_message(Bytes::copy_from_slice(&number.to_be_bytes()), options);
            if !is_late {
                wanted.push((number, ordered));
            }
            pair.run_for(Duration::from_millis(10));
        };
        (0..500).for_each(|number| send(&mut pair, number, true));
        let (given_up, bytes) = (told.borrow().given_up, told.borrow().bytes);
        pair.loss = Box::new(|_, _| false);
        (500..510).for_each(|number| send(&mut pair, number, false));
        pair.run_for(Duration::from_secs(20));
        let came: Vec<u32> = pair
            .events_of(Side::Server)
            .into_iter()
            .filter_map(|event| match event {
                DfcpEvent::Message { data, .. } => {
                    Some(u32::from_be_bytes(data[..].try_into().ok()?))
                }
                _ => None,
            })
            .collect();
        let mut once = came.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), came.len(), "seed {seed}: some came twice");
        for (number, _) in &wanted {
            assert!(once.binary_search(number).is_ok(), "seed {seed}: {number} did not come");
        }
        let place = |number: &u32| came.iter().position(|one| one == number);
        let ordered = wanted.iter().filter(|(_, ordered)| *ordered);
        let places: Vec<_> = ordered.filter_map(|(number, _)| place(number)).collect();
        assert!(places.is_sorted(), "seed {seed}: not in order");
        // Those without a deadline part the runs of the others.
        println!("seed {seed}: {given_up} frames of {bytes} bytes for 500 messages");
        assert!(bytes < 60 * 500, "seed {seed}: {bytes} bytes told of 500 messages");
    }
}

#[test]
fn feedback_of_heavy_losses_is_short() {
    let mut pair = Pair::connected();
    pair.one_way = Duration::from_millis(100);
    let told = listen(&mut pair, Side::Server);
    let mut random = Stream::new(7, "losses");
    let loss = Probability::new(0.9);
    pair.loss = Box::new(move |_, sent| sent.from == Side::Client && random.chance(loss));
    for _ in 0..5000 {
        let deadline = Some(pair.now + Duration::from_secs(1));
        let options = SendOptions { deadline, ..SendOptions::default() };
        pair.client.send_message(Bytes::from_static(&[1; 60]), options);
        pair.run_for(Duration::from_millis(2));
    }
    let (sent, came) = (pair.server().stats().bytes_sent, pair.server().stats().bytes_received);
    println!("{sent} bytes told of {came}, at most {} of feedback", told.borrow().longest_feedback);
    assert!(told.borrow().longest_feedback < 200);
    assert!(sent < 2 * came, "{sent} bytes sent for {came} that came");
}

#[test]
fn an_urgent_message_overtakes_those_that_wait_and_all_come_before_the_end() {
    let mut pair = Pair::connected();
    pair.bottleneck = Some([(); 2].map(|()| Serializer::new(Rate::from_mbps(1))));
    let deadline = Some(pair.now + Duration::from_millis(300));
    for number in 0..1000_u32 {
        // Of those that may pass away, the last have not begun when their time is over.
        let deadline = deadline.filter(|_| number % 2 == 1);
        let options = SendOptions { deadline, ..SendOptions::default() };
        pair.client.send_message(Bytes::copy_from_slice(&number.to_be_bytes()), options);
    }
    pair.run_for(Duration::from_millis(20));
    let urgent = SendOptions { priority: 0, ..SendOptions::default() };
    pair.client.send_message(Bytes::copy_from_slice(&1000_u32.to_be_bytes()), urgent);
    pair.client.finish();
    pair.run_for(Duration::from_millis(200));
    pair.server().finish();
    pair.run_for(Duration::from_secs(20));
    let came: Vec<u32> = pair
        .events_of(Side::Server)
        .into_iter()
        .filter_map(|event| match event {
            DfcpEvent::Message { data, .. } => Some(u32::from_be_bytes(data[..].try_into().ok()?)),
            _ => None,
        })
        .collect();
    let place = came.iter().position(|number| *number == 1000).expect("it came");
    assert!(place < 450, "{place} came before the urgent one");
    assert!((0..1000).step_by(2).all(|number| came.contains(&number)), "{} came", came.len());
    let given_up = pair.events_of(Side::Client).into_iter();
    let given_up = given_up.filter(|event| matches!(event, DfcpEvent::Abandoned { .. })).count();
    assert!(given_up + came.len() >= 1001, "each came or was given up, or both");
    assert!(given_up > 100, "{given_up} were given up");
    assert!(pair.client.is_closed(), "both sides have finished");
}

/// Ordered messages of 20 ms over a path that loses a tenth of the client's packets. The numbers
/// of those that arrive, in their order, the longest time that one was on its way, and the count of
/// those that came after their turn.
fn talk_in_order(seed: u64, within: Option<Duration>) -> (Vec<u32>, Duration, u64) {
    let config = DfcpConfig { order_within: within, ..DfcpConfig::default() };
    let mut pair = Pair::new(DfcpConfig::default(), config, Duration::from_millis(40), None);
    pair.run_for(Duration::from_secs(1));
    let mut random = Stream::new(seed, "losses");
    pair.loss = Box::new(move |_, sent| sent.from == Side::Client && random.unit() < 0.1);
    let options = SendOptions { ordered: true, sparing: true, ..SendOptions::default() };
    let (mut begins, mut numbers, mut longest) = (Vec::new(), Vec::new(), Duration::ZERO);
    for number in 0..1100_u32 {
        if number < 1000 {
            begins.push(pair.now);
            pair.client.send_message(Bytes::copy_from_slice(&number.to_be_bytes()), options);
        }
        for _ in 0..20 {
            pair.run_for(Duration::from_millis(1));
            for (side, event) in pair.events.drain(..) {
                let (Side::Server, DfcpEvent::Message { data, .. }) = (side, event) else {
                    continue;
                };
                let number = u32::from_be_bytes(data[..].try_into().unwrap());
                // Nothing comes after the last ones that would give them up.
                if number < 990 {
                    longest = longest.max(pair.now.since(begins[number as usize]));
                }
                numbers.push(number);
            }
        }
    }
    (numbers, longest, pair.server().stats().messages_late)
}

#[test]
fn ordered_messages_wait_no_longer_than_they_may_for_those_before_them() {
    let seed = std::env::var("FONTIS_SEED").map_or(9, |seed| seed.parse().unwrap());
    let all: Vec<u32> = (0..1000).collect();
    let (numbers, patient, late) = talk_in_order(seed, None);
    assert_eq!((numbers, late), (all, 0), "seed {seed}");
    for millis in [150, 60, 5] {
        let within = Duration::from_millis(millis);
        let (numbers, longest, late) = talk_in_order(seed, Some(within));
        println!(
            "seed {seed}: {} within {millis} ms, {late} late, {} ms at most; {} with patience",
            numbers.len(),
            longest.as_millis(),
            patient.as_millis()
        );
        assert!(numbers.is_sorted(), "seed {seed}: {numbers:?}");
        assert_eq!(numbers.len() as u64 + late, 1000, "seed {seed}");
        // One that is lost is given up so long after the next has come, which itself may be lost.
        assert!(longest <= within + Duration::from_millis(40 + 5 * 20), "seed {seed}");
        assert!(millis == 5 || late < 200, "seed {seed}: {late}");
        assert!(millis == 150 || late > 20, "seed {seed}: {late}");
    }
}

#[test]
fn an_ordered_message_that_was_given_up_is_not_waited_for() {
    let within = Some(Duration::from_secs(30));
    let config = DfcpConfig { order_within: within, ..DfcpConfig::default() };
    let mut pair = Pair::new(DfcpConfig::default(), config, Duration::from_millis(40), None);
    pair.run_for(Duration::from_secs(1));
    pair.loss = Box::new(|_, sent| sent.from == Side::Client);
    let ordered = SendOptions { ordered: true, ..SendOptions::default() };
    let deadline = Some(pair.now + Duration::from_millis(100));
    pair.client.send_message(Bytes::from_static(b"first"), SendOptions { deadline, ..ordered });
    pair.run_for(Duration::from_millis(10));
    pair.loss = Box::new(|_, _| false);
    pair.client.send_message(Bytes::from_static(b"second"), ordered);
    pair.run_for(Duration::from_secs(1));
    let is_second = |event: &&DfcpEvent| match event {
        DfcpEvent::Message { data, .. } => data[..] == *b"second",
        _ => false,
    };
    assert!(pair.events_of(Side::Server).iter().any(is_second), "{:?}", pair.events);
}
