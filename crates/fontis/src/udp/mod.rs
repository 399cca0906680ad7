//! Drivers of state machines over UDP: sockets with batches and offloads, an exact alarm, a clock.
//! The relay of the laboratory also uses them.

mod alarm;
mod clock;
mod route;
mod socket;

pub use alarm::Alarm;
pub use clock::Clock;
pub use route::source_towards;
pub use socket::{Batch, Socket, ecn};
