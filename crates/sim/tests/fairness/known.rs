//! Networks that are made from their solution: shares and prices are drawn, and the weights,
//! capacities and caps follow from the conditions of optimality.

use fontis_base::Stream;
use fontis_sim::analysis::fairness::{User, allocate, network};

use super::random::{Network, alpha, each_seed, log_uniform, route};

/// A network and its exact shares. Of the nodes a third has a price, a third has none and room, and
/// a third has none and is exactly full; of the users some have a cap with a price, or one that is
/// reached exactly without.
fn known(s: &mut Stream) -> (Network, Vec<f64>) {
    let nodes = 2 + s.below(7) as usize;
    let users = 1 + s.below(40) as usize;
    // Weights follow as x^α, which for larger α spread over too many powers of ten.
    let alpha = alpha(s).min(2.0);
    let mut prices: Vec<f64> =
        (0..nodes).map(|_| if s.below(3) == 0 { log_uniform(s, 0.1, 10.0) } else { 0.0 }).collect();
    prices[0] = 1.0;
    let shares: Vec<f64> = (0..users).map(|_| log_uniform(s, 0.3, 30.0)).collect();
    let mut network = Network { capacities: vec![], users: vec![], routes: vec![], alpha };
    for share in &shares {
        let route = route(s, nodes);
        let price: f64 = route.iter().map(|node| prices[*node]).sum();
        let (cap, cap_price) = match s.below(4) {
            _ if price == 0.0 => (*share, log_uniform(s, 0.1, 10.0)),
            0 => (*share, log_uniform(s, 0.1, 10.0)),
            1 => (*share, 0.0),
            2 => (share * (1.0 + s.unit()), 0.0),
            _ => (f64::INFINITY, 0.0),
        };
        network.users.push(User { cap, ..User::of((price + cap_price) * share.powf(alpha)) });
        network.routes.push(route);
    }
    network.capacities = vec![1.0; nodes];
    let room = |(price, load): (&f64, f64)| {
        let factor = if *price > 0.0 || s.below(2) == 0 { 1.0 } else { 1.0 + s.unit() };
        if load == 0.0 { 1.0 } else { load * factor }
    };
    network.capacities = prices.iter().zip(network.loads(&shares)).map(room).collect();
    (network, shares)
}

#[test]
fn shares_of_networks_with_known_solutions_are_exact_to_1e_minus_9() {
    let worst = std::cell::Cell::new(0.0f64);
    each_seed("known", |seed, s| {
        let (of, want) = known(s);
        let got = network(&of.capacities, &of.users, &of.routes, of.notion())
            .unwrap_or_else(|error| panic!("seed {seed}: {error} {of:?}"));
        of.assert_feasible(&got, seed);
        let largest = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        worst.set(worst.get().max(largest));
        assert!(largest < 1e-9, "seed {seed}: {largest:e} α {}", of.alpha);
    });
    println!("largest difference {:e}", worst.get());
}

#[test]
fn a_network_of_one_node_is_that_node() {
    each_seed("one node", |seed, s| {
        let mut of = Network::random(s);
        of.routes.iter_mut().for_each(|route| *route = vec![0]);
        let got = network(&of.capacities, &of.users, &of.routes, of.notion()).expect("shares");
        let want = allocate(of.capacities[0], &of.users, of.notion()).expect("shares");
        of.capacities.truncate(1);
        of.assert_feasible(&want, seed);
        let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-9, "seed {seed}: {worst:e}");
    });
}
