//! Drivers of state machines over UDP: sockets with batches and offloads, an exact alarm, a clock.
//! The relay of the laboratory also uses them.

mod alarm;
#[cfg(test)]
mod choice;
mod clock;
mod group;
pub(crate) mod outbox;
mod route;
mod shared;
mod socket;

pub use alarm::Alarm;
/// The socket of an endpoint.
#[cfg(test)]
pub(crate) use choice::Socket as AnySocket;
pub use clock::Clock;
pub use group::{
    GroupInterface, is_source_specific, receiver as group_receiver, sender as group_sender,
};
pub use route::source_towards;
pub(crate) use shared::{Leaves, SharedSocket, Trains};
/// The socket of an endpoint. Tests of the whole library simulate it.
#[cfg(not(test))]
pub(crate) use socket::Socket as AnySocket;
pub use socket::{Batch, Socket, ecn};
