//! Queue disciplines: what waits, in which order it leaves, and what is dropped.

mod bucket;
pub(crate) mod cell;
mod classes;
mod codel;
pub(crate) mod discipline;
mod drr;
pub(crate) mod facts;
mod fifo;
mod fq_codel;
pub(crate) mod kind;
pub(crate) mod limit;
mod longest;
pub(crate) mod options;
pub(crate) mod quanta;
mod ranked;
mod red;
mod report;
mod shares;
pub(crate) mod tail;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod weights;
mod wfq;

pub use cell::RadioCell;
pub use classes::{Priority, TwoClass};
pub use codel::CoDel;
pub use discipline::Queue;
pub use drr::Drr;
pub use facts::FlowFacts;
pub use fifo::Fifo;
pub use fq_codel::FqCoDel;
pub use kind::QueueKind;
pub use limit::Limit;
pub use options::QueueOptions;
pub use quanta::Quanta;
pub use ranked::Ranked;
pub use red::Red;
pub use weights::ClassWeights;
pub use wfq::Wfq;
