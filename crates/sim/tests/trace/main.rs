//! Traces: what the simulator's recorder sees, what is found in traces that were built to contain
//! one fault, and files.

mod clocks;
mod files;
mod findings;
mod qlog;
mod recorder;
