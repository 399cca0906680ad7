//! Transports as state machines without I/O.
