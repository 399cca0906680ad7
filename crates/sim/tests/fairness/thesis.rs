//! Figures 4.3 and 4.4 and Table 4.1 of Moktan, "Resource Assignments in Network Data Transport".

use fontis_sim::analysis::fairness::{Notion, SharedNode, User, allocate, cascade, compare, trade};
use fontis_sim::recording::metrics::jain;

use super::close;
use super::random::{alpha, each_seed, log_uniform};

#[test]
fn figure_4_3_the_share_of_a_preferred_user_falls_with_alpha() {
    let weights = [1.0, 2.0, 5.0, 10.0, 20.0];
    for (alpha, percent) in [
        (0.1, [50.0, 99.902, 100.0, 100.0, 100.0]),
        (0.5, [50.0, 80.0, 96.154, 99.010, 99.751]),
        (1.0, [50.0, 66.667, 83.333, 90.909, 95.238]),
        (2.0, [50.0, 58.579, 69.098, 75.975, 81.726]),
        (5.0, [50.0, 53.460, 57.978, 61.314, 64.546]),
        (10.0, [50.0, 51.732, 54.015, 55.731, 57.434]),
    ] {
        let share = |weight: &f64| {
            let users = [User::of(1.0), User::of(*weight)];
            allocate(100.0, &users, Notion::Alpha(alpha)).expect("shares")[1]
        };
        close(&weights.iter().map(share).collect::<Vec<_>>(), &percent, 5e-4);
    }
}

#[test]
fn figure_4_4_the_least_index_moves_with_the_weight() {
    for (alpha, minima) in [
        (1.0, [(7, 0.889), (5, 0.750), (4, 0.640), (3, 0.5565)]),
        (2.0, [(8, 0.9706), (7, 0.9283), (7, 0.889), (6, 0.8542)]),
    ] {
        for (weight, (preferred, index)) in [2.0, 3.0, 4.0, 5.0].into_iter().zip(minima) {
            let of = |k: usize| {
                let users: Vec<User> =
                    (0..20).map(|at| User::of(if at < k { weight } else { 1.0 })).collect();
                let shares = allocate(2000.0, &users, Notion::Alpha(alpha)).expect("shares");
                let ratio = Notion::Alpha(alpha).ratio(weight);
                let index = jain(&shares);
                assert!((index - trade::jain_of_classes(k as f64 / 20.0, ratio)).abs() < 1e-12);
                assert!(index >= trade::least_jain(ratio).0 - 1e-12);
                index
            };
            let least = (0..=20).min_by(|a, b| of(*a).total_cmp(&of(*b))).expect("some");
            assert_eq!(least, preferred, "α {alpha} weight {weight}");
            assert!((of(least) - index).abs() < 5e-4, "{}", of(least));
        }
    }
    for (index, ratio) in [(0.95, 1.576), (0.90, 1.925), (0.85, 2.264)] {
        let found = trade::greatest_ratio(index);
        assert!((found - ratio).abs() < 5e-4, "{found}");
        assert!((trade::least_jain(found).0 - index).abs() < 1e-12);
        assert!((Notion::Alpha(2.0).ratio(trade::weight(found, 2.0)) - found).abs() < 1e-12);
    }
}

const ALPHAS: [f64; 7] = [0.2, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0];

/// Shares of the first class and indices as printed, a row for each α of the first node.
const PRINTED: [[(f64, f64); 7]; 3] = [
    [
        (0.307, 0.532),
        (0.615, 0.565),
        (0.615, 0.565),
        (0.615, 0.565),
        (0.615, 0.565),
        (0.615, 0.565),
        (0.615, 0.565),
    ],
    [
        (0.307, 0.532),
        (2.009, 0.737),
        (3.34, 0.901),
        (3.869, 0.951),
        (4.019, 0.963),
        (4.019, 0.963),
        (4.019, 0.963),
    ],
    [
        (0.307, 0.532),
        (2.009, 0.737),
        (3.34, 0.901),
        (3.869, 0.951),
        (4.146, 0.972),
        (4.655, 0.995),
        (4.827, 0.999),
    ],
];

#[test]
fn table_4_1_has_the_closed_form_and_the_printed_numbers() {
    let users: Vec<User> = (0..20).map(|at| User::of(if at < 10 { 1.0 } else { 2.0 })).collect();
    for (row, first) in ALPHAS.into_iter().enumerate() {
        for (column, second) in ALPHAS.into_iter().enumerate() {
            let node = |capacity, alpha| SharedNode {
                capacity,
                notion: Notion::Alpha(alpha),
                is_cell: false,
            };
            let nodes = [node(200.0, first), node(100.0, second)];
            let shares = cascade(&nodes, &users).expect("shares").pop().expect("two nodes");
            // The first node's share of the first class, if the second would give more.
            let alone =
                |capacity: f64, alpha: f64| capacity / (10.0 + 10.0 * 2f64.powf(1.0 / alpha));
            let exact = alone(200.0, first).min(alone(100.0, second));
            close(&[shares[0], shares[19]], &[exact, 10.0 - exact], 1e-9);
            let (printed, index) = PRINTED[row.min(2)][column];
            assert!((shares[0] - printed).abs() < 0.02, "{first} {second}: {}", shares[0]);
            assert!((jain(&shares) - index).abs() < 0.003, "{first} {second}");
        }
    }
}

