//! One object for a group of receivers: [`Caster`] sends it by multicast, [`join`] receives it.

mod blocks;
mod caster;
mod invitation;
mod join;
mod listener;
mod outbox;
mod seal;

pub use caster::{CastOptions, CastStatus, Caster};
pub(super) use invitation::Invitation;
pub use join::{Joined, join};
