//! Tests of the simulator from outside.

mod calls;
mod cast;
mod control;
mod corpus;
mod dccp;
mod fairness;
mod fld;
mod friendly;
mod jitter;
mod lossy;
mod machines;
mod paths;
mod published;
mod safety;
mod safety_page;
mod scenario;
mod sctp;
mod sources;
mod support;
mod swarm;
mod tcp;
mod toy;
mod transfers;
mod videos;
