//! Sources of traffic, whatever transports it.

pub mod source;
