//! Links checked against what queueing theory and arithmetic say, to one percent or to the
//! nanosecond.

use fontis_base::{
    Address, Duration, FlowId, Node, Packet, PacketId, Probability, Rate, Size, Stream, Time,
};
use fontis_net::{Limit, Link, LinkConfig, QueueKind, Reorder};

const SEED: u64 = 5;

/// A packet that carries the time at which it was sent.
fn packet(sent: Time, flow: u32, size: u32) -> Packet<Time> {
    Packet {
        id: PacketId(sent.as_nanos()),
        src: Address(0),
        dst: Address(1),
        flow: FlowId(flow),
        size,
        segments: 1,
        ecn: Default::default(),
        corrupt: false,
        class: 0,
        payload: sent,
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn link(config: LinkConfig) -> Link<Time> {
    Link::new("test", SEED, config)
}

/// Runs the link until nothing more comes; due times and packets.
fn drain(link: &mut Link<Time>) -> Vec<(Time, Packet<Time>)> {
    core::iter::from_fn(|| link.deliver(Time::MAX)).map(|d| (d.at, d.packet)).collect()
}

#[test]
fn a_packet_takes_its_serialisation_and_the_delay() {
    let mut link =
        link(LinkConfig { rate: Rate::from_mbps(100), delay: ms(50), ..Default::default() });
    link.handle(at(3), 0, packet(at(3), 0, 1250));
    // 10 000 bits at 100 Mbit/s take 100 µs.
    let due = at(53) + Duration::from_micros(100);
    assert_eq!(link.timeout(), Some((due, "delivery")));
    assert!(link.poll(due - Duration::from_nanos(1)).is_none());
    assert_eq!(link.poll(due).map(|(port, _)| port), Some(0));
    assert_eq!(link.timeout(), None);
}

#[test]
fn a_backlog_leaves_at_the_rate_of_the_line_to_the_nanosecond() {
    // 1500 B at 7 Mbit/s are 12000/7 µs: seven of them are 12 ms, and roundings must not add up.
    let mut link = link(LinkConfig { rate: Rate::from_mbps(7), ..Default::default() });
    for _ in 0..7_000 {
        link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1500));
    }
    let deliveries = drain(&mut link);
    for (i, (due, _)) in deliveries.iter().enumerate() {
        assert_eq!(due.as_nanos(), (i as u64 + 1) * 12_000_000 / 7, "packet {i}");
    }
}

#[test]
fn a_late_driver_changes_no_due_time() {
    let config = LinkConfig { rate: Rate::from_mbps(10), delay: ms(5), ..Default::default() };
    let run = |lateness: Duration| {
        let mut link = link(config.clone());
        for i in 0..100 {
            let now = at(i);
            link.handle(now, 0, packet(now, 0, 1500));
        }
        let mut due = Vec::new();
        while let Some((wake, _)) = link.timeout() {
            while let Some(delivery) = link.deliver(wake + lateness) {
                due.push(delivery.at);
            }
        }
        due
    };
    assert_eq!(run(ms(0)), run(ms(17)));
}

#[test]
fn bytes_in_flight_do_not_count_against_the_buffer() {
    // Two packets of buffer, a second of propagation: a hundred packets at half the line's rate all
    // pass.
    let mut link = link(LinkConfig {
        rate: Rate::from_mbps(12),
        delay: ms(1000),
        buffer: "2 packets".parse().unwrap(),
        ..Default::default()
    });
    for i in 0..100 {
        let now = at(2 * i);
        link.handle(now, 0, packet(now, 0, 1500));
    }
    assert_eq!(link.stats().held.packets, 100);
    assert_eq!(drain(&mut link).len(), 100);
}

