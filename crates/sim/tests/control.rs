//! What the rate controller holds on paths that are shared, that change, or whose queue is other
//! than expected.
//!
//! The bounds are the targets in `scenarios`, or tighter. The example
//! `control` prints figures and targets. `FONTIS_SEED` chooses the seed; a failure names it.

use crate::support::figure::Figure;
use crate::support::scenarios;
use fontis_base::Duration;

fn seed() -> u64 {
    std::env::var("FONTIS_SEED").map_or(1, |text| text.parse().expect("a number"))
}

fn value(figures: &[Figure], name: &str) -> f64 {
    let figure = figures.iter().find(|figure| figure.name == name);
    figure.unwrap_or_else(|| panic!("no figure {name:?}")).value
}

/// Checks that a figure lies in a range.
fn check(figures: &[Figure], name: &str, least: f64, most: f64) {
    let value = value(figures, name);
    assert!(
        (least..=most).contains(&value),
        "seed {}: {}: {name} is {value}, not within {least} and {most}",
        seed(),
        figures[0].experiment
    );
}

#[test]
fn two_flows_come_to_equal_shares_and_drop_little() {
    for later in [500, 3000, 3400, 4700] {
        let figures = scenarios::two_flows(seed(), Duration::from_millis(later));
        check(&figures, "Jain, first 10 s", 0.85, 1.0);
        check(&figures, "Jain of 1 s >= 0.9 for good after, s", 0.0, 10.0);
        check(&figures, "Jain, 10 s to 30 s", 0.95, 1.0);
        check(&figures, "queue drops", 0.0, 0.02);
        check(&figures, "bottleneck used", 0.93, 1.01);
    }
}

#[test]
fn a_path_that_becomes_slower_is_followed_without_waste() {
    let figures = scenarios::slower(seed());
    check(&figures, "settled after, RTT", 0.0, 40.0);
    check(&figures, "waste, first 5 s", 0.0, 0.1);
    check(&figures, "steady rate / what the path carries", 0.95, 1.01);
}

#[test]
fn a_short_buffer_is_filled_without_waste() {
    let figures = scenarios::short_buffer(seed());
    check(&figures, "settled after, RTT", 0.0, 100.0);
    check(&figures, "waste, all", 0.0, 0.05);
    check(&figures, "steady rate / what the path carries", 0.9, 1.01);
}

#[test]
fn active_queue_management_is_no_obstacle() {
    let figures = scenarios::codel(seed());
    check(&figures, "settled after, RTT", 0.0, 100.0);
    check(&figures, "waste, all", 0.0, 0.05);
    check(&figures, "steady rate / what the path carries", 0.9, 1.01);
}

#[test]
fn a_policer_is_taken_for_what_it_is() {
    // It shows no queue: what it lets through is probed for and given way from, as TCP does.
    let figures = scenarios::policer(seed());
    check(&figures, "waste, first 5 s", 0.0, 0.1);
    check(&figures, "waste, all", 0.0, 0.1);
    check(&figures, "steady rate / what the path carries", 0.8, 1.05);
}

#[test]
fn a_slow_line_with_a_short_buffer_survives_the_start() {
    let figures = scenarios::slow_start(seed());
    check(&figures, "packets dropped in the first second", 0.0, 30.0);
    check(&figures, "waste, all", 0.0, 0.05);
    check(&figures, "steady rate / what the path carries", 0.9, 1.01);
}

#[test]
fn small_objects_come_in_hardly_more_than_the_path_takes() {
    for (size, most) in [(10_000, 1.15), (100_000, 1.2), (1_000_000, 1.5)] {
        for loss in [0.0, 0.1] {
            let figures = scenarios::small(size, loss, seed()..seed() + 40, most);
            check(&figures, "median / (2 RTT + serialisation)", 0.95, most);
            check(&figures, "p99 / median", 1.0, 1.6);
        }
    }
}
