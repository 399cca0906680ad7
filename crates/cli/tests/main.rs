//! Tests of the command that take no time by the clock.

mod analyse;
mod arrows;
mod code;
mod conformance;
mod corpus;
mod estimate;
mod lab;
mod sim;
