use fontis_base::{Duration, Stream, Time};

use super::world::{Kind, Outcome, Swarm, run};

/// Blocks a second of a rate.
fn blocks(mbps: f64) -> f64 {
    mbps * 1e6 / 8.0 / f64::from(1 << 20)
}

fn seed() -> u64 {
    let seed = std::env::var("FONTIS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    seed
}

/// Peers of 50 Mbit/s each way, 25 ms from one another.
fn swarm(peers: usize) -> Swarm {
    Swarm {
        blocks: 256,
        origin: Kind::of(blocks(50.0)),
        origin_sends: None,
        peers: vec![Kind::of(blocks(50.0)); peers],
        degree: 24,
        delay: Duration::from_millis(25),
        uploads: 2,
    }
}

/// The time of the last, in units of the least; and what the origin sent of the file.
fn show(what: &str, swarm: &Swarm, outcome: &Outcome) -> (f64, f64) {
    let last = outcome.last() / swarm.bound();
    let origin = f64::from(outcome.origin_sent) / f64::from(swarm.blocks);
    let all = f64::from(swarm.blocks) * swarm.peers.len() as f64;
    println!(
        "{what}: last {last:.3} of the bound, p99/p50 {:.3}, origin {origin:.3} of the file; for \
         each block of a peer sent {:.3}, refused {:.3}, messages {:.1}",
        outcome.quantile(0.99) / outcome.quantile(0.5),
        f64::from(outcome.sent) / all,
        f64::from(outcome.refused) / all,
        outcome.messages as f64 / all,
    );
    (last, origin)
}

#[test]
fn sixteen_peers_are_near_the_bound() {
    let seed = seed();
    let swarm = swarm(16);
    let outcome = run(&swarm, seed);
    let (last, origin) = show("16", &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(last <= 1.2 && origin <= 1.15, "{last} {origin}");
}

#[test]
fn many_peers_end_together() {
    let seed = seed();
    let peers = std::env::var("FONTIS_RUNS").ok().and_then(|text| text.parse().ok());
    let swarm = swarm(peers.unwrap_or(150));
    let outcome = run(&swarm, seed);
    let (last, origin) = show(&format!("{}", swarm.peers.len()), &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(last <= 1.25 && origin <= 1.2, "{last} {origin}");
    assert!(outcome.quantile(0.99) <= 1.05 * outcome.quantile(0.5));
}

#[test]
fn peers_of_any_rate_and_distance_are_near_the_bound() {
    let seed = seed();
    let mut stream = Stream::new(seed, "any");
    for _ in 0..8 {
        let mut swarm = swarm(4 + stream.below(60) as usize);
        let rate = blocks(10.0 * libm::pow(10.0, stream.unit()));
        swarm.delay = Duration::from_secs_f64(0.001 + 0.039 * stream.unit());
        swarm.peers.fill(Kind::of(rate));
        swarm.origin = Kind::of(rate * (0.5 + 2.0 * stream.unit()));
        let outcome = run(&swarm, seed);
        let what = format!(
            "{} of {:.2} blocks/s, origin {:.2}, {}",
            swarm.peers.len(),
            rate,
            swarm.origin.up,
            swarm.delay
        );
        let (last, _) = show(&what, &swarm, &outcome);
        assert!(outcome.done.iter().all(Option::is_some));
        assert!(last <= 1.35, "{last}");
    }
}

#[test]
fn slow_uploads_and_lossy_paths_do_not_delay_the_swarm() {
    let seed = seed();
    let mut swarm = swarm(40);
    let mut stream = Stream::new(seed, "unequal");
    for (i, peer) in swarm.peers.iter_mut().enumerate() {
        // Uploads differ by up to 1 : 20.
        peer.up *= libm::pow(20.0, stream.unit() - 0.5);
        peer.loss = if i % 2 == 0 { 0.1 } else { 0.0 };
    }
    let outcome = run(&swarm, seed);
    let (last, _) = show("unequal", &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(last <= 1.3, "{last}");
}

#[test]
fn the_origin_and_a_third_of_the_peers_may_leave() {
    let seed = seed();
    let mut swarm = swarm(40);
    let mut stream = Stream::new(seed, "leave");
    let bound = swarm.bound();
    swarm.origin_sends = Some(swarm.blocks * 12 / 10);
    for peer in swarm.peers.iter_mut().step_by(3) {
        peer.leaves = Some(Time::ZERO + Duration::from_secs_f64(bound * stream.unit()));
    }
    let outcome = run(&swarm, seed);
    let (last, _) = show("leaving", &swarm, &outcome);
    let stays = |i: usize| swarm.peers[i].leaves.is_none();
    assert!(outcome.done.iter().enumerate().all(|(i, done)| done.is_some() || !stays(i)));
    assert!(last <= 1.3, "{last}");
}

#[test]
fn who_sends_what_is_wrong_is_named() {
    let seed = seed();
    let mut swarm = swarm(5);
    swarm.peers[2].lies = true;
    let outcome = run(&swarm, seed);
    show("one of five lies", &swarm, &outcome);
    assert_eq!(outcome.named, [3].into());
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(f64::from(outcome.sent) <= 1.05 * 5.0 * f64::from(swarm.blocks));
}
