use fontis_base::Stream;
use fontis_sim::analysis::fairness::{Notion, User};

use crate::support::number::number;

/// A random network.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) capacities: Vec<f64>,
    pub(super) users: Vec<User>,
    pub(super) routes: Vec<Vec<usize>>,
    pub(super) alpha: f64,
}

/// Calls `check` with the stream of each seed, and prints the seed first.
pub(super) fn each_seed(name: &str, check: impl Fn(u64, &mut Stream)) {
    each_of(100, name, check);
}

/// The same, with another number of seeds by default.
pub(super) fn each_of(by_default: u64, name: &str, check: impl Fn(u64, &mut Stream)) {
    let (first, runs) = (number("FONTIS_SEED", 1), number("FONTIS_RUNS", by_default));
    println!("{name}: FONTIS_SEED={first} FONTIS_RUNS={runs}");
    for seed in first..first + runs {
        check(seed, &mut Stream::new(seed, name));
    }
}

/// A value whose logarithm is uniform.
pub(super) fn log_uniform(s: &mut Stream, least: f64, largest: f64) -> f64 {
    least * (largest / least).powf(s.unit())
}

/// Half of the exponents are those with names, the others anything from a tenth to ten.
pub(super) fn alpha(s: &mut Stream) -> f64 {
    match s.below(6) {
        0 => 1.0,
        1 => 2.0,
        2 => 0.5,
        _ => log_uniform(s, 0.1, 10.0),
    }
}

pub(super) fn route(s: &mut Stream, nodes: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..nodes).collect();
    let hops = 1 + s.below(nodes.min(4) as u64) as usize;
    (0..hops).map(|_| left.swap_remove(s.below(left.len() as u64) as usize)).collect()
}

impl Network {
    /// Up to eight nodes and thirty users, half of them with caps.
    pub(super) fn random(s: &mut Stream) -> Self {
        let nodes = 1 + s.below(8) as usize;
        let users = 1 + s.below(30) as usize;
        Self {
            capacities: (0..nodes).map(|_| log_uniform(s, 1.0, 100.0)).collect(),
            users: (0..users)
                .map(|_| User {
                    weight: log_uniform(s, 0.1, 10.0),
                    cap: if s.below(2) == 0 { f64::INFINITY } else { log_uniform(s, 0.1, 20.0) },
                    radio: None,
                })
                .collect(),
            routes: (0..users).map(|_| route(s, nodes)).collect(),
            alpha: alpha(s),
        }
    }

    pub(super) fn notion(&self) -> Notion {
        Notion::Alpha(self.alpha)
    }

    /// What each node carries.
    pub(super) fn loads(&self, shares: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for (route, share) in self.routes.iter().zip(shares) {
            route.iter().for_each(|node| loads[*node] += share);
        }
        loads
    }

    pub(super) fn assert_feasible(&self, shares: &[f64], seed: u64) {
        for (load, capacity) in self.loads(shares).iter().zip(&self.capacities) {
            assert!(*load <= capacity * (1.0 + 1e-11), "seed {seed}: {load} of {capacity}");
        }
        let is_within = |(user, share): (&User, &f64)| (0.0..=user.cap).contains(share);
        assert!(self.users.iter().zip(shares).all(is_within), "seed {seed}: {shares:?}");
    }
}
