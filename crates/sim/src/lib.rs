//! The laboratory in virtual time: hosts, applications and networks without I/O.
//!
//! Start here: a [`World`] joins nodes by wires and moves packets between them, each at its time. A [`Transfer`] is the
//! simplest experiment: two hosts, a link each way, and an object fetched by DFCP; it says what came of it. In a [`Dumbbell`] several share one bottleneck; its [`Timeline`]
//! says who got how much of it, and when.

mod clear;
mod dumbbell;
mod figure;
mod host;
mod object;
mod payload;
pub mod scenarios;
mod switch;
mod timeline;
mod transfer;
mod world;

pub use clear::Clear;
pub use dumbbell::{Dumbbell, Flow, Shared};
pub use figure::{Figure, Target};
pub use host::{Fetch, Host, Role, Serve};
pub use object::PatternObject;
pub use payload::Payload;
pub use switch::Switch;
pub use timeline::{Moment, Timeline};
pub use transfer::{Outcome, Transfer};
pub use world::{Element, NodeIndex, World};
