//! DCCP between two ends.

mod control;
mod demands;
mod handshake;
#[allow(unreachable_pub, reason = "a module of helpers")]
mod pair;
mod path;
