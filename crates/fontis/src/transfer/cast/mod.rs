//! One object for a group of receivers: [`Caster`] sends it by multicast, [`join`] receives it. A
//! [`LiveCaster`] sends a stream while it is made. A [`OneWaySender`] sends to receivers that
//! cannot answer, which [`join_one_way`].

mod announcement;
mod assembler;
mod blocks;
mod caster;
mod casting;
mod content;
#[cfg(test)]
mod forger;
mod group;
mod group_thread;
mod invitation;
mod join;
mod listener;
mod live_caster;
mod object;
mod one_way;
mod reader;
mod recording;
mod seal;
mod streamed;
mod writer;

pub(crate) use announcement::announces;
pub use caster::{CastOptions, Caster};
pub use casting::Casting;
pub use group::{CastGroup, CastStatus};
pub(super) use invitation::Invitation;
pub use join::{Joined, join, join_one_way};
pub use live_caster::{LiveCaster, LiveOptions};
pub use one_way::{OneWayOptions, OneWaySender};
pub(crate) use seal::opens;
