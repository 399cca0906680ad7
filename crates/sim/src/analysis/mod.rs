//! The mathematics of the DFCP works: pure functions, with the errata of the printed formulas put
//! right and the printed forms beside them.
//!
//! Start here: [`LossModel`] says how many packets must be sent so that k arrive;
//! [`max_min_shares`] what a fair queue leaves each flow; [`fountain`] what a fountain makes of its
//! share; [`Estimator`] finds a link's rate from probes. [`blocking`], [`concurrent`] and
//! [`schedule`] model transfers over several paths at once. [`fairness`] shares capacity by notions
//! of fairness, at nodes, in cascades and in networks. [`energy`] is that of a phone's radio.

pub mod blocking;
pub mod cellular;
pub mod concurrent;
pub mod energy;
pub mod estimator;
pub(crate) mod exponential;
pub mod fairness;
pub mod fountain;
pub mod lognormal;
pub mod loss_model;
pub mod normal;
pub mod schedule;
pub mod share;

pub use estimator::{BusyPeriod, Estimate, Estimator, EstimatorForm, Monitor};
pub use loss_model::{LossModel, n_difference, n_difference_printed};
pub use normal::{distribution, quantile};
pub use share::{Demand, hop_by_hop_shares, max_min_network, max_min_shares, printed_shares};
