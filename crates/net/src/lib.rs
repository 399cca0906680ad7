//! What happens to a packet between two hosts.
//!
//! Start here: a [`Link`] is one direction of a path, a [`Node`](fontis_base::Node) that a
//! [`LinkConfig`] describes. A packet meets its elements in this order, each of which may be
//! absent:
//!
//! ```text
//! policer → loss (before) → outage → duplicate → queue → line (rate) → loss (after) → corrupt
//!     → delay, jitter, reorder
//! ```
//!
//! The [`Queue`] is passive: the line takes the next packet from it when it is free, so a queue
//! discipline decides order and drops only. Propagation is not queueing: what is in flight never
//! counts against the buffer.
//!
//! The links of many hosts that do no more than send and delay are one [`Bundle`].
//!
//! A new loss model is a variant of [`Loss`]; a new queue discipline is a file in `queue/` and a
//! line in its registry, [`QueueKind`].

mod bundle;
mod config;
mod delay;
mod delivery;
mod delivery_trace;
mod error;
mod faults;
mod flight;
mod link;
mod link_part;
mod loss;
mod outage;
mod policer;
mod queue;
mod reorder;
mod schedule;
mod stats;
mod waiting;

pub use bundle::Bundle;
pub use config::{LinkConfig, LossPosition};
pub use delay::{DelayChange, DelaySchedule};
pub use delivery::Delivery;
pub use delivery_trace::{DeliveryLine, DeliveryTrace};
pub use error::SpecError;
pub use link::Link;
pub use link_part::LinkPart;
pub use loss::{Loss, LossProcess};
pub use outage::Outage;
pub use policer::{Policer, TokenBucket};
pub use queue::{
    ClassWeights, CoDel, Drr, Fifo, FlowFacts, FqCoDel, Limit, Priority, Quanta, Queue, QueueKind,
    QueueOptions, RadioCell, Ranked, Red, TwoClass, Wfq,
};
pub use reorder::{HoldTimes, Reorder};
pub use schedule::{RateChange, Schedule};
pub use stats::{Count, DropCounts, LinkStats};
