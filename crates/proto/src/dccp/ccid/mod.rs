//! The congestion controls of DCCP. Each has a sender's half and a receiver's.

mod dropped;
mod halves;
mod path;
mod rate;
mod window;

pub(super) use halves::{CcidReceiver, CcidSender};
pub use path::DccpPath;
pub(super) use path::Incoming;
