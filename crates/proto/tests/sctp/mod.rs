//! Tests of SCTP.

mod addresses;
mod auth;
mod channels;
mod codes;
mod control;
mod foreign;
mod hostile;
mod mtu;
mod multipath;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
mod recovery;
mod reordering;
mod requests;
mod resets;
mod transfer;
