//! Fair assignment of capacity: what each notion of fairness gives to each user, at one node, at
//! several in a row, and in a network.
//!
//! Start here: [`allocate`] shares one node by a [`Notion`], [`allocate_cell`] the time of a radio
//! cell; [`cascade`] passes what one node
//! gives on to the next, as in Moktan, "Resource Assignments in Network Data Transport" (Aalto,
//! 2020), section 4.3; [`network`] finds the joint optimum of users that cross several nodes.
//! [`trade`] has Jain's index of two classes in closed form, [`compare`] what an allocation is
//! better in than another.

mod cascade;
mod cell;
pub mod compare;
mod interior;
mod linear;
mod network;
mod node;
mod notion;
mod rise;
pub mod trade;

use thiserror::Error;

pub use cascade::{SharedNode, cascade};
pub use cell::allocate_cell;
pub use network::network;
pub use node::{allocate, equal_shares};
pub use notion::{Notion, NotionError};

/// A user of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct User {
    /// The weight p of its utility, above zero.
    pub weight: f64,
    /// The most that it can use; infinite if nothing limits it.
    pub cap: f64,
    /// The rate of its radio in a cell, above zero; the cell's if it has none of its own.
    pub radio: Option<f64>,
}

impl User {
    /// A user of this weight that can use all.
    pub const fn of(weight: f64) -> Self {
        Self { weight, cap: f64::INFINITY, radio: None }
    }
}

/// The reason why there is no allocation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FairnessError {
    /// A weight is not above zero, or not finite.
    #[error("the weight of user {0} must be a number above zero")]
    Weight(usize),
    /// A cap is below zero, or no number.
    #[error("the cap of user {0} must be a number of at least zero")]
    Cap(usize),
    /// The rate of a radio is not above zero, or not finite.
    #[error("the radio of user {0} must be a number above zero")]
    Radio(usize),
    /// A capacity is not above zero, or not finite.
    #[error("the capacity of node {0} must be a number above zero")]
    Capacity(usize),
    /// A route is empty, or names a node that there is not.
    #[error("the route of user {0} must name nodes that there are, at least one, each once")]
    Route(usize),
    /// There is a route for each user, or none.
    #[error("there must be a route for each user: {routes} for {users}")]
    Routes {
        /// Routes that were given.
        routes: usize,
        /// Users that were given.
        users: usize,
    },
    /// Throughput alone does not say who has it in a network.
    #[error("throughput alone has many allocations in a network; take a small number, as 0.1")]
    Throughput,
    /// The method did not come to its end.
    #[error("the prices of nodes did not settle; weights, caps and capacities differ too much")]
    Unsettled,
}

/// Checks users and capacities, which are numbered from 1 in errors.
fn check(capacities: &[f64], users: &[User]) -> Result<(), FairnessError> {
    let positive = |value: &f64| *value > 0.0 && value.is_finite();
    if let Some(node) = capacities.iter().position(|capacity| !positive(capacity)) {
        return Err(FairnessError::Capacity(node + 1));
    }
    for (number, user) in users.iter().enumerate() {
        if !positive(&user.weight) {
            return Err(FairnessError::Weight(number + 1));
        }
        if user.cap.is_nan() || user.cap < 0.0 {
            return Err(FairnessError::Cap(number + 1));
        }
        if user.radio.is_some_and(|radio| !positive(&radio)) {
            return Err(FairnessError::Radio(number + 1));
        }
    }
    Ok(())
}
