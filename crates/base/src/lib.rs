//! The vocabulary that every other room of Fontis speaks.
//!
//! Start here: [`Time`] and [`Duration`] are integer nanoseconds, [`Rate`] is integer bits per
//! second and [`Size`] integer bytes; all three read and print the notation that people write
//! (`"100 Mbit/s"`, `"50 ms"`, `"1.25 MB"`). A [`Packet`] crosses the network; a [`Node`] is
//! anything that packets go into and come out of, and it owns no clock, no socket and no
//! randomness: they are passed in, the randomness as a [`Stream`].

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod distance;
mod interval_set;
mod long_queue;
mod node;
mod notation;
mod packet;
mod prefetch;
mod random;
mod rate;
mod relax;
mod size;
mod time;

pub use interval_set::IntervalSet;
pub use long_queue::LongQueue;
pub use node::{Node, Observer, Port};
pub use notation::NotationError;
pub use packet::{Address, Ecn, FlowId, Packet, PacketId};
pub use prefetch::{Prefetch, prefetch};
pub use random::{Probability, Stream};
pub use rate::{Rate, Serializer};
pub use relax::{append, relax};
pub use size::Size;
pub use time::{Duration, Time};
