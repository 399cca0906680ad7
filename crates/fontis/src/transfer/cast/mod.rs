//! One object, or a stream while it is made, for a group of receivers: [`Caster`] sends it by
//! multicast, [`join`] receives it. A [`OneWaySender`] sends to receivers that cannot answer, which
//! [`join_one_way`].

mod announcement;
mod assembler;
mod blocks;
mod caster;
mod content;
mod filling;
#[cfg(test)]
mod forger;
mod group;
mod group_thread;
mod invitation;
mod join;
mod listener;
mod live_feed;
mod object;
mod object_feed;
mod one_way;
mod reader;
mod recording;
mod seal;
mod shelf;
mod streamed;
mod writer;

pub(crate) use announcement::announces;
pub use caster::{CastOptions, Caster, LiveOptions};
pub(super) use filling::fill;
pub use group::{CastGroup, CastStatus};
pub(crate) use invitation::Invitation;
pub use join::{Joined, join, join_one_way};
pub use one_way::{OneWayOptions, OneWaySender};
pub(crate) use seal::opens;
pub(super) use shelf::Shelf;
