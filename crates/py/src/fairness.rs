//! Fair assignment, as the command computes it.

use fontis_sim::analysis::fairness::{
    self, FairnessError, Notion, SharedNode, User, compare, trade,
};
use pyo3::prelude::*;

use crate::error::{failed, usage};

/// A notion by its name or its α.
#[derive(FromPyObject)]
pub(crate) enum NotionArgument {
    Alpha(f64),
    Name(String),
}

impl NotionArgument {
    fn get(self) -> PyResult<Notion> {
        let text = match self {
            Self::Name(name) => name,
            Self::Alpha(f64::INFINITY) => return Ok(Notion::MaxMin),
            Self::Alpha(alpha) => alpha.to_string(),
        };
        text.parse().map_err(usage)
    }
}

/// A user: weight, cap, and maybe the rate of its radio.
#[derive(FromPyObject)]
pub(crate) enum UserArgument {
    OfCell(f64, f64, Option<f64>),
    OfNode(f64, f64),
}

fn users_of(users: Vec<UserArgument>) -> Vec<User> {
    let user = |user| match user {
        UserArgument::OfCell(weight, cap, radio) => User { weight, cap, radio },
        UserArgument::OfNode(weight, cap) => User { weight, cap, radio: None },
    };
    users.into_iter().map(user).collect()
}

/// A node: capacity, notion, and maybe whether it is a radio cell.
#[derive(FromPyObject)]
pub(crate) enum NodeArgument {
    OfKind(f64, NotionArgument, bool),
    Node(f64, NotionArgument),
}

fn exception(error: FairnessError) -> PyErr {
    match error {
        FairnessError::Unsettled => failed(error),
        _ => usage(error),
    }
}

/// Shares of a node.
#[pyfunction]
pub(crate) fn allocate(
    capacity: f64,
    users: Vec<UserArgument>,
    notion: NotionArgument,
) -> PyResult<Vec<f64>> {
    fairness::allocate(capacity, &users_of(users), notion.get()?).map_err(exception)
}

/// Shares of a radio cell.
#[pyfunction]
pub(crate) fn allocate_cell(
    rate: f64,
    users: Vec<UserArgument>,
    notion: NotionArgument,
) -> PyResult<Vec<f64>> {
    fairness::allocate_cell(rate, &users_of(users), notion.get()?).map_err(exception)
}

/// Flow-rate equality at a node.
#[pyfunction]
pub(crate) fn equal_shares(capacity: f64, users: Vec<UserArgument>) -> PyResult<Vec<f64>> {
    fairness::equal_shares(capacity, &users_of(users)).map_err(exception)
}

/// Shares behind each of some nodes in a row.
#[pyfunction]
pub(crate) fn cascade(
    nodes: Vec<NodeArgument>,
    users: Vec<UserArgument>,
) -> PyResult<Vec<Vec<f64>>> {
    let node = |node| {
        let (capacity, notion, is_cell) = match node {
            NodeArgument::OfKind(capacity, notion, is_cell) => (capacity, notion, is_cell),
            NodeArgument::Node(capacity, notion) => (capacity, notion, false),
        };
        Ok(SharedNode { capacity, notion: notion.get()?, is_cell })
    };
    let nodes = nodes.into_iter().map(node).collect::<PyResult<Vec<_>>>()?;
    fairness::cascade(&nodes, &users_of(users)).map_err(exception)
}

/// Shares of a network.
#[pyfunction]
pub(crate) fn network(
    py: Python<'_>,
    capacities: Vec<f64>,
    users: Vec<UserArgument>,
    routes: Vec<Vec<usize>>,
    notion: NotionArgument,
) -> PyResult<Vec<f64>> {
    let notion = notion.get()?;
    let users = users_of(users);
    py.detach(|| fairness::network(&capacities, &users, &routes, notion)).map_err(exception)
}

/// Whether somebody gains and nobody loses.
#[pyfunction]
pub(crate) fn is_pareto_better(before: Vec<f64>, after: Vec<f64>) -> PyResult<bool> {
    same_length(&before, &after)?;
    Ok(compare::is_pareto_better(&before, &after))
}

/// Whether those who gain could compensate those who lose.
#[pyfunction]
pub(crate) fn is_kaldor_hicks_better(before: Vec<f64>, after: Vec<f64>) -> PyResult<bool> {
    same_length(&before, &after)?;
    Ok(compare::is_kaldor_hicks_better(&before, &after))
}

/// Whether nobody can have more of a node without another's loss.
#[pyfunction]
pub(crate) fn is_pareto_optimal(capacity: f64, caps: Vec<f64>, shares: Vec<f64>) -> PyResult<bool> {
    same_length(&caps, &shares)?;
    Ok(compare::is_pareto_optimal(capacity, &caps, &shares))
}

fn same_length(one: &[f64], other: &[f64]) -> PyResult<()> {
    if one.len() == other.len() {
        return Ok(());
    }
    Err(usage(format!("both lists must be of one length: {} and {}", one.len(), other.len())))
}

/// A point of an indifference curve.
#[pyfunction]
pub(crate) fn indifferent(
    notion: NotionArgument,
    weights: [f64; 2],
    through: [f64; 2],
    first: f64,
) -> PyResult<Option<f64>> {
    Ok(compare::indifferent(notion.get()?, weights, through, first))
}

/// Jain's index of two classes.
#[pyfunction]
pub(crate) fn jain_of_classes(mix: f64, ratio: f64) -> f64 {
    trade::jain_of_classes(mix, ratio)
}

/// The least index of a ratio, and the mix that has it.
#[pyfunction]
pub(crate) fn least_jain(ratio: f64) -> (f64, f64) {
    trade::least_jain(ratio)
}

/// The largest ratio that keeps an index.
#[pyfunction]
pub(crate) fn greatest_ratio(jain: f64) -> f64 {
    trade::greatest_ratio(jain)
}

/// The weight that gives a ratio.
#[pyfunction]
pub(crate) fn weight(ratio: f64, alpha: f64) -> f64 {
    trade::weight(ratio, alpha)
}
