//! TCP endpoints, told what arrives when and asked what they send then.
//!
//! Start here: `script` reads scripts in the manner of packetdrill, one segment a line; `pair` lets
//! two endpoints talk over a network that loses, reorders and copies.

mod close;
mod loss;
mod pacing;
mod pair;
mod receive;
mod script;
mod window;
