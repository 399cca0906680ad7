//! How long the fair shares of 100,000 users of 100 nodes take, for several α.
//!
//! `cargo run --release -p fontis-lab --example fairness`. Half of the users have caps; with routes
//! of up to six nodes almost every user has one of its own. It fails if one takes a second or more.

use std::process::ExitCode;
use std::time::Instant;

use fontis_base::Stream;
use fontis_sim::analysis::fairness::{Notion, User, network};

const USERS: usize = 100_000;
const NODES: u64 = 100;

/// A route of 1 to `longest` nodes.
fn route(s: &mut Stream, longest: u64) -> Vec<usize> {
    let hops = 1 + s.below(longest) as usize;
    let mut route = Vec::with_capacity(hops);
    while route.len() < hops {
        let node = s.below(NODES) as usize;
        if !route.contains(&node) {
            route.push(node);
        }
    }
    route
}

fn main() -> ExitCode {
    let seed: u64 = std::env::var("FONTIS_SEED").map_or(1, |text| text.parse().expect("a number"));
    println!("FONTIS_SEED={seed}: {USERS} users, {NODES} nodes");
    let s = &mut Stream::new(seed, "fairness");
    let mut notions: Vec<Notion> = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0].map(Notion::Alpha).to_vec();
    notions.extend((0..3).map(|_| Notion::Alpha(0.1 * 100f64.powf(s.unit()))));
    notions.push(Notion::MaxMin);
    let mut is_fast = true;
    for longest in [1, 3, 6] {
        let capacities: Vec<f64> = (0..NODES).map(|_| 1000.0 * (1.0 + 99.0 * s.unit())).collect();
        let routes: Vec<Vec<usize>> = (0..USERS).map(|_| route(s, longest)).collect();
        let user = |_| {
            let cap = if s.below(2) == 0 { f64::INFINITY } else { 20.0 * s.unit() };
            User { weight: 0.1 + 10.0 * s.unit(), cap, radio: None }
        };
        let users: Vec<User> = (0..USERS).map(user).collect();
        for notion in &notions {
            let start = Instant::now();
            let shares = network(&capacities, &users, &routes, *notion);
            let seconds = start.elapsed().as_secs_f64();
            let is_shared = shares.is_ok();
            is_fast &= is_shared && seconds < 1.0;
            let alpha = notion.alpha();
            println!(
                "routes of 1 to {longest}  α {alpha:<7.3} {seconds:.3} s  shared: {is_shared}"
            );
        }
    }
    if is_fast { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
