//! What notions of fairness give to users, at a node and at several in a row.

use core::str::FromStr;

use fontis_base::Rate;
use fontis_sim::analysis::fairness::{
    FairnessError, Notion, SharedNode, User, allocate, cascade, compare, equal_shares, trade,
};
use fontis_sim::recording::metrics::jain;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text;

/// What notions of fairness give to each user, at a node and at several in a row (Moktan 2020,
/// chapter 4)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Fairness {
    /// A node: its rate, and how it shares it: throughput, proportional, delay, max-min, or a
    /// number α. A single node without a notion is shared by each of them
    #[arg(value_name = "RATE[@NOTION]", required = true, num_args = 1..=16)]
    nodes: Vec<NodeText>,
    /// Users that are alike: their number, weight, and the most that each can use
    #[arg(long = "users", value_name = "N:WEIGHT[:RATE]", required = true)]
    classes: Vec<Class>,
    /// Also the weight that a preferred class may have so that Jain's index is no less than this
    #[arg(long, value_name = "INDEX", value_parser = index)]
    tolerate: Option<f64>,
}

const EXAMPLES: &str = "\
Examples:
  Ten users of weight 1 and ten of weight 2 at two nodes, in either order:
    fontis analyse fairness 200Mbit/s@0.5 100Mbit/s@2 --users 10:1 --users 10:2
  What each notion gives, where three users can use no more than 5 Mbit/s:
    fontis analyse fairness 100Mbit/s --users 3:1:5Mbit/s --users 5:2";

/// Users in all at most.
const MOST_USERS: u64 = 1_000_000;

#[derive(Clone, Debug)]
struct NodeText {
    /// Mbit/s.
    capacity: f64,
    notion: Option<Notion>,
}

impl FromStr for NodeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rate, notion) = match text.split_once('@') {
            Some((rate, notion)) => (rate, Some(notion)),
            None => (text, None),
        };
        let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
        let notion = notion.map(str::parse).transpose().map_err(|error| format!("{error}"))?;
        if rate == Rate::ZERO {
            return Err(format!("{text:?}: the rate must be more than zero"));
        }
        Ok(Self { capacity: rate.as_mbps_f64(), notion })
    }
}

#[derive(Clone, Debug)]
struct Class {
    count: u32,
    user: User,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} must be a number, a weight and maybe a rate, as in 10:2");
        let mut parts = text.splitn(3, ':');
        let count: u32 = parts.next().and_then(|count| count.parse().ok()).ok_or_else(form)?;
        let weight: f64 = parts.next().and_then(|weight| weight.parse().ok()).ok_or_else(form)?;
        let cap = match parts.next() {
            Some(rate) => rate.parse::<Rate>().map_err(|error| format!("{error}"))?.as_mbps_f64(),
            None => f64::INFINITY,
        };
        if count == 0 || !(weight > 0.0 && weight.is_finite()) {
            return Err(format!("{text:?}: the number and the weight must be more than zero"));
        }
        Ok(Self { count, user: User { weight, cap } })
    }
}

fn index(text: &str) -> Result<f64, String> {
    let index: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if index > 0.0 && index <= 1.0 {
        Ok(index)
    } else {
        Err("Jain's index is above 0 and at most 1".to_owned())
    }
}

pub(super) fn fairness(args: &Fairness) -> Result<(Value, Vec<String>), Failure> {
    let all: u64 = args.classes.iter().map(|class| u64::from(class.count)).sum();
    if all > MOST_USERS {
        return Err(Failure::Usage(format!("{all} users are more than {MOST_USERS}")));
    }
    let users: Vec<User> = args
        .classes
        .iter()
        .flat_map(|class| std::iter::repeat_n(class.user, class.count as usize))
        .collect();
    let found = match args.nodes.as_slice() {
        [NodeText { capacity, notion: None }] => notions(*capacity, &users),
        nodes => orders(&nodes_of(nodes)?, &users),
    };
    let found = found.map_err(|error| Failure::Usage(error.to_string()))?;
    let mut lines = vec![format!("{:<24} Mbit/s of a user of each class   Jain's index", "")];
    let mut values: Vec<Value> = Vec::new();
    let first = found.first().map(|(_, shares)| shares.clone()).unwrap_or_default();
    for (name, shares) in &found {
        let classes = by_class(&args.classes, shares);
        let cells: Vec<String> =
            classes.iter().map(|share| text::round(*share).to_string()).collect();
        let index = jain(shares);
        lines.push(format!("{name:<24} {}   {}", cells.join("  "), text::round(index)));
        values.push(json!({
            "name": name, "classes_mbps": classes, "jain": index,
            "sum_mbps": shares.iter().sum::<f64>(),
            "pareto_better_than_first": compare::is_pareto_better(&first, shares),
            "kaldor_hicks_better_than_first": compare::is_kaldor_hicks_better(&first, shares),
        }));
    }
    let mut value = json!({ "allocations": values });
    if let Some(index) = args.tolerate {
        let ratio = trade::greatest_ratio(index);
        let weights = [0.5, 1.0, 2.0, 5.0].map(|alpha| (alpha, trade::weight(ratio, alpha)));
        lines
            .push(format!("ratio of shares for a Jain's index of {index}  {}", text::round(ratio)));
        for (alpha, weight) in weights {
            lines.push(format!("  weight at α = {alpha}  {}", text::round(weight)));
        }
        value["greatest_ratio"] = json!(ratio);
        value["weights"] =
            weights.iter().map(|(a, w)| json!({ "alpha": a, "weight": w })).collect();
    }
    Ok((value, lines))
}

type Named = Vec<(String, Vec<f64>)>;

/// One node, by each notion.
fn notions(capacity: f64, users: &[User]) -> Result<Named, FairnessError> {
    let mut found = vec![("flow-rate equality".to_owned(), equal_shares(capacity, users)?)];
    for (name, notion) in [
        ("max-min", Notion::MaxMin),
        ("proportional", Notion::Alpha(1.0)),
        ("delay", Notion::Alpha(2.0)),
        ("throughput", Notion::Throughput),
    ] {
        found.push((name.to_owned(), allocate(capacity, users, notion)?));
    }
    Ok(found)
}

/// Nodes in a row: as they stand, in the other order, and with only their notions exchanged.
fn orders(nodes: &[SharedNode], users: &[User]) -> Result<Named, FairnessError> {
    let last = |nodes: &[SharedNode]| Ok(cascade(nodes, users)?.pop().unwrap_or_default());
    let mut found = vec![("as given".to_owned(), last(nodes)?)];
    if nodes.len() > 1 {
        let reversed: Vec<SharedNode> = nodes.iter().rev().copied().collect();
        let pairs = nodes.iter().zip(&reversed);
        let exchanged: Vec<SharedNode> =
            pairs.map(|(node, other)| SharedNode { notion: other.notion, ..*node }).collect();
        found.push(("nodes in reverse".to_owned(), last(&reversed)?));
        found.push(("notions in reverse".to_owned(), last(&exchanged)?));
    }
    Ok(found)
}

fn nodes_of(nodes: &[NodeText]) -> Result<Vec<SharedNode>, Failure> {
    let node = |(number, node): (usize, &NodeText)| match node.notion {
        Some(notion) => Ok(SharedNode { capacity: node.capacity, notion }),
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
