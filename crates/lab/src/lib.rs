//! What the laboratory needs of the machine.
//!
//! Start here: [`relay`] puts a bad path between any two programs that speak UDP.

pub mod relay;
pub mod sim;
