//! Swarms in virtual time.

use fontis_base::{Duration, Rate, Size, Stream, Time};
use fontis_sim::swarm::{SwarmConduct, SwarmOutcome, SwarmPeer, SwarmSpec, SwarmWorld};

fn seed() -> u64 {
    let seed = std::env::var("FONTIS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    seed
}

/// Peers of 50 Mbit/s each way, 25 ms from one another.
fn swarm(peers: usize) -> SwarmSpec {
    let one = SwarmPeer::of(Rate::from_mbps(50));
    SwarmSpec {
        blocks: 256,
        block: Size::from_bytes(1 << 20),
        origin: one,
        origin_sends: None,
        peers: vec![one; peers],
        neighbours: 24,
        relays: 0,
        delay: Duration::from_millis(25),
        uploads: 3,
        downloads: 3,
        partition: None,
    }
}

fn run(swarm: &SwarmSpec, seed: u64) -> SwarmOutcome {
    SwarmWorld::new(swarm, seed).finish()
}

/// The time of the last, in units of the least; and what the origin sent of the file.
fn show(what: &str, swarm: &SwarmSpec, outcome: &SwarmOutcome) -> (f64, f64) {
    let last = outcome.last() / swarm.bound();
    let origin = outcome.sent_by(0) as f64 / f64::from(swarm.blocks);
    let all = f64::from(swarm.blocks) * swarm.peers.len() as f64;
    let cost = outcome.cost.expect("the simulator sees it");
    println!(
        "{what}: last {last:.3} of the bound, p99/p50 {:.3}, origin {origin:.3} of the file; for \
         each block of a peer sent {:.3}, refused {:.3}, messages {:.1}",
        outcome.quantile(0.99) / outcome.quantile(0.5),
        outcome.sent() as f64 / all,
        cost.refused as f64 / all,
        cost.messages as f64 / all,
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
        let rate = Rate::from_mbps(10).scale(libm::pow(10.0, stream.unit()));
        swarm.delay = Duration::from_secs_f64(0.001 + 0.039 * stream.unit());
        swarm.peers.fill(SwarmPeer::of(rate));
        swarm.origin = SwarmPeer::of(rate.scale(0.5 + 2.0 * stream.unit()));
        let outcome = run(&swarm, seed);
        let what = format!(
            "{} of {}, origin {}, {}",
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
        peer.up = peer.up.scale(libm::pow(20.0, stream.unit() - 0.5));
        peer.loss = if i % 2 == 0 { 0.1 } else { 0.0 };
    }
    let outcome = run(&swarm, seed);
    let (last, _) = show("unequal", &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(last <= 1.25, "{last}");
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
    swarm.peers[2].conduct = SwarmConduct::Lies;
    let outcome = run(&swarm, seed);
    show("one of five lies", &swarm, &outcome);
    assert_eq!(outcome.named.keys().collect::<Vec<_>>(), [&3]);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!(outcome.sent() as f64 <= 1.05 * 5.0 * f64::from(swarm.blocks));
}

#[test]
fn silent_relays_cost_the_origin_little_more_than_their_share() {
    let seed = seed();
    let mut swarm = swarm(40);
    swarm.relays = 10;
    swarm.peers.iter_mut().take(3).for_each(|peer| peer.conduct = SwarmConduct::Silent);
    let outcome = run(&swarm, seed);
    let (last, origin) = show("two hops, 3 of 10 relays silent", &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    assert!((1..=3).all(|node| outcome.sent_by(node) == 0));
    // Nobody else than the origin and the other relays feeds those behind the relays.
    let fed = outcome.transfers.iter().filter(|one| one.to > 10);
    assert!(fed.into_iter().all(|one| (4..=10).contains(&one.from)));
    assert!(last <= 1.2 && origin <= 1.55, "{last} {origin}");
}

#[test]
fn a_swarm_goes_on_after_a_partition_and_with_those_who_come_late() {
    let seed = seed();
    let mut swarm = swarm(40);
    let second = |at: u64| Time::ZERO + Duration::from_secs(at);
    swarm.partition = Some((second(10), second(20)));
    for (at, peer) in (1..).zip(swarm.peers.iter_mut().step_by(4)) {
        peer.joins = second(at);
    }
    let outcome = run(&swarm, seed);
    let (last, _) = show("partition", &swarm, &outcome);
    assert!(outcome.done.iter().all(Option::is_some));
    let crosses = |one: &&fontis_sim::swarm::SwarmTransfer| (one.from < 20) != (one.to < 20);
    let inside = |at: Time| at > second(10) && at < second(20);
    let across = outcome.transfers.iter().filter(crosses);
    assert!(across.into_iter().all(|one| !inside(one.begun) && !inside(one.ended)));
    assert!(last <= 1.6, "{last}");
}