#[test]
fn a_cascade_of_two_classes_is_capped_where_the_closed_form_says() {
    each_seed("cascade", |seed, s| {
        let counts = [1 + s.below(20), 1 + s.below(20)];
        let (weight, alphas) = (log_uniform(s, 1.0, 10.0), [alpha(s), alpha(s)]);
        let capacities = [log_uniform(s, 10.0, 1000.0), log_uniform(s, 10.0, 1000.0)];
        let users: Vec<User> = (0..counts[0] + counts[1])
            .map(|at| User::of(if at < counts[0] { 1.0 } else { weight }))
            .collect();
        let node = |at: usize| SharedNode {
            capacity: capacities[at],
            notion: Notion::Alpha(alphas[at]),
            is_cell: false,
        };
        let shares = cascade(&[node(0), node(1)], &users).expect("shares").pop().expect("two");
        let [a, b] = counts.map(|count| count as f64);
        let ratio = |at: usize| weight.powf(1.0 / alphas[at]);
        let alone = |at: usize| capacities[at] / (a + b * ratio(at));
        let first = if capacities[0] <= capacities[1] { alone(0) } else { alone(0).min(alone(1)) };
        let least = capacities[0].min(capacities[1]);
        // The second class may be the one that the first node holds back.
        let second = ((least - a * first) / b).min(ratio(0) * alone(0));
        let first = if capacities[0] <= capacities[1] {
            first
        } else {
            first.max((least - b * second) / a).min(alone(0))
        };
        let got = [shares[0], *shares.last().expect("users")];
        let bound = 1e-9 * capacities[0].max(capacities[1]);
        assert!((got[0] - first).abs() < bound, "seed {seed}: {got:?} {first}");
        assert!((got[1] - second).abs() < bound, "seed {seed}: {got:?} {second}");
    });
}

#[test]
fn indifferent_points_are_worth_the_same() {
    each_seed("indifferent", |seed, s| {
        let alpha = alpha(s);
        let weights = [log_uniform(s, 0.2, 5.0), log_uniform(s, 0.2, 5.0)];
        let through = [log_uniform(s, 0.5, 5.0), log_uniform(s, 0.5, 5.0)];
        let first = log_uniform(s, 0.1, 20.0);
        let worth =
            |x: f64| if alpha == 1.0 { x.ln() } else { x.powf(1.0 - alpha) / (1.0 - alpha) };
        let sum = |x: f64, y: f64| weights[0] * worth(x) + weights[1] * worth(y);
        let wanted = sum(through[0], through[1]);
        match compare::indifferent(Notion::Alpha(alpha), weights, through, first) {
            Some(second) => {
                let differ = (sum(first, second) - wanted).abs() / wanted.abs().max(1.0);
                assert!(differ < 1e-9, "seed {seed}: {differ:e}");
            }
            // The first alone is worth more, or nothing makes up for it.
            None if alpha < 1.0 => assert!(sum(first, 0.0) > wanted, "seed {seed}"),
            None => {
                assert!(alpha > 1.0 && sum(first, 1e12) < wanted + 1e-6, "seed {seed}: {alpha}");
            }
        }
    });
    let [notion, low] = [Notion::MaxMin, Notion::Throughput];
    assert_eq!(compare::indifferent(notion, [1.0; 2], [2.0, 3.0], 5.0), Some(2.0));
    assert_eq!(compare::indifferent(notion, [1.0; 2], [2.0, 3.0], 1.0), None);
    assert_eq!(compare::indifferent(low, [1.0, 2.0], [2.0, 3.0], 4.0), Some(2.0));
}

#[test]
fn who_gains_and_who_could_compensate() {
    assert!(compare::is_pareto_better(&[1.0, 2.0], &[1.0, 3.0]));
    assert!(!compare::is_pareto_better(&[1.0, 2.0], &[0.9, 9.0]));
    assert!(compare::is_kaldor_hicks_better(&[1.0, 2.0], &[0.9, 9.0]));
    assert!(!compare::is_kaldor_hicks_better(&[1.0, 2.0], &[2.0, 1.0]));
    let none = f64::INFINITY;
    assert!(compare::is_pareto_optimal(10.0, &[none, none], &[4.0, 6.0]));
    assert!(!compare::is_pareto_optimal(10.0, &[none, none], &[4.0, 5.0]));
    assert!(compare::is_pareto_optimal(10.0, &[4.0, 5.0], &[4.0, 5.0]));
}
