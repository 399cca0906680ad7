//! Notions at a node, and at several in a row.

use core::str::FromStr;

use fontis_base::Rate;
use fontis_sim::analysis::fairness::{
    FairnessError, Notion, SharedNode, User, allocate, allocate_cell, cascade, compare,
    equal_shares,
};
use fontis_sim::recording::metrics::jain;
use serde_json::{Value, json};

use super::file::MOST_USERS;
use crate::analyse::table::{aligned, cell};
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(super) struct NodeText {
    /// Mbit/s.
    capacity: f64,
    notion: Option<Notion>,
    is_cell: bool,
}

impl FromStr for NodeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (text, is_cell) = match text.strip_prefix("cell:") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (rate, notion) = match text.split_once('@') {
            Some((rate, notion)) => (rate, Some(notion)),
            None => (text, None),
        };
        let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
        let notion = notion.map(str::parse).transpose().map_err(|error| format!("{error}"))?;
        if rate == Rate::ZERO {
            return Err(format!("{text:?}: the rate must be more than zero"));
        }
        Ok(Self { capacity: rate.as_mbps_f64(), notion, is_cell })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Class {
    count: u32,
    user: User,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "{text:?} must be a number, a weight, and maybe a rate and a radio's rate, as in \
                 10:2 or 10:2::6Mbit/s"
            )
        };
        let mut parts = text.splitn(4, ':');
        let count: u32 = parts.next().and_then(|count| count.parse().ok()).ok_or_else(form)?;
        let weight: f64 = parts.next().and_then(|weight| weight.parse().ok()).ok_or_else(form)?;
        let mut rate = || {
            let rate = parts.next().filter(|rate| !rate.is_empty())?;
            Some(rate.parse::<Rate>().map_err(|error| format!("{error}")))
        };
        let cap = rate().transpose()?.map_or(f64::INFINITY, Rate::as_mbps_f64);
        let radio = rate().transpose()?.map(Rate::as_mbps_f64);
        if radio == Some(0.0) {
            return Err(format!("{text:?}: the radio's rate must be more than zero"));
        }
        if count == 0 || !(weight > 0.0 && weight.is_finite()) {
            return Err(format!("{text:?}: the number and the weight must be more than zero"));
        }
        Ok(Self { count, user: User { weight, cap, radio } })
    }
}

/// Shares behind each node of a row.
struct Allocation {
    name: String,
    nodes: Vec<SharedNode>,
    shares: Vec<Vec<f64>>,
}

impl Allocation {
    fn last(&self) -> &[f64] {
        self.shares.last().map_or(&[], Vec::as_slice)
    }
}

pub(super) fn allocations(
    nodes: &[NodeText],
    classes: &[Class],
) -> Result<(Value, Vec<String>), Failure> {
    let all: u64 = classes.iter().map(|class| u64::from(class.count)).sum();
    if all > MOST_USERS {
        return Err(Failure::Usage(format!("{all} users are more than {MOST_USERS}")));
    }
    let users: Vec<User> = classes
        .iter()
        .flat_map(|class| std::iter::repeat_n(class.user, class.count as usize))
        .collect();
    let found = match nodes {
        [NodeText { capacity, notion: None, is_cell }] => notions(*capacity, &users, *is_cell),
        nodes => orders(&nodes_of(nodes)?, &users),
    };
    let found = found.map_err(|error| Failure::Usage(error.to_string()))?;
    let classes_of = |class: &Class| match class.user.radio {
        None => format!("weight {}", class.user.weight),
        Some(radio) => format!("weight {}, radio {}", class.user.weight, cell(radio)),
    };
    let mut rows = vec![vec!["Mbit/s of a user".to_owned()]];
    rows[0].extend(classes.iter().map(classes_of));
    rows[0].extend(["sum".to_owned(), "Jain's index".to_owned()]);
    let row = |name: String, shares: &[f64]| {
        let numbers = by_class(classes, shares).into_iter();
        let numbers = numbers.chain([shares.iter().sum(), jain(shares)]);
        std::iter::once(name).chain(numbers.map(cell)).collect::<Vec<_>>()
    };
    for allocation in &found {
        match allocation.nodes.as_slice() {
            [] => rows.push(row(allocation.name.clone(), allocation.last())),
            nodes => {
                rows.push(vec![format!("{}:", allocation.name)]);
                for (node, shares) in nodes.iter().zip(&allocation.shares) {
                    let kind = if node.is_cell { "cell of " } else { "" };
                    let name = format!("  {kind}{} Mbit/s, {}", cell(node.capacity), node.notion);
                    rows.push(row(name, shares));
                }
            }
        }
    }
    let first = found.first().map_or(&[][..], Allocation::last);
    let values: Vec<Value> = found.iter().map(|of| value(of, classes, first)).collect();
    Ok((json!({ "allocations": values }), aligned(&rows)))
}

