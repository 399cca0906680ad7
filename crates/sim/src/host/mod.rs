//! Endpoints: a transport's state machine with an application above it.

pub mod controller;
pub mod datagram;
pub mod dfcp;
pub mod object;
pub mod payload;
pub mod published;
pub mod tcp;
