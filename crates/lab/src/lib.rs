//! What the laboratory needs of the machine.
//!
//! Start here: [`relay`] puts a bad path between any two programs that speak UDP; [`sim`] runs scenarios and records
//! them; [`claims`] compares papers with what comes of that.

pub mod capture;
pub mod claims;
pub mod relay;
pub mod sim;
