//! The parts of the laboratory that use the machine.
//!
//! Start here: [`relay`] puts a bad path between any two programs that speak UDP, `testbed` (on
//! Linux) networks between any programs; `kernel` loads congestion controls; [`sim`] runs scenarios
//! and records them; [`claims`] compares papers with the results.

pub mod claims;
#[cfg(target_os = "linux")]
pub mod kernel;
mod lateness;
#[cfg(target_os = "linux")]
pub mod live;
pub mod relay;
pub mod sim;
mod statistics;
#[cfg(target_os = "linux")]
pub mod testbed;
#[cfg(target_os = "linux")]
mod thread_time;

pub use lateness::Lateness;