#[test]
fn a_packet_that_no_buffer_holds_leaves_nothing_to_wait_for() {
    for queue in [QueueKind::Fifo, QueueKind::Drr, QueueKind::Las] {
        let buffer = Limit::Bytes(Size::from_bytes(2000));
        let rate = Rate::from_mbps(1);
        // All are held back: none in order says when the next is due.
        let reorder =
            Reorder { probability: Probability::new(1.0), by: ms(10), ..Default::default() };
        let mut link = link(LinkConfig { rate, queue, buffer, reorder, ..Default::default() });
        // The first is on the line, the second waits, and the third may push it out.
        for (flow, size) in [(0, 1500), (0, 1500), (1, 2001)] {
            link.handle(Time::ZERO, 0, packet(Time::ZERO, flow, size));
        }
        let mut delivered = 0;
        while let Some(at) = link.next_delivery() {
            assert_eq!(link.timeout().map(|(wake, _)| wake <= at), Some(true), "{queue}");
            delivered += usize::from(link.deliver(at).is_some());
        }
        assert_eq!((delivered, link.queue_len()), (link.stats().delivered.packets as usize, 0));
        assert_eq!(link.timeout(), None, "{queue}");
    }
}

#[test]
fn waiting_times_of_poisson_arrivals_are_those_of_m_d_1() {
    let rate = Rate::from_mbps(100);
    let service = rate.time_for(1250).as_secs_f64();
    for load in [0.5, 0.8] {
        let mut link = link(LinkConfig { rate, delay: ms(20), ..Default::default() });
        let mut stream = Stream::new(SEED, "test/arrivals");
        let mut now = 0.0;
        let mut waited = 0.0;
        let packets = 4_000_000;
        for _ in 0..packets {
            now += -libm::log(1.0 - stream.unit()) * service / load;
            let sent = Time::ZERO + Duration::from_secs_f64(now);
            link.handle(sent, 0, packet(sent, 0, 1250));
            while let Some(delivery) = link.deliver(sent) {
                waited += delivery.at.since(delivery.packet.payload).as_secs_f64() - 0.020;
            }
        }
        for (due, packet) in drain(&mut link) {
            waited += due.since(packet.payload).as_secs_f64() - 0.020;
        }
        let mean = waited / f64::from(packets) - service;
        // Pollaczek and Khinchine, with constant service: W = ρ/(2(1−ρ)) · service.
        let want = load / (2.0 * (1.0 - load)) * service;
        assert!(
            (mean / want - 1.0).abs() < 0.01,
            "seed {SEED}: load {load}: {mean} s, not {want} s"
        );
    }
}

#[test]
fn a_scheduled_rate_holds_from_the_first_packet_that_begins_under_it() {
    let mut link = link(LinkConfig {
        rate: Rate::from_mbps(100),
        rate_changes: fontis_net::Schedule::new(["10ms:10mbit".parse().unwrap()]),
        ..Default::default()
    });
    for _ in 0..200 {
        link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1250));
    }
    let due: Vec<Time> = drain(&mut link).into_iter().map(|(due, _)| due).collect();
    assert_eq!(due[99], at(10));
    assert_eq!(due[100], at(11));
    assert_eq!(due[199], at(110));
}

#[test]
fn a_trace_carries_1500_bytes_at_each_of_its_times() {
    // An opportunity every 3 ms: 4 Mbit/s.
    let mut link = link(LinkConfig {
        trace: Some("3\n6\n9\n".parse().unwrap()),
        delay: ms(1),
        ..Default::default()
    });
    assert_eq!(link.rate(), Rate::from_mbps(4));
    for _ in 0..100 {
        link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1500));
    }
    // Half an opportunity is left over for whoever waits, not for who comes later.
    link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 750));
    link.handle(at(303), 0, packet(at(303), 0, 750));
    link.handle(at(305), 0, packet(at(305), 0, 750));
    let due: Vec<Time> = drain(&mut link).into_iter().map(|(due, _)| due).collect();
    let full: Vec<Time> = (1..=100).map(|number| at(3 * number + 1)).collect();
    assert_eq!(due[..100], full);
    assert_eq!(due[100..], [at(304), at(304), at(307)]);
}

#[test]
fn a_scheduled_delay_holds_for_what_leaves_the_line_after_it() {
    let mut link = link(LinkConfig {
        delay: ms(10),
        delay_changes: fontis_net::DelaySchedule::new(
            ["100ms:50ms", "200ms:5ms"].map(|text| text.parse().unwrap()),
        ),
        ..Default::default()
    });
    for sent in [0, 99, 100, 199, 200, 260] {
        link.handle(at(sent), 0, packet(at(sent), 0, 1250));
    }
    let due: Vec<Time> = drain(&mut link).into_iter().map(|(due, _)| due).collect();
    // The fifth would be there at 205, before the fourth, which it does not overtake.
    assert_eq!(due, [10, 109, 150, 249, 249, 265].map(at));
}

