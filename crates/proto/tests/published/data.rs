use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream};
use fontis_proto::published::{
    Body, Coding, LastPacket, Need, PublishedConfig, PublishedFlags, PublishedStats, Sending,
};

use super::pair::Pair;

fn config() -> PublishedConfig {
    PublishedConfig { rate: Rate::from_mbps(100), ..PublishedConfig::default() }
}

/// What the ends counted after a message was sent over a path that loses this share both ways.
fn transfer(
    config: PublishedConfig,
    bytes: u64,
    seed: u64,
    loss: f64,
) -> (PublishedStats, PublishedStats) {
    let mut pair = Pair::losing(config, seed, loss);
    pair.client.write(bytes);
    pair.run_until(Duration::from_secs(120));
    assert_eq!(pair.server().stats().delivered, bytes, "seed {seed}");
    (pair.client.stats(), pair.server().stats())
}

#[test]
fn without_loss_exactly_the_redundancy_is_sent() {
    let blocks = 50;
    let (sent, got) = transfer(config(), 63_536 * blocks, 1, 0.0);
    // ⌈1.05 · 63,536⌉ in 45 packets of 1452 and one of 1373.
    assert_eq!((sent.bytes_sent, sent.packets_sent), (66_713 * blocks, 46 * blocks));
    assert_eq!((sent.repairs_sent, got.bytes_wasted), (0, 0));
    let full = PublishedConfig { last_packet: LastPacket::Full, ..config() };
    assert_eq!(transfer(full, 63_536 * blocks, 1, 0.0).0.bytes_sent, 66_792 * blocks);
}

#[test]
fn losses_are_made_up_for_by_other_packets_in_every_mode() {
    for sending in [Sending::TwoPhase, Sending::RoundRobin, Sending::UntilAcknowledged] {
        for (seed, loss) in [(1, 0.01), (2, 0.1), (3, 0.5)] {
            let config = PublishedConfig { sending, window: 20, ..config() };
            let (sent, got) = transfer(config, 63_536 * 30 + 999, seed, loss);
            let arrived = got.bytes_received as f64 / sent.bytes_sent as f64;
            assert!((arrived - (1.0 - loss)).abs() < 0.05, "{sending:?}: {arrived}");
            assert!(sent.acknowledged == got.delivered);
        }
    }
}

#[test]
fn two_phases_waste_less_than_sending_until_acknowledged() {
    let waste = |sending| {
        let (_, got) = transfer(PublishedConfig { sending, ..config() }, 63_536 * 100, 5, 0.02);
        got.bytes_wasted as f64 / got.bytes_received as f64
    };
    let [two_phase, until] = [Sending::TwoPhase, Sending::UntilAcknowledged].map(waste);
    assert!(two_phase < 0.03, "{two_phase}");
    assert!(until > 0.5, "20 ms at 100 Mbit/s are four blocks: {until}");
}

#[test]
fn the_first_pass_grows_with_the_loss_and_little_is_sent_in_vain() {
    for (seed, loss) in [(1, 0.01), (2, 0.1), (3, 0.5), (4, 0.9)] {
        let mut stream = Stream::new(seed, "data");
        let mut pair = Pair::new(config());
        pair.lose = Box::new(move |packet, _| {
            matches!(packet.body, Body::Symbols(_)) && stream.unit() < loss
        });
        pair.client.write(63_536 * 400);
        pair.run_until(Duration::from_secs(120));
        let (sent, got) = (pair.client.stats(), pair.server().stats());
        assert_eq!(got.delivered, 63_536 * 400);
        let wasted = got.bytes_wasted as f64 / got.bytes_received as f64;
        assert!(wasted < 0.02 + 0.08 * loss, "{wasted} at a loss of {loss}");
        let repaired = sent.repairs_sent as f64 / sent.packets_sent as f64;
        assert!(repaired < 0.45, "{repaired} at a loss of {loss}");
    }
}

#[test]
fn a_queue_longer_than_the_path_makes_no_sender_repair_in_vain() {
    for delay in [0, 1, 10] {
        // The line carries 100 Mbit/s. What is sent too fast is lost in bursts, which costs some
        // repairs.
        for (rate, most) in [(105, 0.01), (150, 0.1), (200, 0.1), (1000, 0.2)] {
            let mut pair = Pair::new(PublishedConfig { rate: Rate::from_mbps(rate), ..config() });
            pair.delay = Duration::from_millis(delay);
            pair.line = Some((Rate::from_mbps(100), Duration::from_millis(250)));
            pair.client.write(u64::MAX);
            pair.run_until(Duration::from_secs(3));
            let before = pair.server().stats();
            pair.run_until(Duration::from_secs(10));
            let got = pair.server().stats();
            let wasted = (got.bytes_wasted - before.bytes_wasted) as f64
                / (got.bytes_received - before.bytes_received) as f64;
            assert!(wasted < most, "{delay} ms, {rate} Mbit/s: {wasted}");
        }
    }
}

