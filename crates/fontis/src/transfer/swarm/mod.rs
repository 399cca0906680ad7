//! An object that its receivers send on to each other.
//!
//! [`share`] fetches an object and sends on what has come; a [`FileServer`](super::FileServer) is
//! the first of its swarm. Two nodes are connected as client and server are, with the keys that
//! whoever introduced them has said; from then on each is as good as the other.

mod content;
mod download;
mod edge;
mod group;
#[cfg(test)]
mod liar;
mod origin;
mod share;
mod state;
mod strangers;
#[expect(clippy::module_inception, reason = "the swarm itself, among its parts")]
mod swarm;
#[cfg(test)]
mod tests;
mod times;
mod upload;
mod wire;

pub(super) use edge::Newcomer;
#[cfg(test)]
pub(crate) use liar::{Liar, Treatment};
pub(super) use origin::Swarms;
pub use share::{Sharing, share};
pub(super) use swarm::Swarm;
pub(super) use wire::SwarmWire;
