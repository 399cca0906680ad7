//! Nothing vanishes on a link, whatever its configuration, its load and its driver's lateness.

use fontis_base::{
    Address, Duration, Ecn, FlowId, Node, Observer, Packet, PacketId, Probability, Rate, Size, Time,
};
use fontis_net::{
    DelayChange, DelaySchedule, DeliveryTrace, Limit, Link, LinkConfig, Loss, LossPosition, Outage,
    Policer, QueueKind, RateChange, Reorder, Schedule,
};
use proptest::prelude::*;

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), 0.0..0.3, Just(1.0)].prop_map(Probability::new)
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0u64..20_000_000].prop_map(Duration::from_nanos)
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![Just(u64::MAX), Just(0), 100_000u64..1_000_000_000].prop_map(Rate::from_bps)
}

fn loss() -> impl Strategy<Value = Loss> {
    let four = (probability(), probability(), probability(), probability());
    (0..4, four).prop_map(|(model, (p, q, good, bad))| match model {
        0 => Loss::None,
        1 => Loss::Bernoulli(p),
        2 => Loss::Gilbert { p, q },
        _ => Loss::GilbertElliott { p, q, good, bad },
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::UNLIMITED),
        (0u64..50_000).prop_map(|bytes| Limit::Bytes(Size::from_bytes(bytes))),
        (0u64..50).prop_map(Limit::Packets),
    ]
}

fn trace() -> impl Strategy<Value = DeliveryTrace> {
    prop::collection::vec(1u64..40, 1..30).prop_map(|mut opportunities| {
        opportunities.sort_unstable();
        DeliveryTrace::new(opportunities).expect("they are in order")
    })
}

prop_compose! {
    fn config()(
        rate in rate(),
        changes in prop::collection::vec((span(), rate()), 0..4),
        trace in prop::option::weighted(0.3, trace()),
        delay in span(),
        delays in prop::collection::vec((span(), span()), 0..3),
        queue in 0..QueueKind::ALL.len(),
        (buffer, per_flow) in (limit(), any::<bool>()),
        (loss, after) in (loss(), any::<bool>()),
        outage in prop::option::of((span(), span(), span())),
        (duplicate, corrupt, jitter) in (probability(), probability(), span()),
        (reordered, by) in (probability(), span()),
        policer in prop::option::of((rate(), 0u64..10_000)),
    ) -> LinkConfig {
        LinkConfig {
            rate,
            rate_changes: Schedule::new(
                changes.into_iter().map(|(at, rate)| RateChange { at: Time::ZERO + at, rate }),
            ),
            trace,
            delay,
            delay_changes: DelaySchedule::new(
                delays.into_iter().map(|(at, delay)| DelayChange { at: Time::ZERO + at, delay }),
            ),
            queue: QueueKind::ALL[queue].1,
            queue_options: fontis_net::QueueOptions { per_flow, ..Default::default() },
            buffer,
            loss,
            loss_position: if after { LossPosition::AfterLine } else { LossPosition::BeforeQueue },
            outage: outage.map(|(at, length, every)| {
                Outage::repeated(Time::ZERO + at, length, every)
            }),
            duplicate,
            corrupt,
            jitter,
            reorder: Reorder { probability: reordered, by, ..Reorder::default() },
            policer: policer.map(|(rate, burst)| Policer { rate, burst: Size::from_bytes(burst) }),
        }
    }
}

/// An arrival: how long after the last one, its flow, its size.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    prop::collection::vec((prop_oneof![Just(0), 0u64..2_000_000], 0u32..4, 20u32..9000), 0..200)
}

/// Counts drops and checks that they are told in the order of their times.
#[derive(Default)]
struct Drops {
    count: u64,
    last: Time,
}

impl<P> Observer<P> for Drops {
    fn dropped(&mut self, now: Time, element: &str, _: &Packet<P>, _: &'static str) {
        assert_eq!(element, "test");
        assert!(now >= self.last, "{now} after {}", self.last);
        self.last = now;
        self.count += 1;
    }
}

fn packet(id: u64, flow: u32, size: u32) -> Packet<()> {
    Packet {
        id: PacketId(id),
        src: Address(0),
        dst: Address(1),
        flow: FlowId(flow),
        size,
        segments: 1,
        ecn: if flow == 0 { Ecn::Ect0 } else { Ecn::NotEct },
        corrupt: false,
        class: (flow % 2) as u8,
        payload: (),
    }
}

fn assert_conserved(link: &Link<(), Drops>) {
    let stats = link.stats();
    let out = stats.delivered + stats.dropped.total() + stats.held;
    assert_eq!(stats.entered + stats.duplicated, out, "{stats:?}");
    // What should be held is really there.
    assert_eq!(stats.held.packets, (link.queue_len() + link.flight_len()) as u64, "{stats:?}");
    assert_eq!(stats.dropped.total().packets, link.observer().count);
    assert_eq!(stats.queue_bytes, link.queue_bytes());
    assert!(stats.queue_bytes <= stats.held.bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_enters_is_delivered_dropped_or_held(
        config in config(), seed: u64, arrivals in arrivals(), polled in any::<bool>()
    ) {
        let mut link = Link::with_observer("test", seed, config, Drops::default());
        let mut now = Time::ZERO;
        for (id, (after, flow, size)) in (0..).zip(arrivals) {
            now += Duration::from_nanos(after);
            link.handle(now, 0, packet(id, flow, size));
            assert_conserved(&link);
            while polled && link.poll(now).is_some() {}
            assert_conserved(&link);
        }
        let mut last = Time::ZERO;
        while let Some(delivery) = link.deliver(Time::MAX) {
            assert!(delivery.at >= last);
            last = delivery.at;
        }
        assert_conserved(&link);
        // Only a line that stands still forever keeps anything.
        prop_assert!(link.timeout().is_none() && link.next_delivery().is_none());
        prop_assert!(link.stats().held.packets == link.queue_len() as u64);
        prop_assert!(link.stats().held.bytes == link.queue_bytes());
    }

    #[test]
    fn due_times_depend_on_arrivals_alone_and_not_on_the_driver(
        config in config(), seed: u64, arrivals in arrivals(), every in 1usize..50
    ) {
        let mut punctual = Link::with_observer("test", seed, config.clone(), Drops::default());
        let mut late = Link::with_observer("test", seed, config, Drops::default());
        let (mut by_punctual, mut by_late) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        for (id, (after, flow, size)) in (0..).zip(arrivals) {
            now += Duration::from_nanos(after);
            while let Some((wake, _)) = punctual.timeout().filter(|(wake, _)| *wake <= now) {
                prop_assert!(punctual.next_delivery().is_none_or(|next| next >= wake));
                by_punctual.extend(core::iter::from_fn(|| punctual.deliver(wake)));
            }
            punctual.handle(now, 0, packet(id, flow, size));
            late.handle(now, 0, packet(id, flow, size));
            if (id as usize).is_multiple_of(every) {
                by_late.extend(core::iter::from_fn(|| late.deliver(now)));
            }
        }
        by_punctual.extend(core::iter::from_fn(|| punctual.deliver(Time::MAX)));
        by_late.extend(core::iter::from_fn(|| late.deliver(Time::MAX)));
        prop_assert_eq!(by_punctual, by_late);
        prop_assert_eq!(punctual.stats(), late.stats());
    }
}
