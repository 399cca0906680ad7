//! Rate controllers: one drives each path.
//!
//! Start here: a [`RateController`] is told what was sent, the content of each feedback
//! ([`FeedbackSummary`]) and when feedback stays away; it answers a pacing rate and an allowance of
//! bytes in flight. [`Auto`] is the default, [`Friendly`] keeps to what CUBIC would take,
//! [`RateKind::Fixed`] holds a rate, [`RateKind::Greedy`] sends as fast as the host can, as the
//! published protocol does. [`tfrc`] is TCP-Friendly Rate Control, which has a receiver of
//! its own; a [`reorder`] buffer hides reordering from that. A [`ReceivingRate`] is [`Auto`] where
//! the packets arrive.
//!
//! Controllers may use [congestion control](crate::congestion); none depends on a transport.

mod auto;
mod base_delay;
mod ceiling;
mod contrast;
pub(crate) mod controller;
mod delivery;
mod drain;
mod fading;
pub(crate) mod feedback;
mod floor;
mod friendly;
pub(crate) mod jitter;
pub(crate) mod kind;
mod ledger;
mod loss_test;
mod modest;
mod receiving;
pub mod reorder;
pub(crate) mod reorder_measured;
mod rival;
pub(crate) mod shared;
mod start;
pub(crate) mod state;
mod target;
pub mod tfrc;
mod trial;
mod window;

pub use auto::Auto;
pub use controller::RateController;
pub use feedback::{FeedbackSummary, feedback_interval};
pub use friendly::Friendly;
pub use kind::RateKind;
pub use receiving::{PathArrival, PathDeparture, ReceivingRate};
pub use state::RateState;
