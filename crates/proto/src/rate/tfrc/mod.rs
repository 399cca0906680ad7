//! TFRC, TCP-Friendly Rate Control (RFC 3448, RFC 5348), and its variant for small packets (RFC
//! 4828).
//!
//! Start here: a [`TfrcReceiver`] counts what arrives and reports a receive rate and a loss event
//! rate ([`TfrcReport`]); a [`TfrcSender`] turns reports into an allowed rate. [`TfrcConfig`]
//! selects the variant, and the proposals of Sarwar's thesis (2014) for voice over long paths.

mod config;
pub(super) mod equation;
mod history;
mod receiver;
mod sender;

pub use config::{FeedbackCount, InitialRate, SlowStart, TfrcConfig, TfrcRules};
pub use equation::{loss_rate_for, throughput};
pub use history::{LossHistory, LossInterval};
pub use receiver::{TfrcArrival, TfrcReceiver};
pub use sender::{TfrcReport, TfrcSender};
