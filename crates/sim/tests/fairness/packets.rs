//! Cascades by packets: weighted fair queues beside the closed form.

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

/// How queues are told of weights.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// As quanta of deficit round robin, worked out beforehand.
    Quanta,
    /// Each flow has its own.
    Flow,
    /// The flows of a traffic class have the same.
    Class,
    /// A traffic class has it as a whole.
    Turns,
}

/// The smallest quantum; others follow from weights.
const QUANTUM: f64 = 300.0;
/// Of a packet of 1000 bytes and headers of UDP and IPv4.
const PAYLOAD: f64 = 1000.0 / 1028.0;

/// Mean goodput of a user of each class in Mbit/s, behind two nodes that share by p^(1/α), of
/// senders that do not respond to loss.
fn goodputs(nodes: &[SharedNode; 2], classes: &[Class], queue: &str, by: By) -> Vec<f64> {
    let turns = if by == By::Turns { "class" } else { "flow" };
    let mut text = format!(
        "[scenario]\nduration = \"23 s\"\nwarmup = \"3 s\"\nsample = \"1 s\"\n\
         [topology]\nqueue = \"{queue}\"\nbuffer = \"40 packets\"\n\
         [queue]\nper_flow = true\nturns = \"{turns}\"\n"
    );
    let listed = |of: &dyn Fn(&Class) -> f64| {
        let texts: Vec<String> = classes.iter().map(|class| of(class).to_string()).collect();
        texts.join(":")
    };
    for (node, [from, to]) in nodes.iter().zip([["a", "b"], ["b", "c"]]) {
        let quantum = |class: &Class| (QUANTUM * node.notion.ratio(class.weight)).round();
        let alpha = node.notion.alpha();
        let sharing = match by {
            By::Quanta => format!("quanta = \"{}\"", listed(&quantum)),
            By::Flow => format!("alpha = {alpha}"),
            By::Class | By::Turns => {
                format!("alpha = {alpha}\nclass_weights = \"{}\"", listed(&|class| class.weight))
            }
        };
        write!(
            text,
            "[[link]]\nname = \"{from}{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             rate = \"{} Mbit/s\"\n{sharing}\n",
            node.capacity
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
        if by == By::Flow {
            writeln!(text, "weight = {}", class.weight).expect("a text");
        }
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
    SharedNode { capacity, notion: Notion::Alpha(log_uniform(s, 0.5, 5.0)), is_cell: false }
}

/// Two to three classes of one to six users.
fn classes(s: &mut Stream) -> Vec<Class> {
    let mut classes = vec![Class { count: 2 + s.below(5) as usize, weight: 1.0 }];
    for _ in 0..1 + s.below(2) {
        let weight = 2.0 + 2.0 * s.unit();
        classes.push(Class { count: 1 + s.below(5) as usize, weight });
    }
    classes
}

/// Shares behind both nodes: of a user of each class, or of each class if those take turns.
fn shares(nodes: &[SharedNode; 2], classes: &[Class], by: By) -> Vec<f64> {
    let alike = |class: &Class| if by == By::Turns { 1 } else { class.count };
    let users: Vec<User> = classes
        .iter()
        .flat_map(|class| std::iter::repeat_n(User::of(class.weight), alike(class)))
        .collect();
    let shares = cascade(nodes, &users).expect("shares").pop().expect("two nodes");
    let firsts = classes.iter().scan(0, |at, class| {
        let first = *at;
        *at += alike(class);
        Some(shares[first])
    });
    firsts.collect()
}

/// The largest difference between packets and the closed form; whether the order of the nodes
/// matters.
fn compare(seed: u64, s: &mut Stream, queue: &str, by: By) -> (f64, bool) {
    let nodes = [node(s), node(s)];
    let classes = classes(s);
    let (mut worst, mut found) = (0.0f64, Vec::new());
    for nodes in [nodes, [nodes[1], nodes[0]]] {
        let want = shares(&nodes, &classes, by);
        let got = goodputs(&nodes, &classes, queue, by);
        for ((class, got), want) in classes.iter().zip(got).zip(&want) {
            let users = if by == By::Turns { class.count as f64 } else { 1.0 };
            let (got, want) = (got * users, want * PAYLOAD);
            let differ = (got / want - 1.0).abs();
            assert!(differ < 0.05, "seed {seed}, {queue}: {got} for {want}");
            worst = worst.max(differ);
        }
        found.push(want);
    }
    let apart = found[0].iter().zip(&found[1]).any(|(a, b)| (a / b - 1.0).abs() > 0.05);
    (worst, apart)
}

#[test]
fn a_cascade_of_weighted_round_robin_in_either_order_gives_the_shares_of_the_closed_form() {
    let (worst, moved) = (Cell::new(0.0f64), Cell::new(0));
    each_of(8, "packets", |seed, s| {
        let (differ, apart) = compare(seed, s, "drr", By::Quanta);
        worst.set(worst.get().max(differ));
        moved.set(moved.get() + usize::from(apart));
    });
    println!("largest difference {:.5}; the order matters in {}", worst.get(), moved.get());
    assert!(moved.get() > 0 || std::env::var("FONTIS_RUNS").is_ok());
}

#[test]
fn weights_of_flows_and_of_classes_give_the_shares_of_the_closed_form_at_every_alpha() {
    let worst = Cell::new(0.0f64);
    each_of(2, "weights", |seed, s| {
        for queue in ["drr", "wfq"] {
            for by in [By::Flow, By::Class, By::Turns] {
                worst.set(worst.get().max(compare(seed, s, queue, by).0));
            }
        }
    });
    println!("largest difference {:.5}", worst.get());
}