#[test]
fn a_lost_acknowledgement_is_repeated_when_more_of_the_block_comes() {
    let mut pair = Pair::new(config());
    pair.client.write(63_536 * 3);
    let mut seen = 0;
    pair.lose = Box::new(move |packet, from_client| {
        let is_ack =
            !from_client && packet.header.flags == PublishedFlags::ACK && packet.header.block == 2;
        seen += u32::from(is_ack);
        is_ack && seen <= 3
    });
    pair.run_until(Duration::from_secs(5));
    let acks = pair.sent[1].iter().filter(|(_, packet)| packet.header.block == 2).count();
    assert!(acks >= 4 && pair.client.stats().in_flight == 0, "{acks} acknowledgements");
    assert!(pair.client.stats().repairs_sent >= 3);
}

#[test]
fn half_of_the_acknowledgements_may_be_lost() {
    let mut stream = Stream::new(9, "acknowledgements");
    let mut pair = Pair::new(config());
    pair.client.write(63_536 * 40);
    pair.lose = Box::new(move |packet, from_client| {
        !from_client && packet.header.block > 0 && stream.unit() < 0.5
    });
    pair.run_until(Duration::from_secs(60));
    assert_eq!((pair.server().stats().delivered, pair.client.stats().in_flight), (63_536 * 40, 0));
}

#[test]
fn blocks_are_delivered_in_order_and_no_more_than_the_window_is_held() {
    let mut pair = Pair::new(PublishedConfig { window: 8, ..config() });
    pair.client.write(63_536 * 60);
    // Block 3 is held up for long.
    let mut left = 400;
    pair.lose = Box::new(move |packet, from_client| {
        let hit = from_client && packet.header.block == 3 && left > 0;
        left -= i32::from(hit);
        hit
    });
    pair.run_until(Duration::from_millis(100));
    let stats = pair.server().stats();
    assert_eq!(stats.delivered, 2 * 63_536, "nothing behind block 3");
    pair.run_until(Duration::from_secs(60));
    let stats = pair.server().stats();
    assert_eq!(stats.delivered, 60 * 63_536);
    assert!(stats.most_blocks_held <= 8, "{}", stats.most_blocks_held);
}

#[test]
fn what_the_code_needs_is_less_than_five_percent() {
    let (sent, _) =
        transfer(PublishedConfig { need: Need::Code, ..config() }, 63_536 * 100, 2, 0.0);
    assert_eq!(sent.repairs_sent, 0);
    // With less than it needs, every block is repaired.
    let little = PublishedConfig { need: Need::Code, redundancy: 0.03, ..config() };
    let (sent, got) = transfer(little, 63_536 * 100, 2, 0.0);
    assert!(sent.repairs_sent >= 90, "{}", sent.repairs_sent);
    let overhead = (got.bytes_received - got.bytes_wasted) as f64 / (63_536.0 * 100.0) - 1.0;
    // One packet is 2.3 % of a block.
    assert!((0.039..0.065).contains(&overhead), "{overhead}");
}

fn real(seed: u64, len: usize, config: PublishedConfig, loss: f64) -> (Vec<u8>, Vec<u8>, Pair) {
    let mut stream = Stream::new(seed, "message");
    let mut message = vec![0; len];
    stream.fill(&mut message);
    let mut pair = Pair::losing(config, seed, loss);
    pair.wire = true;
    pair.client.write_data(Bytes::from(message.clone()));
    pair.client.finish();
    pair.run_until(Duration::from_secs(60));
    let mut got = Vec::new();
    while let Some(bytes) = pair.server.as_mut().expect("a server").read() {
        got.extend_from_slice(&bytes);
    }
    (message, got, pair)
}

#[test]
fn real_bytes_cross_a_lossy_path_whole() {
    let config = PublishedConfig { coding: Coding::Real, need: Need::Code, ..config() };
    for (seed, len, loss) in [(1, 150_000, 0.0), (2, 63_536, 0.1), (3, 63_533, 0.05), (4, 1, 0.3)] {
        let (message, got, pair) = real(seed, len, config.clone(), loss);
        assert!(message == got, "seed {seed}: {} of {len} bytes", got.len());
        assert_eq!(pair.client.stats().in_flight, 0);
    }
}

#[test]
fn coding_and_acknowledging_can_be_switched_off_one_by_one() {
    for switches in 0..8 {
        let config = PublishedConfig {
            coding: if switches & 1 == 0 { Coding::Counting } else { Coding::Real },
            decode: switches & 2 == 0,
            acknowledge: switches & 4 == 0,
            need: Need::Code,
            ..config()
        };
        let mut pair = Pair::new(config);
        pair.client.write_data(Bytes::from(vec![7; 200_000]));
        pair.run_until(Duration::from_secs(5));
        let acks = pair.sent[1].iter().filter(|(_, packet)| packet.header.block > 0).count();
        assert_eq!(acks > 0, switches & 4 == 0);
        assert_eq!(pair.client.stats().in_flight, 0, "switches {switches}");
        assert!(pair.server().stats().bytes_received > 200_000);
    }
}

#[test]
fn packets_carry_the_state_of_the_generator_and_no_number() {
    let config = PublishedConfig { coding: Coding::Real, need: Need::Code, ..config() };
    let (_, _, pair) = real(5, 63_536, config, 0.0);
    let states: Vec<[u32; 3]> = pair.sent[0]
        .iter()
        .filter(|(_, packet)| matches!(packet.body, Body::Symbols(_)))
        .map(|(_, packet)| packet.header.state)
        .collect();
    let mut unique = states.clone();
    unique.sort_unstable();
    unique.dedup();
    assert!(states.len() >= 45 && unique.len() == states.len());
}
