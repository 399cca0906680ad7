use std::collections::BTreeMap;

use fontis_base::{Duration, Stream, Time};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::{Recovery, Segment, TcpConfig, TcpEndpoint, TcpEvent};
use proptest::prelude::*;

/// A network between two endpoints that loses, copies and delays.
struct Pair {
    now: Time,
    ends: [TcpEndpoint; 2],
    events: [Vec<TcpEvent>; 2],
    /// By arrival time and sequence: to which end, what, marked.
    flight: BTreeMap<(Time, u64), (usize, Segment, bool)>,
    sequence: u64,
    stream: Stream,
    loss: f64,
    /// Of the handshake's packets so many may still be lost: it is given up after some tries, as by
    /// Linux.
    handshakes: u32,
    copies: f64,
    jitter: Duration,
    marks: f64,
}

impl Pair {
    /// Whether a packet that leaves is lost.
    fn loses(&mut self, segment: &Segment) -> bool {
        let lost = self.stream.unit() < self.loss;
        if lost && segment.syn().is_some() {
            let left = self.handshakes.checked_sub(1);
            self.handshakes = left.unwrap_or(0);
            return left.is_some();
        }
        lost
    }

    fn send_all(&mut self, from: usize) {
        while let Some(transmit) = self.ends[from].poll(self.now) {
            let copies = 1 + usize::from(self.stream.unit() < self.copies);
            for _ in 0..copies {
                let delay = Duration::from_millis(10)
                    + Duration::from_nanos(self.stream.below(self.jitter.as_nanos() + 1));
                let marked = transmit.ecn_capable && self.stream.unit() < self.marks;
                if !self.loses(&transmit.segment) {
                    self.sequence += 1;
                    let to = 1 - from;
                    self.flight.insert(
                        (self.now + delay, self.sequence),
                        (to, transmit.segment.clone(), marked),
                    );
                }
            }
        }
        while let Some(event) = self.ends[from].event() {
            self.events[from].push(event);
            if event == TcpEvent::PeerFinished {
                self.ends[from].finish();
                self.send_all(from);
            }
        }
    }

    /// Runs until both ends are closed; false if that does not happen within `limit` steps.
    fn run(&mut self, limit: u32) -> bool {
        for _ in 0..limit {
            for end in 0..2 {
                self.send_all(end);
            }
            if self.ends.iter().all(TcpEndpoint::is_closed) {
                return true;
            }
            let arrival = self.flight.first_key_value().map(|((at, _), _)| *at);
            let timers = self.ends.iter().filter_map(|end| end.timeout().map(|(at, _)| at));
            let Some(next) = timers.chain(arrival).min() else { return false };
            self.now = self.now.max(next);
            while let Some(entry) = self.flight.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, segment, marked) = entry.remove();
                self.ends[to].handle(self.now, &segment, marked);
                self.send_all(to);
            }
        }
        false
    }
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let kinds = CongestionKind::ALL;
    (
        prop::sample::select(kinds.to_vec()),
        any::<(bool, bool, bool, bool, bool)>(),
        prop::option::of(1u64..60),
        prop_oneof![Just(1u64 << 30), 3_000u64..100_000],
        any::<(bool, bool)>(),
    )
        .prop_map(|(congestion, flags, delayed_ack, receive_buffer, more)| {
            let (rack, sack, timestamps, ecn, nagle) = flags;
            let (pacing, slow_start_after_idle) = more;
            TcpConfig {
                congestion,
                recovery: if rack { Recovery::RackTlp } else { Recovery::Rfc6675 },
                sack,
                timestamps,
                ecn,
                nagle,
                pacing,
                slow_start_after_idle,
                delayed_ack: delayed_ack.map(Duration::from_millis),
                receive_buffer,
                // Longer than what a peer that retransmits may stay silent.
                time_wait: Duration::from_secs(1000),
                ..TcpConfig::default()
            }
        })
}

fn cases() -> u32 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn whatever_the_network_does_all_arrives_once_and_both_ends_close(
        near in config(),
        far in config(),
        sizes in (0u64..400_000, 0u64..40_000),
        seed: u64,
        isn: (u32, u32),
        network in (0.0..0.2, 0.0..0.1, 0u64..30, 0.0..0.2),
    ) {
        let (loss, copies, jitter, marks) = network;
        let mut near_end = TcpEndpoint::connect(Time::ZERO, near, isn.0);
        near_end.write(sizes.0);
        near_end.finish();
        // The far end begins with the first copy of the SYN that is not lost.
        let mut now = Time::ZERO;
        let syn = near_end.poll(now).expect("a SYN").segment;
        now += Duration::from_millis(10);
        let mut far_end = TcpEndpoint::accept(now, far, isn.1, &syn).expect("an answer");
        far_end.write(sizes.1);
        let mut pair = Pair {
            now,
            ends: [near_end, far_end],
            events: Default::default(),
            flight: BTreeMap::new(),
            sequence: 0,
            stream: Stream::new(seed, "network"),
            loss,
            handshakes: 4,
            copies,
            jitter: Duration::from_millis(jitter),
            marks,
        };
        prop_assert!(
            pair.run(200_000),
            "hangs at {}: {:?}",
            pair.now,
            pair.ends.each_ref().map(|e| (e.state(), e.timeout(), e.unacknowledged(), e.sender_stats()))
        );
        for (end, size) in [(0, sizes.1), (1, sizes.0)] {
            prop_assert!(
                pair.events[end].contains(&TcpEvent::Closed),
                "end {end}: {:?}", pair.events[end]
            );
            prop_assert_eq!(pair.ends[end].receiver_stats().received, size);
        }
    }
}
