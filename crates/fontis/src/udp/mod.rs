//! Drivers of state machines over UDP: sockets with batches and offloads, an exact alarm, a clock.
//! The relay of the laboratory also uses them.

mod alarm;
#[cfg(test)]
mod choice;
mod clock;
mod route;
mod socket;

pub use alarm::Alarm;
#[cfg(test)]
pub use choice::Socket;
pub use clock::Clock;
pub use route::source_towards;
#[cfg(not(test))]
pub use socket::Socket;
pub use socket::{Batch, ecn};
