//! Tests of SCTP.

mod channels;
mod codes;
mod control;
mod foreign;
mod hostile;
mod mtu;
mod multipath;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
mod resets;
mod transfer;
