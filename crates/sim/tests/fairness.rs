//! Fair shares: of a node, of nodes in a row, of networks.
//!
//! `FONTIS_RUNS` sets how many random networks of each kind (100 by default), `FONTIS_SEED` the
//! first seed. A failure names the seed that repeats it.

mod cells;
mod known;
mod oracle;
mod packets;
mod random;
mod thesis;

use fontis_sim::analysis::fairness::{FairnessError, Notion, User, allocate, network};

fn close(got: &[f64], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len());
    let is_close = got.iter().zip(want).all(|(a, b)| (a - b).abs() <= bound);
    assert!(is_close, "{got:?} for {want:?}");
}

#[test]
fn a_ratio_of_weights_too_large_for_a_float_is_shared() {
    let users = [User { cap: 5.0, ..User::of(1.0) }, User::of(0.1)];
    let least = Notion::of(0.001).expect("the least α");
    // The second has 1e−1000 of what the first would have, but the first can use no more than 5.
    assert_eq!(allocate(100.0, &users, least), Ok(vec![5.0, 95.0]));
    let of_network = network(&[100.0], &users, &[vec![0], vec![0]], least).expect("shares");
    close(&of_network, &[5.0, 95.0], 1e-9);
    let without_caps = [User::of(1.0), User::of(0.1)];
    assert_eq!(allocate(100.0, &without_caps, least), Ok(vec![100.0, 0.0]));
    let all = [User { cap: 0.0, ..User::of(1e300) }, User::of(1e-300), User::of(1e-300)];
    assert_eq!(allocate(10.0, &all, least), Ok(vec![0.0, 5.0, 5.0]));
}

#[test]
fn a_node_that_is_exactly_full_without_a_price_is_shared_to_1e_minus_9() {
    // The first node leaves the first user just what the second node has.
    let users = [User::of(1.0), User::of(1.0)];
    for alpha in [0.1, 0.5, 1.0, 2.0, 5.0, 20.0] {
        let shares = network(&[10.0, 5.0], &users, &[vec![0, 1], vec![0]], Notion::Alpha(alpha));
        close(&shares.expect("shares"), &[5.0, 5.0], 1e-9);
    }
}

#[test]
fn a_chain_of_nodes_has_the_closed_form() {
    // One user crosses all nodes, each of which has one of its own: 1/(1 + K^(1/α)) of a node.
    for alpha in [0.2, 0.5, 1.0, 2.0, 3.7, 8.0] {
        for nodes in [1, 2, 7, 30] {
            let routes: Vec<Vec<usize>> = std::iter::once((0..nodes).collect())
                .chain((0..nodes).map(|node| vec![node]))
                .collect();
            let users = vec![User::of(3.0); nodes + 1];
            let shares = network(&vec![100.0; nodes], &users, &routes, Notion::Alpha(alpha));
            let shares = shares.expect("shares");
            let long = 100.0 / (1.0 + (nodes as f64).powf(1.0 / alpha));
            close(&shares[..1], &[long], 1e-9);
            close(&shares[1..], &vec![100.0 - long; nodes], 1e-9);
        }
    }
}

#[test]
fn a_network_that_cannot_be_shared_is_an_error() {
    let share = |capacity: f64, route: Vec<usize>, notion| {
        network(&[capacity, 1.0], &[User::of(1.0)], &[route], notion)
    };
    let proportional = Notion::Alpha(1.0);
    assert_eq!(share(1.0, vec![2], proportional), Err(FairnessError::Route(1)));
    assert_eq!(share(1.0, vec![], proportional), Err(FairnessError::Route(1)));
    assert_eq!(share(1.0, vec![0, 0], proportional), Err(FairnessError::Route(1)));
    assert_eq!(share(f64::NAN, vec![0], proportional), Err(FairnessError::Capacity(1)));
    assert_eq!(share(1.0, vec![0], Notion::Throughput), Err(FairnessError::Throughput));
    // Where a price overflows, there is an error and not a share without end.
    let far = [(1e90, f64::INFINITY), (1e111, 1e-137), (1e78, 1e-37)];
    let far = far.map(|(weight, cap)| User { cap, ..User::of(weight) });
    let routes = [vec![1, 0], vec![0], vec![1]];
    let small = network(&[1e-113, 1e-6], &far, &routes, Notion::Alpha(10.0));
    assert!(small.as_ref().is_err() || small.as_ref().is_ok_and(|x| x[0] <= 1e-113), "{small:?}");
    // Prices of 10^±3000 are no numbers; there are no old shares in place of an answer.
    let users = [User::of(1.0), User::of(1.0), User::of(1.0)];
    let routes = [vec![0, 1], vec![0], vec![1]];
    let far = network(&[1e-3, 1e3], &users, &routes, Notion::Alpha(1000.0));
    assert!(far.is_err() || far.as_ref().is_ok_and(|x| (x[0] - 5e-4).abs() < 1e-6), "{far:?}");
}
