//! Schedulers: the choice of path for the next data, whatever the transport.
//!
//! Start here: a transport starts the scheduler of a [`SchedulerKind`]. Whenever a packet may leave
//! it shows its paths ([`PathView`]) and what there is to send ([`DataView`]), in units of a
//! packet. The scheduler answers which unit leaves on which path ([`Assignment`]), or that it is
//! better to wait. What is sent again is the transport's own business.
//!
//! No scheduler depends on a transport. A new one is a file here and a row in `kind.rs`.

pub(crate) mod contract;
mod daps;
mod ecf;
pub(crate) mod kind;
pub mod plan;
mod simple;

pub use contract::{Assignment, DataView, PathView, Scheduler};
pub use kind::{SchedulerKind, UnknownSchedulerKind};