#[test]
fn a_line_that_stands_still_goes_on_when_its_rate_returns() {
    let mut link = link(LinkConfig {
        rate: Rate::from_mbps(10),
        rate_changes: fontis_net::Schedule::new(
            ["5ms:0", "50ms:10mbit"].map(|text| text.parse().unwrap()),
        ),
        ..Default::default()
    });
    for _ in 0..6 {
        link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1250));
    }
    let due: Vec<u64> =
        drain(&mut link).into_iter().map(|(due, _)| due.as_nanos() / 1_000_000).collect();
    assert_eq!(due, [1, 2, 3, 4, 5, 51]);
}

#[test]
fn a_rate_set_by_hand_holds_from_then_on() {
    let mut link = link(LinkConfig { rate: Rate::from_mbps(10), ..Default::default() });
    for _ in 0..6 {
        link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1250));
    }
    // The third packet is on the line, and is finished at the old rate.
    link.set_rate(at(2) + Duration::from_micros(500), Rate::ZERO);
    assert_eq!(link.timeout(), Some((at(1), "delivery")));
    link.set_rate(at(50), Rate::from_mbps(1));
    let due: Vec<u64> =
        drain(&mut link).into_iter().map(|(due, _)| due.as_nanos() / 1_000_000).collect();
    assert_eq!(due, [1, 2, 3, 60, 70, 80]);
}

#[test]
fn drr_shares_the_line_equally_and_hands_unused_shares_on() {
    // Three flows overload 12 Mbit/s; a fourth takes 1 Mbit/s, less than its share.
    let mut link = link(LinkConfig {
        rate: Rate::from_mbps(12),
        queue: QueueKind::Drr,
        buffer: "60kB".parse().unwrap(),
        ..Default::default()
    });
    let mut bytes = [0u64; 4];
    let mut count = |delivery: fontis_net::Delivery<Time>| {
        bytes[delivery.packet.flow.0 as usize] += u64::from(delivery.packet.size);
    };
    for i in 0..20_000u64 {
        let now = at(i);
        link.handle(now, 0, packet(now, 0, 1500));
        link.handle(now, 0, packet(now, 1, 800));
        link.handle(now, 0, packet(now, 2, 1100));
        link.handle(now, 0, packet(now, 3, 125));
        while let Some(delivery) = link.deliver(now) {
            count(delivery);
        }
    }
    // Max–min: 1 Mbit/s to the modest flow, (12 − 1)/3 to each of the others.
    for (flow, bytes) in bytes.into_iter().enumerate() {
        let mbps = bytes as f64 * 8e-6 / 20.0;
        let want = if flow == 3 { 1.0 } else { 11.0 / 3.0 };
        assert!((mbps / want - 1.0).abs() < 0.01, "flow {flow}: {mbps} Mbit/s, not {want}");
    }
}

#[test]
fn jitter_is_uniform_when_packets_are_far_apart_and_keeps_their_order_when_they_are_not() {
    let config = LinkConfig { delay: ms(10), jitter: ms(5), ..Default::default() };
    let mut sparse = link(config.clone());
    let packets = 100_000;
    for i in 0..packets {
        sparse.handle(at(10 * i), 0, packet(at(10 * i), 0, 100));
    }
    let deliveries = drain(&mut sparse);
    let mean = deliveries.iter().map(|(due, p)| due.since(p.payload).as_secs_f64()).sum::<f64>()
        / packets as f64;
    assert!((mean / 0.0125 - 1.0).abs() < 0.01, "seed {SEED}: mean delay {mean} s");

    let mut dense = link(config);
    for i in 0..10_000 {
        let now = Time::ZERO + Duration::from_micros(i);
        dense.handle(now, 0, packet(now, 0, 100));
    }
    let sent: Vec<Time> = drain(&mut dense).into_iter().map(|(_, p)| p.payload).collect();
    assert!(sent.is_sorted());
}

