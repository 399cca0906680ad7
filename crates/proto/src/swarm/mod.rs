//! Many nodes that want the same object, each a source of the blocks that it has.
//!
//! [`SwarmNode`] is the policy of one node: to whom it sends which block next. `docs/swarm.md`
//! argues for it.

mod neighbour;
mod node;

pub use node::{SwarmConfig, SwarmMessage, SwarmNode, SwarmUpload};
