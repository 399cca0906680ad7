//! Receivers that do not tell the truth gain nothing by it.

use fontis_base::{Duration, Probability, Rate, Serializer, Stream};
use fontis_proto::dfcp::{CloseReason, DfcpConfig, DfcpEvent, DfcpPacket, Frame, SendOptions};

use crate::pair::{Pair, Side};

/// A client that sends a long message over 10 Mbit/s, and a server whose feedback is altered.
fn sending(
    left_out: Option<u64>,
    mut alter: impl FnMut(&mut fontis_proto::dfcp::Feedback) + 'static,
) -> Pair {
    let config = DfcpConfig { left_out, max_packet_size: 1500, ..DfcpConfig::default() };
    let mut pair = Pair::new(config.clone(), config, Duration::from_millis(20), None);
    pair.bottleneck = Some([(); 2].map(|()| Serializer::new(Rate::from_mbps(10))));
    pair.run_for(Duration::from_millis(200));
    pair.events.clear();
    pair.alter = Box::new(move |side, packet| {
        if let (Side::Server, DfcpPacket::Sealed { frames, .. }) = (side, packet) {
            for frame in frames {
                if let Frame::Feedback(feedback) = frame {
                    alter(feedback);
                }
            }
        }
    });
    pair.client.send_message(vec![1; 100_000_000].into(), SendOptions::default());
    pair
}

/// Bytes that the client sent in so many seconds, as a rate in Mbit/s.
fn rate(pair: &mut Pair, seconds: u64) -> f64 {
    let before = pair.client.stats().bytes_sent;
    pair.run_for(Duration::from_secs(seconds));
    (pair.client.stats().bytes_sent - before) as f64 * 8e-6 / seconds as f64
}

#[test]
fn who_reports_what_was_never_sent_is_left() {
    for seed in 0..5 {
        let mut pair = sending(Some(seed), |feedback| {
            feedback.runs = [feedback.largest as u32 + 1].into_iter().collect();
        });
        let mut random = Stream::new(seed, "losses");
        let loss = Probability::new(0.1);
        pair.loss = Box::new(move |_, sent| sent.from == Side::Client && random.chance(loss));
        pair.run_for(Duration::from_secs(10));
        assert!(pair.client.is_closed(), "seed {seed}");
        let untrue = DfcpEvent::Closed(CloseReason::Untrue);
        assert!(pair.events_of(Side::Client).contains(&&untrue), "seed {seed}");
        assert!(
            pair.events_of(Side::Server).iter().any(|event| matches!(
                event,
                DfcpEvent::Closed(CloseReason::Peer { code: 6, reason }) if !reason.is_empty()
            )),
            "seed {seed}: the server is told"
        );
    }
}

#[test]
fn who_tells_the_truth_is_not_left_and_loses_nothing() {
    for seed in 0..5 {
        let mut pair = sending(Some(seed), |_| ());
        let with = rate(&mut pair, 20);
        let without = rate(&mut sending(None, |_| ()), 20);
        println!("seed {seed}: {with:.2} Mbit/s with numbers left out, {without:.2} without");
        assert!(pair.client.is_established());
        assert!((with / without - 1.0).abs() < 0.02, "{with} and {without}");
        assert_eq!(pair.client.stats().packets_lost, 0);
        assert!(pair.server().stats().incoming_loss > 0.0, "numbers were left out");
    }
}

#[test]
fn a_clock_that_runs_slowly_makes_the_rate_no_higher() {
    // Without a bound of what may be in flight, the rate is what would be sent.
    let allowed = |pair: &mut Pair| {
        let rates = (0..60).map(|_| {
            pair.run_for(Duration::from_secs(1));
            pair.client.stats().rate.as_mbps_f64()
        });
        rates.sum::<f64>() / 60.0
    };
    let honest = allowed(&mut sending(None, |_| ()));
    for percent in [50, 80] {
        let mut first = None;
        let mut pair = sending(None, move |feedback| {
            let first = *first.get_or_insert(feedback.received_at_us);
            feedback.received_at_us = first + (feedback.received_at_us - first) * percent / 100;
        });
        // Until it is found out.
        rate(&mut pair, 60);
        let lying = allowed(&mut pair);
        println!("{honest:.2} Mbit/s, and {lying:.2} with a clock at {percent} %");
        assert!(lying < 1.1 * honest, "{lying:.2} instead of {honest:.2} Mbit/s");
    }
}