#[test]
fn a_reordered_packet_is_overtaken_by_those_sent_within_its_holding_time() {
    let mut link = link(LinkConfig {
        delay: ms(20),
        reorder: "2%:10ms".parse().unwrap(),
        ..Default::default()
    });
    for i in 0..50_000 {
        link.handle(at(i), 0, packet(at(i), 0, 100));
    }
    let deliveries = drain(&mut link);
    assert!(deliveries.iter().map(|(due, _)| *due).is_sorted());
    let late = deliveries.iter().filter(|(due, p)| due.since(p.payload) == ms(30)).count() as u64;
    let on_time = deliveries.iter().filter(|(due, p)| due.since(p.payload) == ms(20)).count();
    assert_eq!(late, link.stats().reordered);
    assert_eq!(late as usize + on_time, 50_000);
    // Four standard deviations of a binomial.
    assert!((late as f64 - 1000.0).abs() < 4.0 * (1000.0f64 * 0.98).sqrt(), "seed {SEED}: {late}");
}

#[test]
fn losses_come_before_the_queue_or_after_the_line() {
    let run = |position: &str| {
        let mut link = link(LinkConfig {
            rate: Rate::from_mbps(1),
            loss: "50%".parse().unwrap(),
            loss_position: position.parse().unwrap(),
            ..Default::default()
        });
        for _ in 0..1000 {
            link.handle(Time::ZERO, 0, packet(Time::ZERO, 0, 1250));
        }
        let deliveries = drain(&mut link);
        let last = deliveries.last().unwrap().0;
        (deliveries.len() as u64, last.as_nanos() / 10_000_000)
    };
    // A packet takes 10 ms. Before the queue, only what passes takes time; after the line, all
    // does.
    let (passed, slots) = run("before");
    assert_eq!(passed, slots);
    let (passed, slots) = run("after");
    assert!(slots > 900 && passed < 600, "seed {SEED}: {passed} in {slots}");
}

#[test]
fn a_change_of_queue_leaves_the_losses_as_they_were() {
    let run = |queue: QueueKind| {
        let mut link =
            link(LinkConfig { queue, loss: "10%".parse().unwrap(), ..Default::default() });
        for i in 0..1000 {
            link.handle(at(i), 0, packet(at(i), (i % 3) as u32, 1250));
        }
        drain(&mut link).into_iter().map(|(_, p)| p.id).collect::<Vec<_>>()
    };
    assert_eq!(run(QueueKind::Fifo), run(QueueKind::Drr));
}

#[test]
fn copies_follow_their_originals_under_new_ids() {
    let mut link = link(LinkConfig { duplicate: "100%".parse().unwrap(), ..Default::default() });
    for i in 0..100 {
        link.handle(at(i), 0, packet(at(i), 0, 1250));
    }
    let deliveries = drain(&mut link);
    let mut ids: Vec<PacketId> = deliveries.iter().map(|(_, p)| p.id).collect();
    assert!(deliveries.chunks(2).all(|pair| pair[0].1.payload == pair[1].1.payload));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 200);
}

#[test]
fn the_occupancy_of_a_queue_obeys_little_s_law() {
    // Every packet's waiting time is summed at the far end; the mean occupancy must be rate of
    // arrivals times mean wait.
    let rate = Rate::from_mbps(100);
    let service = rate.time_for(1250).as_secs_f64();
    let mut link = link(LinkConfig { rate, ..Default::default() });
    let mut stream = Stream::new(SEED, "test/arrivals");
    let (mut now, mut waited, mut packets) = (0.0, 0.0, 0u32);
    for _ in 0..200_000 {
        now += -libm::log(1.0 - stream.unit()) * service / 0.9;
        let sent = Time::ZERO + Duration::from_secs_f64(now);
        link.handle(sent, 0, packet(sent, 0, 1250));
        while let Some(delivery) = link.deliver(sent) {
            waited += delivery.at.since(delivery.packet.payload).as_secs_f64() - service;
            packets += 1;
        }
    }
    let end = Time::ZERO + Duration::from_secs_f64(now + 1.0);
    while let Some(delivery) = link.deliver(end) {
        waited += delivery.at.since(delivery.packet.payload).as_secs_f64() - service;
        packets += 1;
    }
    let stats = link.observe(end);
    let summed = stats.queue_packet_nanos as f64 * 1e-9;
    assert_eq!(packets, 200_000);
    assert!((summed / waited - 1.0).abs() < 1e-4, "{summed} s, not {waited} s");
    assert_eq!(stats.queue_byte_nanos, stats.queue_packet_nanos * 1250);
}
