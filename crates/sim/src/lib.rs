//! The laboratory in virtual time: hosts, applications and networks without I/O.
//!
//! Start here: a [`World`] joins nodes by wires and moves packets between them, each at its time. A [`Transfer`] is the
//! simplest experiment: two hosts, a link each way, and an object fetched by DFCP; it says what came of it.

mod clear;
mod host;
mod object;
mod payload;
mod transfer;
mod world;

pub use clear::Clear;
pub use host::{Fetch, Host, Role, Serve};
pub use object::PatternObject;
pub use payload::Payload;
pub use transfer::{Outcome, Transfer};
pub use world::{Element, NodeIndex, World};
