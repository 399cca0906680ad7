//! The published protocol: handshake, close, blocks and acknowledgements, over a path that loses
//! what a test says.

mod close;
mod data;
mod pair;
