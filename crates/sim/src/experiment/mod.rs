//! One run: a network, flows, and the measurement of them.
//!
//! Start here: an [`Experiment`] describes the run, [`Experiment::run`] carries it out, and an
//! [`observation`] reads counters into a recording, on every platform.

pub mod messages;
pub mod observation;
pub mod run;
mod series;
pub mod spec;
pub mod swarm;

pub use spec::Experiment;
