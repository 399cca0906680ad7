//! Tests of the transports from outside.

mod connection;
mod corpus;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
mod published;
mod rates;
mod tcp;
