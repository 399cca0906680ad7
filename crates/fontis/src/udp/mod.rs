//! Drivers of state machines over UDP: sockets with batches and offloads, an exact alarm, a clock.
//! The relay of the laboratory also uses them.

mod alarm;
mod clock;
mod group;
mod route;
mod socket;

pub use alarm::Alarm;
pub use clock::Clock;
pub use group::{
    GroupInterface, is_source_specific, receiver as group_receiver, sender as group_sender,
};
pub use route::source_towards;
pub use socket::{Batch, Socket, ecn};
