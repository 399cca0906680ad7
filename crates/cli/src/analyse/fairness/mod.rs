//! What notions of fairness give to users: at a node, at several in a row, in a network.

mod file;
mod networks;
mod rows;

use std::path::PathBuf;

use fontis_sim::analysis::fairness::{Notion, trade};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text;

/// What notions of fairness give to each user, at a node, at several in a row and in a network
/// (Moktan 2020, chapter 4)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Fairness {
    /// A node: its rate, and how it shares it: throughput, proportional, delay, max-min, or a
    /// number α. A single node without a notion is shared by each of them. cell:RATE is a radio
    /// cell, which shares its time
    #[arg(value_name = "[cell:]RATE[@NOTION]", required_unless_present = "network", num_args = 1..=16)]
    nodes: Vec<rows::NodeText>,
    /// Users that are alike: their number, weight, the most that each can use, and the rate of
    /// each one's radio; the cell's if there is none
    #[arg(
        long = "users",
        value_name = "N:WEIGHT[:[RATE][:RADIO]]",
        required_unless_present = "network",
        conflicts_with = "network"
    )]
    classes: Vec<rows::Class>,
    /// A network of nodes and of users that cross some of them, in TOML
    #[arg(long, value_name = "FILE", conflicts_with = "nodes")]
    network: Option<PathBuf>,
    /// Share the network by this notion, not by the file's [default: max-min, proportional and
    /// delay, if the file has none]
    #[arg(long, value_name = "NOTION", requires = "network")]
    notion: Option<Notion>,
    /// Also the weight that a preferred class may have so that Jain's index is no less than this
    #[arg(long, value_name = "INDEX", value_parser = index)]
    tolerate: Option<f64>,
}

const EXAMPLES: &str = "\
Examples:
  Ten users of weight 1 and ten of weight 2 at two nodes, in either order:
    fontis analyse fairness 200Mbit/s@0.5 100Mbit/s@2 --users 10:1 --users 10:2
  What each notion gives, where three users can use no more than 5 Mbit/s:
    fontis analyse fairness 100Mbit/s --users 3:1:5Mbit/s --users 5:2
  A radio cell before a backbone: one user near the mast, two far from it:
    fontis analyse fairness cell:10Mbit/s@proportional 6Mbit/s@max-min --users 1:1 --users 2:1::2Mbit/s
  A network, shared by its own notion or by another:
    fontis analyse fairness --network cell.toml
    fontis analyse fairness --network cell.toml --notion max-min --json

The file of a network; all but names, capacity and route may be left out:
  notion = \"proportional\"
  [[node]]
  name = \"cell\"
  capacity = \"20Mbit/s\"
  [[user]]
  name = \"phone\"
  route = [\"cell\"]
  weight = 2
  cap = \"5Mbit/s\"
  count = 10";

fn index(text: &str) -> Result<f64, String> {
    let index: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if index > 0.0 && index <= 1.0 {
        Ok(index)
    } else {
        Err("Jain's index is above 0 and at most 1".to_owned())
    }
}

pub(super) fn fairness(args: &Fairness) -> Result<(Value, Vec<String>), Failure> {
    let (mut value, mut lines) = match &args.network {
        Some(path) => networks::allocations(&file::read(path)?, args.notion)?,
        None => rows::allocations(&args.nodes, &args.classes)?,
    };
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
