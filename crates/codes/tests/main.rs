//! Tests of the codes from outside.

mod corpus;
mod failure_rate;
mod incremental;
mod raptorq_block;
mod raptorq_object;
mod window;
