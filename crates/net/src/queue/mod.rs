//! Queue disciplines: what waits, in which order it leaves, and what is dropped.

mod bucket;
mod classes;
mod codel;
pub(crate) mod discipline;
mod drr;
mod fifo;
mod fq_codel;
pub(crate) mod kind;
pub(crate) mod limit;
mod longest;
pub(crate) mod options;
pub(crate) mod quanta;
mod red;
mod report;
pub(crate) mod tail;
#[cfg(test)]
pub(crate) mod testing;
mod wfq;

pub use classes::{Priority, TwoClass};
pub use codel::CoDel;
pub use discipline::Queue;
pub use drr::Drr;
pub use fifo::Fifo;
pub use fq_codel::FqCoDel;
pub use kind::QueueKind;
pub use limit::Limit;
pub use options::QueueOptions;
pub use quanta::Quanta;
pub use red::Red;
pub use wfq::Wfq;
