//! Reliable transport over bad networks with digital fountain codes.

pub mod protection;
pub mod udp;
