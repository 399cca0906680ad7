//! DCCP between two ends.

mod control;
mod handshake;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
