//! Swarms in virtual time, in transfers of blocks: the policy of [`fontis_proto::swarm`] with
//! uplinks, downlinks and delays around it.
//!
//! Start here: a [`SwarmSpec`] says what the swarm is, [`SwarmWorld`] runs it, and
//! [`SwarmOutcome`] is what came of it: who fed whom, and when each had everything.
//!
//! A transfer occupies one of a node's uploads and one of its downloads, each a fixed part of the
//! node's rate, for the time of a block; offers, refusals and messages take the delay between
//! nodes. Packets, handshakes and rate control are not simulated.

mod agenda;
mod graph;
mod outcome;
mod spec;
mod world;

pub use outcome::{SwarmCost, SwarmFate, SwarmOutcome, SwarmTransfer};
pub use spec::{SwarmConduct, SwarmPeer, SwarmSpec};
pub use world::SwarmWorld;
