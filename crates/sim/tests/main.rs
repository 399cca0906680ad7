//! Tests of the simulator from outside.

mod control;
mod corpus;
mod friendly;
mod published;
mod scenario;
mod tcp;
mod transfers;
