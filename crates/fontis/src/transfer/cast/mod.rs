//! One object for a group of receivers: [`Caster`] sends it by multicast, [`join`] receives it. A
//! [`OneWaySender`] sends to receivers that cannot answer, which [`join_one_way`].

mod announcement;
mod assembler;
mod blocks;
mod caster;
mod content;
#[cfg(test)]
mod forger;
mod invitation;
mod join;
mod listener;
mod object;
mod one_way;
mod reader;
mod seal;
mod writer;

pub(crate) use announcement::announces;
pub use caster::{CastGroup, CastOptions, CastStatus, Caster};
pub(super) use invitation::Invitation;
pub use join::{Joined, join, join_one_way};
pub use one_way::{OneWayOptions, OneWaySender};
pub(crate) use seal::opens;
