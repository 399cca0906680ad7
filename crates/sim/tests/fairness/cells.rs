//! Cascades of a radio cell and a backbone by packets, beside the closed form.

use std::cell::Cell;
use std::fmt::Write;

use fontis_base::Stream;
use fontis_sim::analysis::fairness::{Notion, SharedNode, User, cascade};
use fontis_sim::scenario::Scenario;

use super::random::{each_of, log_uniform};

/// Of a packet of 1000 bytes and headers of UDP and IPv4.
const PAYLOAD: f64 = 1000.0 / 1028.0;

/// Goodputs in Mbit/s of senders that do not respond to loss: from the cell to the backbone, and
/// from the backbone to the cell, at the same time.
fn goodputs(
    cell: &SharedNode,
    backbone: &SharedNode,
    queue: &str,
    users: &[User],
) -> [Vec<f64>; 2] {
    let mut text = format!(
        "[scenario]\nduration = \"45 s\"\nwarmup = \"15 s\"\nsample = \"1 s\"\n\
         [topology]\nbuffer = \"40 packets\"\n[queue]\nper_flow = true\n\
         [[link]]\nname = \"cell\"\nfrom = \"phones\"\nto = \"mast\"\nrate = \"{} Mbit/s\"\n\
         queue = \"cell\"\nalpha = {}\n\
         [[link]]\nname = \"backbone\"\nfrom = \"mast\"\nto = \"servers\"\nrate = \"{} Mbit/s\"\n\
         queue = \"{queue}\"\nalpha = {}\n",
        cell.capacity,
        cell.notion.alpha(),
        backbone.capacity,
        backbone.notion.alpha(),
    );
    let ways = [("up", "phones", "servers"), ("down", "servers", "phones")];
    for (way, from, to) in ways {
        for (number, user) in users.iter().enumerate() {
            let User { weight, radio, .. } = user;
            write!(
                text,
                "[[flow]]\nname = \"{way}{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
                 protocol = \"datagrams\"\napp = \"constant\"\nrate = \"20 Mbit/s\"\n\
                 piece = \"1000 B\"\naccess = \"100 Mbit/s\"\nweight = {weight}\n\
                 radio = \"{} Mbit/s\"\n",
                radio.expect("each has its own")
            )
            .expect("a text");
        }
    }
    let runs = Scenario::parse(&text).expect("a scenario").runs().expect("a run");
    let recording = runs[0].experiment.run(|| false).expect("nobody stops it");
    ways.map(|(way, ..)| {
        let goodput = |user| recording.metric("goodput", &format!("{way}{user}"));
        (0..users.len()).map(|user| goodput(user).expect("a goodput")).collect()
    })
}

/// Three to six users, whose radios differ up to eightfold.
fn users(s: &mut Stream) -> Vec<User> {
    let count = 3 + s.below(4);
    let user =
        |_| User { radio: Some(log_uniform(s, 1.5, 12.0)), ..User::of(1.0 + 2.0 * s.unit()) };
    (0..count).map(user).collect()
}

#[test]
fn a_cell_before_a_backbone_and_behind_it_gives_the_shares_of_the_closed_form() {
    let (worst, moved) = (Cell::new(0.0f64), Cell::new(0));
    each_of(6, "cells", |seed, s| {
        let users = users(s);
        let notion = |alpha| Notion::of(alpha).expect("an α");
        let cell = SharedNode {
            capacity: 5.0,
            notion: notion(if s.below(2) == 0 { 1.0 } else { log_uniform(s, 0.7, 2.0) }),
            is_cell: true,
        };
        // Between half and all of what the cell carries.
        let carried: f64 = cascade(&[cell], &users).expect("shares")[0].iter().sum();
        let backbone = SharedNode {
            capacity: (carried * (0.5 + 0.5 * s.unit()) * 10.0).round() / 10.0,
            notion: notion(log_uniform(s, 0.5, 5.0)),
            is_cell: false,
        };
        let queue = ["drr", "wfq"][s.below(2) as usize];
        let got = goodputs(&cell, &backbone, queue, &users);
        let mut found = Vec::new();
        for (nodes, got) in [[cell, backbone], [backbone, cell]].into_iter().zip(got) {
            let want = cascade(&nodes, &users).expect("shares").pop().expect("two nodes");
            for (got, want) in got.iter().zip(&want) {
                let differ = (got / (want * PAYLOAD) - 1.0).abs();
                assert!(differ < 0.05, "seed {seed}, {nodes:?}, {users:?}: {got} for {want}");
                worst.set(worst.get().max(differ));
            }
            found.push(want);
        }
        let apart = found[0].iter().zip(&found[1]).any(|(a, b)| (a / b - 1.0).abs() > 0.05);
        moved.set(moved.get() + usize::from(apart));
    });
    println!("largest difference {:.5}; the order matters in {}", worst.get(), moved.get());
    assert!(moved.get() > 0 || std::env::var("FONTIS_RUNS").is_ok());
}