/// What is left behind the last node, and behind each.
fn value(of: &Allocation, classes: &[Class], first: &[f64]) -> Value {
    let shares = of.last();
    let node = |(node, shares): (&SharedNode, &Vec<f64>)| {
        json!({
            "capacity_mbps": node.capacity, "cell": node.is_cell, "notion": node.notion.to_string(),
            "classes_mbps": by_class(classes, shares), "jain": jain(shares),
            "sum_mbps": shares.iter().sum::<f64>(),
        })
    };
    let mut value = json!({
        "name": of.name, "classes_mbps": by_class(classes, shares), "jain": jain(shares),
        "sum_mbps": shares.iter().sum::<f64>(),
        "pareto_better_than_first": compare::is_pareto_better(first, shares),
        "kaldor_hicks_better_than_first": compare::is_kaldor_hicks_better(first, shares),
    });
    if !of.nodes.is_empty() {
        value["nodes"] = of.nodes.iter().zip(&of.shares).map(node).collect();
    }
    value
}

/// One node, by each notion.
fn notions(capacity: f64, users: &[User], is_cell: bool) -> Result<Vec<Allocation>, FairnessError> {
    let of = |name: &str, shares: Vec<f64>| Allocation {
        name: name.to_owned(),
        nodes: Vec::new(),
        shares: vec![shares],
    };
    let share = if is_cell { allocate_cell } else { allocate };
    let mut found = match is_cell {
        true => Vec::new(),
        false => vec![of("flow-rate equality", equal_shares(capacity, users)?)],
    };
    for (name, notion) in [
        ("max-min", Notion::MaxMin),
        ("proportional", Notion::Alpha(1.0)),
        ("delay", Notion::Alpha(2.0)),
        ("throughput", Notion::Throughput),
    ] {
        found.push(of(name, share(capacity, users, notion)?));
    }
    Ok(found)
}

/// Nodes in a row: as they stand, in the other order, and with only their notions exchanged.
fn orders(nodes: &[SharedNode], users: &[User]) -> Result<Vec<Allocation>, FairnessError> {
    let of = |name: &str, nodes: Vec<SharedNode>| {
        let shares = cascade(&nodes, users)?;
        Ok(Allocation { name: name.to_owned(), nodes, shares })
    };
    let mut found = vec![of("as given", nodes.to_vec())?];
    if nodes.len() > 1 {
        let reversed: Vec<SharedNode> = nodes.iter().rev().copied().collect();
        let pairs = nodes.iter().zip(&reversed);
        let exchanged: Vec<SharedNode> =
            pairs.map(|(node, other)| SharedNode { notion: other.notion, ..*node }).collect();
        found.push(of("nodes in reverse", reversed)?);
        found.push(of("notions in reverse", exchanged)?);
    }
    Ok(found)
}

fn nodes_of(nodes: &[NodeText]) -> Result<Vec<SharedNode>, Failure> {
    let node = |(number, node): (usize, &NodeText)| match node.notion {
        Some(notion) => Ok(SharedNode { capacity: node.capacity, notion, is_cell: node.is_cell }),
        None => Err(Failure::Usage(format!(
            "node {number} needs a notion of fairness, as in 100Mbit/s@proportional"
        ))),
    };
    (1..).zip(nodes).map(node).collect()
}

fn by_class(classes: &[Class], shares: &[f64]) -> Vec<f64> {
    let mut at = 0;
    let first = |class: &Class| {
        let share = shares[at];
        at += class.count as usize;
        share
    };
    classes.iter().map(first).collect()
}
