//! Tests of the transports from outside.

mod asking;
mod cast;
mod connection;
mod corpus;
mod dccp;
mod decoding;
mod flute;
mod handshake_model;
mod hostile_syn;
mod jumbo;
mod messages;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
mod paths;
mod planner;
mod published;
mod rates;
mod refusals;
mod sctp;
mod tcp;
mod untrue;
