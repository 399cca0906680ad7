//! The rate controller on paths that are shared, that change, or whose queue is other than
//! expected.
//!
//! `cargo run --release -p fontis-sim --example control [SEED]`

#[path = "../tests/support/mod.rs"]
mod support;

use fontis_base::Duration;
use support::figure::Figure;
use support::scenarios;

fn main() {
    let seed = std::env::args().nth(1).map_or(1, |text| text.parse().expect("a seed"));
    println!("seed {seed}");
    let show = |figures: Vec<Figure>| figures.iter().for_each(|figure| println!("{figure}"));
    for later in [3000, 3400, 4700, 500] {
        show(scenarios::two_flows(seed, Duration::from_millis(later)));
    }
    show(scenarios::worst_of_pairs(seed + 9, 48));
    show(scenarios::slower(seed));
    show(scenarios::short_buffer(seed));
    show(scenarios::codel(seed));
    show(scenarios::policer(seed));
    show(scenarios::slow_start(seed));
    for (size, target) in [(10_000, 1.15), (100_000, 1.2), (1_000_000, 1.5)] {
        for loss in [0.0, 0.1] {
            show(scenarios::small(size, loss, seed..seed + 300, target));
        }
    }
}
