//! The plan of delay-aware scheduling (Sarwar 2014, Algorithms 1 to 3): which path sends which
//! units, so that all arrive in order.

use core::cmp::Reverse;
use core::ops::Range;
use std::collections::BinaryHeap;

/// A path in a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanPath {
    /// The delay from here to the peer, in steps of time. At least one.
    pub delay: u64,
    /// Units that it sends in one delay. They need not be whole: what is left over is carried.
    pub units: f64,
}

/// Units that a path sends together, one delay after its units before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBlock {
    /// The path.
    pub path: usize,
    /// When it is sent, in steps from the beginning of the plan; it arrives a delay later.
    pub sent: u64,
    /// Its units.
    pub units: Range<u64>,
}

/// The plan for units from `first` on, in the order in which they arrive: blocks that arrive by
/// the step `horizon`. Blocks that arrive at the same time stand in the order of the paths.
///
/// With the least common multiple of the delays for `horizon` ([`period`]) this is Algorithms 1
/// and 2 as printed; Algorithm 3 sends each block at its `sent`.
pub fn plan(paths: &[PlanPath], first: u64, horizon: u64) -> Vec<PlanBlock> {
    // The next arrival of each path: the ideal order without a walk through every step.
    let mut arrivals: BinaryHeap<Reverse<(u64, usize)>> =
        paths.iter().enumerate().map(|(at, path)| Reverse((path.delay.max(1), at))).collect();
    let mut carried = vec![0.0; paths.len()];
    let (mut next, mut blocks) = (first, Vec::new());
    while let Some(Reverse((arrival, path))) =
        arrivals.pop().filter(|Reverse((at, _))| *at <= horizon)
    {
        let delay = paths[path].delay.max(1);
        carried[path] += paths[path].units.clamp(0.0, 1e6);
        let units = carried[path] as u64;
        carried[path] -= units as f64;
        if units > 0 {
            blocks.push(PlanBlock { path, sent: arrival - delay, units: next..next + units });
            next += units;
        }
        arrivals.push(Reverse((arrival + delay, path)));
    }
    blocks
}

/// The least common multiple of the delays, the period of the printed algorithm; `most` if it is
/// longer.
pub fn period(paths: &[PlanPath], most: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let delays = paths.iter().map(|path| path.delay.max(1));
    delays.fold(1, |all: u64, delay| all.saturating_mul(delay / gcd(all, delay)).min(most.max(1)))
}
