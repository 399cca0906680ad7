//! Cascades by packets: weighted deficit round robin beside the closed form.

use std::cell::Cell;
use std::fmt::Write;

use fontis_base::Stream;
use fontis_sim::analysis::fairness::{Notion, SharedNode, User, cascade};
use fontis_sim::scenario::Scenario;

use super::random::{each_of, log_uniform};

/// Users that are alike.
struct Class {
    count: usize,
    weight: f64,
}

/// The smallest quantum; others follow from weights.
const QUANTUM: f64 = 300.0;
/// Of a packet of 1000 bytes and headers of UDP and IPv4.
const PAYLOAD: f64 = 1000.0 / 1028.0;

/// Mean goodput of a user of each class in Mbit/s, behind two nodes whose quanta are p^(1/α), of
/// senders that do not respond to loss.
fn goodputs(nodes: &[SharedNode; 2], classes: &[Class]) -> Vec<f64> {
    let mut text = "[scenario]\nduration = \"23 s\"\nwarmup = \"3 s\"\nsample = \"1 s\"\n\
                    [topology]\nqueue = \"drr\"\nbuffer = \"40 packets\"\n\
                    [queue]\nper_flow = true\n"
        .to_owned();
    for (node, [from, to]) in nodes.iter().zip([["a", "b"], ["b", "c"]]) {
        let quantum = |class: &Class| (QUANTUM * node.notion.ratio(class.weight)).round();
        let quanta: Vec<String> = classes.iter().map(|class| quantum(class).to_string()).collect();
        write!(
            text,
            "[[link]]\nname = \"{from}{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             rate = \"{} Mbit/s\"\nquanta = \"{}\"\n",
            node.capacity,
            quanta.join(":")
        )
        .expect("a text");
    }
    for (number, class) in classes.iter().enumerate() {
        write!(
            text,
            "[[flow]]\nname = \"c{number}\"\ncount = {}\nfrom = \"a\"\nto = \"c\"\n\
             protocol = \"datagrams\"\napp = \"constant\"\nrate = \"{} Mbit/s\"\npiece = \"1000 B\"\n\
             access = \"100 Mbit/s\"\nclass = {number}\n",
            class.count, nodes[0].capacity
        )
        .expect("a text");
    }
    let runs = Scenario::parse(&text).expect("a scenario").runs().expect("a run");
    let recording = runs[0].experiment.run(|| false).expect("nobody stops it");
    let goodput = |name: String| recording.metric("goodput", &name).expect("a goodput");
    let mean = |(number, class): (usize, &Class)| {
        let each = (1..=class.count).map(|at| match class.count {
            1 => goodput(format!("c{number}")),
            _ => goodput(format!("c{number}.{at}")),
        });
        each.sum::<f64>() / class.count as f64
    };
    classes.iter().enumerate().map(mean).collect()
}

fn node(s: &mut Stream) -> SharedNode {
    let capacity = (8.0 + 12.0 * s.unit()).round();
    SharedNode { capacity, notion: Notion::Alpha(log_uniform(s, 0.5, 5.0)) }
}

#[test]
fn a_cascade_of_weighted_round_robin_in_either_order_gives_the_shares_of_the_closed_form() {
    let (worst, moved) = (Cell::new(0.0f64), Cell::new(0));
    each_of(8, "packets", |seed, s| {
        let nodes = [node(s), node(s)];
        let mut classes = vec![Class { count: 2 + s.below(5) as usize, weight: 1.0 }];
        for _ in 0..1 + s.below(2) {
            let weight = 2.0 + 2.0 * s.unit();
            classes.push(Class { count: 1 + s.below(5) as usize, weight });
        }
        let users: Vec<User> = classes
            .iter()
            .flat_map(|class| std::iter::repeat_n(User::of(class.weight), class.count))
            .collect();
        let mut found: Vec<Vec<f64>> = Vec::new();
        for nodes in [nodes, [nodes[1], nodes[0]]] {
            let shares = cascade(&nodes, &users).expect("shares").pop().expect("two nodes");
            let mut at = 0;
            for (class, got) in classes.iter().zip(goodputs(&nodes, &classes)) {
                let want = shares[at] * PAYLOAD;
                at += class.count;
                let differ = (got / want - 1.0).abs();
                assert!(differ < 0.05, "seed {seed}: {got} for {want}");
                worst.set(worst.get().max(differ));
            }
            found.push(shares);
        }
        let apart = found[0].iter().zip(&found[1]).any(|(a, b)| (a / b - 1.0).abs() > 0.05);
        moved.set(moved.get() + usize::from(apart));
    });
    println!("largest difference {:.5}; the order matters in {}", worst.get(), moved.get());
    assert!(moved.get() > 0 || std::env::var("FONTIS_RUNS").is_ok());
}
